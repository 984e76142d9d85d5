#!/bin/sh
# Installs what the browser tests and the screenshots need on Debian and its kin: chromium, fonts, and axe-core by npm. What is
# there already stays as it is.
set -eu

packages='chromium fonts-inter fonts-dejavu-core fonts-noto-color-emoji'

cd "$(dirname "$0")"
command -v npm >/dev/null || packages="$packages npm" # for axe-core, which judges accessibility
missing=
for package in $packages; do
  dpkg-query --show --showformat '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  command -v apt-get >/dev/null || {
    echo "browser-packages: there is no apt-get here: install by other means:$missing" >&2
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
