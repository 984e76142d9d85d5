#!/bin/sh
# Installs the packages of a real node (see make cluster NODE=real) on Debian and its derivatives. Installed packages stay
# unchanged. The packages' own services are not used.
set -eu

packages='containerd runc containernetworking-plugins iptables ca-certificates'

command -v apt-get >/dev/null || {
  echo "node-packages: apt-get not found: install these packages by other means: $packages" >&2
  exit 1
}
missing=
for package in $packages; do
  dpkg-query --show --showformat '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
[ "$(id -u)" -eq 0 ] || {
  echo "node-packages: installing needs root: sudo apt-get install$missing" >&2
  exit 1
}
export DEBIAN_FRONTEND=noninteractive
apt-get update
# shellcheck disable=SC2086 # a list
apt-get install --yes --no-install-recommends $missing
