#!/bin/sh
# Installs the packages that some targets need, on Debian and its derivatives. Installed packages stay unchanged, and their services are not
# used. Usage: packages.sh browser|emulator|node|postgres|site
set -eu
cd "$(dirname "$0")"

# has reports whether one of the files is a program.
has() {
  for file in "$@"; do
    [ ! -x "$file" ] || return 0
  done
  return 1
}

case $1 in
browser) # of the browser tests and the screenshots; npm is for axe-core, which judges accessibility
  packages='chromium-headless-shell fonts-inter fonts-dejavu-core fonts-noto-color-emoji'
  command -v npm >/dev/null || packages="$packages npm" ;;
emulator) # QEMU's emulation of other processors, for `make test-bundle`
  packages=qemu-user ;;
node) # of a real node: `make cluster NODE=real`
  packages='containerd runc containernetworking-plugins iptables ca-certificates' ;;
postgres) # any version of PostgreSQL; the tests start servers of their own
  packages=postgresql
  if has "$(command -v postgres || true)" /usr/lib/postgresql/*/bin/postgres; then packages=; fi ;;
site) # the generator of the documents' site
  packages=mkdocs ;;
*)
  echo "packages.sh: $1 is unknown: give browser, emulator, node, postgres or site" >&2
  exit 2 ;;
esac

missing=
for package in $packages; do
  dpkg-query --show --showformat '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  command -v apt-get >/dev/null || {
    echo "$1-packages: apt-get not found: install these packages by other means:$missing" >&2
    exit 1
  }
  [ "$(id -u)" -eq 0 ] || {
    echo "$1-packages: installing needs root: sudo apt-get install$missing" >&2
    exit 1
  }
  export DEBIAN_FRONTEND=noninteractive
  apt-get update
  # shellcheck disable=SC2086 # a list
  apt-get install --yes --no-install-recommends $missing
fi
[ "$1" != browser ] || npm ci --prefix browser --ignore-scripts --no-audit --no-fund
