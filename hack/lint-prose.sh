#!/usr/bin/env bash
# Checks the prose of documents, comments and strings with Vale and the style in hack/vale, see .vale.ini.
# Usage: hack/lint-prose.sh VALE...   (the command that runs Vale)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
vale=("$@")
samples=hack/vale/testdata
# Vale reads no comments of YAML, shell and make. This folder has copies with their comments and messages only.
extracts=$(mktemp -d)
trap 'rm -rf "$extracts"' EXIT

# The style rejects each sentence of rejected.md, and accepts each of accepted.md.
check_style() {
  local missed line
  missed=$(comm -23 <(grep -n . $samples/rejected.md | cut -d: -f1 | sort) \
    <("${vale[@]}" --no-exit --output=line $samples/rejected.md | cut -d: -f2 | sort -u))
  for line in $missed; do
    echo "$samples/rejected.md:$line: the style accepts this sentence: $(sed -n "${line}p" $samples/rejected.md)" >&2
  done
  [ -z "$missed" ] && "${vale[@]}" --output=line $samples/accepted.md
}

# A line of hack/vale/pending is a folder or a file that is not checked yet.
declare -A listed
while read -r path; do listed[$path]=1; done <hack/vale/pending
is_pending() { [ -n "${listed[$1]-}${listed[${1%/*}]-}" ]; }

# extract prints the path of a file for Vale. Lines keep their numbers.
extract() {
  case $1 in
  *.md | *.go | *.js | *.html) echo "$1" ;;
  *)
    mkdir -p "$extracts/$(dirname "$1")"
    sed -E '1s/^#!.*//; s/^ *(- \{)?message: +//; t; s/^[^#]*$//; s/^(.*[^ ] +|.* |)# ?//' "$1" >"$extracts/$1.md"
    echo "$extracts/$1.md"
    ;;
  esac
}

# anchors prints the anchors of the headings of a document, as GitHub makes them.
anchors() {
  awk '/^```/ { code = !code } !code && /^#+ /' "$1" | sed -E 's/^#+ +//; s/[^[:alnum:] _-]//g; s/ /-/g' | tr '[:upper:]' '[:lower:]'
}

# Relative links of documents lead to files that exist, and to headings in them.
check_links() {
  local broken
  broken=$(git ls-files '*.md' | grep -v testdata/ | while read -r file; do
    grep -noE '\]\([^) ]+' "$file" | grep -v 'http' | while IFS=: read -r line link; do
      link=${link#*(}
      target=$file anchor=
      [[ $link = \#* ]] || target=$(dirname "$file")/${link%%#*}
      [[ $link != *\#* ]] || anchor=${link#*#}
      if [ ! -e "$target" ] || { [ -n "$anchor" ] && ! anchors "$target" | grep -qxF -e "$anchor"; }; then
        echo "$file:$line: broken link: $link"
      fi
    done || true
  done)
  [ -z "$broken" ] || { echo "$broken" >&2; return 1; }
}

# The findings of pending files are counted by line of hack/vale/pending. Delete lines without findings.
count_pending() {
  local -A findings
  local file entry sum=0
  while read -r file; do
    entry=$file
    [ -n "${listed[$file]-}" ] || entry=${file%/*}
    findings[$entry]=$((${findings[$entry]-0} + 1))
    sum=$((sum + 1))
  done < <("${vale[@]}" --no-exit --output=line "${pending[@]}" | sed -E "s,^$extracts/(.*)\.md:,\1:,; s,:.*,,")
  for entry in "${!listed[@]}"; do
    echo "pending: $entry: ${findings[$entry]-no} findings"
  done | sort
  echo "pending: $sum findings in all"
}

check_style
check_links
checked=() pending=()
while read -r file; do
  [ -e "$file" ] || continue
  if is_pending "$file"; then pending+=("$(extract "$file")"); else checked+=("$(extract "$file")"); fi
done < <(git ls-files '*.md' '*.go' '*.js' '*.html' '*.yaml' .golangci.yml '*.sh' .ci/run Makefile Dockerfile |
  grep -v -e testdata/ -e zz_generated -e '^config/crd/bases/')
[ "${#pending[@]}" -eq 0 ] || count_pending
"${vale[@]}" --output=line "${checked[@]}" | sed "s,$extracts/\(.*\)\.md:,\1:,"
echo "prose: ${#checked[@]} files checked, ${#pending[@]} pending"
