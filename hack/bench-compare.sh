#!/usr/bin/env bash
# Compares the benchmarks of the hot functions with those of a base, such as origin/main. The table is information: no difference fails.
# Usage: bench-compare.sh BASE BENCHSTAT...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
base=$1
shift

# The functions through which each Event or change of a Pod goes, in this order.
functions='^Benchmark(CachedPod|Registry_Upsert|Assessments_ChangeOfOnePod|TakeWhileManyWait|Commit|ReportSet_Encode)$'
packages=(./internal/agent/{informers,target,assess,outbox,journal} ./internal/threeport)

if [ "$(git rev-parse --quiet --verify "$base^{tree}")" = "$(git rev-parse 'HEAD^{tree}')" ] && git diff --quiet HEAD; then
  base=HEAD^ # nothing differs from the base: compare with the commit before
fi
if ! commit=$(git rev-parse --quiet --verify "$base^{commit}"); then
  echo "SKIPPED: there is no commit $base to compare with."
  exit 0
fi
before=$(mktemp -d)
trap 'git worktree remove --force "$before/tree" 2>/dev/null || true; rm -rf "$before"' EXIT
git worktree add --quiet --detach "$before/tree" "$commit"

bench() { (cd "$1" && go test -run '^$' -bench "$functions" -benchmem -benchtime 50ms -count 6 "${packages[@]}"); }
# A benchmark that does not compile at the base is no reason to fail.
bench "$before/tree" >"$before/old" || true
bench . >"$before/new"
echo "old is $(git log -1 --format='%h %s' "$commit")"
"$@" "old=$before/old" "new=$before/new"
