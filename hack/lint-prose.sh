#!/usr/bin/env bash
# Checks the prose of documents, comments and strings with Vale and the style in hack/vale, as .vale.ini says.
# Usage: hack/lint-prose.sh VALE...   (the command that runs Vale)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
vale=("$@")
samples=hack/vale/testdata

# The style itself: it rejects each sentence of rejected.md, and accepts each of accepted.md.
missed=$(comm -23 <(grep -n . $samples/rejected.md | cut -d: -f1 | sort) \
  <("${vale[@]}" --no-exit --output=line $samples/rejected.md | cut -d: -f2 | sort -u))
for line in $missed; do
  echo "$samples/rejected.md:$line: the style accepts this sentence: $(sed -n "${line}p" $samples/rejected.md)" >&2
done
"${vale[@]}" --output=line $samples/accepted.md
[ -z "$missed" ]

# A line of hack/vale/pending is a folder or a file that is not checked yet. Its findings are only counted.
folder() { case $1 in */*) echo "${1%/*}" ;; *) echo . ;; esac; }
is_pending() { grep -qxF -e "$1" -e "$(folder "$1")" hack/vale/pending; }
checked=() pending=()
while read -r file; do
  if is_pending "$file"; then pending+=("$file"); else checked+=("$file"); fi
done < <(git ls-files '*.md' '*.go' '*.js' '*.html' | grep -v -e /testdata/ -e zz_generated)

if [ "${#pending[@]}" -gt 0 ]; then
  "${vale[@]}" --no-exit --output=line "${pending[@]}" | sed -E 's,/[^/]*$,,; s,:.*,,' | sort | uniq -c |
    awk '{sum += $1; print "not checked yet:", $2 " (" $1 " findings)"} END {print "not checked yet:", sum + 0, "findings in all"}'
fi
"${vale[@]}" "${checked[@]}"
