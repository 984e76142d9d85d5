#!/bin/sh
# Installs PostgreSQL for the tests on Debian and its derivatives, unless any version is installed. The package's own
# service is not used: the tests start servers of their own (internal/testing/postgres).
set -eu

packages='postgresql'

for server in "$(command -v postgres || true)" /usr/lib/postgresql/*/bin/postgres; do
  [ -x "$server" ] && exit 0
done
command -v apt-get >/dev/null || {
  echo "postgres-packages: apt-get not found: install these packages by other means: $packages" >&2
  exit 1
}
[ "$(id -u)" -eq 0 ] || {
  echo "postgres-packages: installing needs root: sudo apt-get install $packages" >&2
  exit 1
}
export DEBIAN_FRONTEND=noninteractive
apt-get update
# shellcheck disable=SC2086 # a list
apt-get install --yes --no-install-recommends $packages
