#!/bin/sh
# Installs QEMU's emulation of other processors for `make test-bundle`, on Debian and its derivatives.
set -eu

packages='qemu-user'

if command -v qemu-aarch64 >/dev/null && command -v qemu-x86_64 >/dev/null; then
  exit 0
fi
command -v apt-get >/dev/null || {
  echo "emulator-packages: apt-get not found: install these packages by other means: $packages" >&2
  exit 1
}
[ "$(id -u)" -eq 0 ] || {
  echo "emulator-packages: installing needs root: sudo apt-get install $packages" >&2
  exit 1
}
export DEBIAN_FRONTEND=noninteractive
apt-get update
# shellcheck disable=SC2086 # a list
apt-get install --yes --no-install-recommends $packages
