#!/bin/sh
# Installs the packages of the browser tests and the screenshots on Debian and its derivatives: chromium without windows, fonts, and
# axe-core by npm. Installed packages stay unchanged.
set -eu

packages='chromium-headless-shell fonts-inter fonts-dejavu-core fonts-noto-color-emoji'

cd "$(dirname "$0")"
command -v npm >/dev/null || packages="$packages npm" # for axe-core, which judges accessibility
missing=
for package in $packages; do
  dpkg-query --show --showformat '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  command -v apt-get >/dev/null || {
    echo "browser-packages: apt-get not found: install these packages by other means:$missing" >&2
    exit 1
  }
  [ "$(id -u)" -eq 0 ] || {
    echo "browser-packages: installing needs root: sudo apt-get install$missing" >&2
    exit 1
  }
  export DEBIAN_FRONTEND=noninteractive
  apt-get update
  # shellcheck disable=SC2086 # a list
  apt-get install --yes --no-install-recommends $missing
fi
npm ci --prefix browser --ignore-scripts --no-audit --no-fund
