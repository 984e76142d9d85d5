#!/usr/bin/env bash
# Builds the programs twice, in two folders, and compares them byte for byte. Each build links for itself. Both use
# Go's build cache, which has a package once for each folder that is compiled into it. A compiler with random output is not found.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for copy in one another/folder; do
  mkdir -p "$dir/$copy"
  git ls-files -z --cached --others --exclude-standard -- Makefile go.mod go.sum api cmd config internal |
    tar --create --null --files-from=- --ignore-failed-read 2>/dev/null | tar --extract --directory="$dir/$copy"
  make --no-print-directory -C "$dir/$copy" build VERSION=reproducible >/dev/null
done
(cd "$dir/one/bin" && sha256sum -- *) | tee "$dir/sums"
if ! (cd "$dir/another/folder/bin" && sha256sum --check --strict --quiet "$dir/sums"); then
  echo 'The two builds differ: something of the folder, the time or the machine is in the programs.' >&2
  exit 1
fi
echo 'Both builds are equal byte for byte.'
