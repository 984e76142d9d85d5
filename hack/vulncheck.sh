#!/usr/bin/env bash
# Checks the programs for known vulnerabilities with govulncheck, which is given as arguments. Without the vulnerability
# database nothing is checked: the script says so, and fails only if VULNCHECK=required.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=$(mktemp)
trap 'rm -f "$out"' EXIT
if "$@" ./cmd/... >"$out" 2>&1; then
  cat "$out"
  exit 0
fi
cat "$out" >&2
if ! grep -qE 'fetching vulnerabilities|vuln\.go\.dev' "$out" || grep -q '^Vulnerability #' "$out"; then
  exit 1
fi
echo '*** SKIPPED: the vulnerability database cannot be reached, and no vulnerability was looked for. ***' >&2
[ "${VULNCHECK:-}" != required ]
