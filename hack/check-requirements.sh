#!/usr/bin/env bash
# Checks that the programs import each direct requirement of the main module. Requirements of tests and tools belong to
# the modules internal/e2e and hack. The one exception is goleak, which the tests of all packages with goroutines use.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exempt='go.uber.org/goleak'

imported=$(go list -deps -f '{{if and .Module .Module.Main}}{{join .Imports "\n"}}{{end}}' ./cmd/... | sort -u)
unused=
for module in $(go list -m -f '{{if not (or .Indirect .Main)}}{{.Path}}{{end}}' all); do
  [ "$module" = "$exempt" ] || grep -qE "^${module//./\\.}(/|$)" <<<"$imported" || unused+=" $module"
done
if [ -n "$unused" ]; then
  echo "go.mod requires what no program imports:$unused. Move the tests that need it to internal/e2e, or the tool to hack." >&2
  exit 1
fi

# The workflows use the version of Go that builds the image.
image=$(sed -n 's/^FROM.*golang:\([0-9.]*\).*/\1/p' Dockerfile | sort -u)
for workflow in .github/workflows/*.yml; do
  for version in $(sed -n 's/.*go-version: "\(.*\)".*/\1/p' "$workflow"); do
    [ "$version" = "$image" ] || { echo "$workflow uses Go $version, and the Dockerfile $image: use the same." >&2; exit 1; }
  done
done
