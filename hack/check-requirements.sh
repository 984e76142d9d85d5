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

# Each pin of Kubernetes has the staging modules of its version. The tests run on the pinned minors, and the document names them.
minors=
for pin in internal/e2e/cluster/pins/kubernetes*/go.mod; do
  version=$(sed -n 's/^\tk8s\.io\/kubernetes v\([0-9.]*\).*/\1/p' "$pin")
  minors+="${version%.*} "
  other=$(sed -n 's/.*=> \(k8s\.io\/.*\)/\1/p' "$pin" | sed "/ v0\.${version#*.}\$/d")
  [ -z "$other" ] || { echo "$pin has staging modules of another version than v0.${version#*.}: $other" >&2; exit 1; }
done
minors=$(tr ' ' '\n' <<<"$minors" | sort -uV | xargs)
check_minors() {
  [ "$2" = "$minors" ] || { echo "$1 has the Kubernetes minors $2, and internal/e2e/cluster/pins $minors: use the same." >&2; exit 1; }
}
check_minors Makefile "$(sed -n 's/^MINORS = //p' Makefile)"
check_minors .github/workflows/nightly.yml "$(sed -n 's/^ *minor: \[\(.*\)\]/\1/p' .github/workflows/nightly.yml | tr -d '",')"
check_minors docs/operating.md "$(sed -n 's/^| unreleased | \(.*\) |$/\1/p' docs/operating.md | tr -d ',')"

# The nightly workflow runs the suites of `make nightly`, and in another job those on each minor.
suites=$(sed -n 's/^ *target: \[\(.*\)\]/\1/p' .github/workflows/nightly.yml | tr -d ',')
nightly=$(sed -n 's/^NIGHTLY = //p' Makefile)
[ "$suites test-compatibility" = "$nightly" ] ||
  { echo "nightly.yml runs $suites test-compatibility, and make nightly $nightly: use the same." >&2; exit 1; }

# A target of the Makefile names each package of internal/e2e with tests. One target tests all packages of hack.
targets=$(sed -n 's/^\t\$(E2E_TEST) //p' Makefile | tr ' ' '\n')
for folder in $(git ls-files 'internal/e2e/*_test.go' | xargs -n 1 dirname | sort -u); do
  package=.${folder#internal/e2e}
  grep -qxF -e "$package" -e "$package/..." -e "${package%/*}/..." <<<"$targets" ||
    { echo "No target of the Makefile runs the tests of $folder." >&2; exit 1; }
done

# The workflows use the version of Go that builds the image.
image=$(sed -n 's/^FROM.*golang:\([0-9.]*\).*/\1/p' Dockerfile | sort -u)
for workflow in .github/workflows/*.yml; do
  for version in $(sed -n 's/.*go-version: "\(.*\)".*/\1/p' "$workflow"); do
    [ "$version" = "$image" ] || { echo "$workflow uses Go $version, and the Dockerfile $image: use the same." >&2; exit 1; }
  done
done
