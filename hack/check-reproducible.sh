#!/usr/bin/env bash
# Builds the programs twice, in two folders and with two build caches, and compares them byte for byte. The second cache is
# kept in the user's cache folder, so that only changed packages are compiled.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

second_cache=${XDG_CACHE_HOME:-$HOME/.cache}/threeport-agent/reproducible
mkdir -p "$second_cache"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for copy in one another/folder; do
  mkdir -p "$dir/$copy"
  git ls-files -z --cached --others --exclude-standard -- Makefile go.mod go.sum api cmd config internal |
    tar --create --null --files-from=- --ignore-failed-read 2>/dev/null | tar --extract --directory="$dir/$copy"
done
make --no-print-directory -C "$dir/one" build VERSION=reproducible >/dev/null
GOCACHE=$second_cache make --no-print-directory -C "$dir/another/folder" build VERSION=reproducible >/dev/null
(cd "$dir/one/bin" && sha256sum -- *) | tee "$dir/sums"
if ! (cd "$dir/another/folder/bin" && sha256sum --check --strict --quiet "$dir/sums"); then
  echo 'The two builds differ: something of the folder, the time or the machine is in the programs.' >&2
  exit 1
fi
echo 'Both builds are equal byte for byte.'
