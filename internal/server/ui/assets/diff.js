// The difference of two lists of lines. Pure.
//
// E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", Algorithmica 1 (1986): in linear space, from both ends
// at once. The search has a bound, to be fast for lists with little in common: then the result is correct, but may not be
// the shortest.

const MAX_STEPS = 400; // of a search, whose time grows with the square

/** diff is a list of {sign, line} with the signs ' ', '-' and '+', which turns one list into the other. */
export function diff(before, after) {
  const ids = new Map();
  const [a, b] = [before, after].map((lines) => lines.map((line) => ids.get(line) ?? ids.set(line, ids.size).get(line)));
  const removed = new Uint8Array(a.length).fill(1);
  const added = new Uint8Array(b.length).fill(1);
  const keep = (i, j) => { removed[i] = 0; added[j] = 0; };
  // Lines without a counterpart need no search.
  const [inA, inB] = [new Set(a), new Set(b)];
  const [atA, atB] = [places(a, inB), places(b, inA)];
  match(atA.map((i) => a[i]), atB.map((j) => b[j]), (i, j) => keep(atA[i], atB[j]));
  const out = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (removed[i]) out.push({ sign: '-', line: before[i++] });
    else if (added[j]) out.push({ sign: '+', line: after[j++] });
    else {
      out.push({ sign: ' ', line: before[i++] });
      j++;
    }
  }
  return out;
}

function places(list, other) {
  return [...list.keys()].filter((i) => other.has(list[i]));
}

// match calls keep(i, j) for all unchanged lines.
function match(a, b, keep) {
  const furthest = [0, 1].map(() => new Int32Array(a.length + b.length + 3)); // forward and backward, by diagonal
  const parts = [[0, a.length, 0, b.length]];
  while (parts.length) {
    let [fromA, toA, fromB, toB] = parts.pop();
    while (fromA < toA && fromB < toB && a[fromA] === b[fromB]) keep(fromA++, fromB++);
    while (fromA < toA && fromB < toB && a[toA - 1] === b[toB - 1]) keep(--toA, --toB);
    if (fromA === toA || fromB === toB) continue;
    const [x, y] = between(a, b, [fromA, toA, fromB, toB], furthest);
    parts.push([fromA, x, fromB, y], [x, toA, y, toB]);
  }
}

// between is a point on the path through a part, other than its ends, whose first and last lines differ. On a diagonal x - y is
// constant; each reachable diagonal has its furthest point.
function between(a, b, [fromA, toA, fromB, toB], [forward, backward]) {
  const [least, most] = [fromA - toB, toA - fromB];
  const [start, end] = [fromA - fromB, toA - toB];
  const odd = (start - end) % 2 !== 0;
  const base = b.length + 1; // offset of a diagonal in the arrays
  let [minF, maxF, minB, maxB] = [start, start, end, end];
  forward[base + start] = fromA;
  backward[base + end] = toA;
  for (let step = 1; ; step++) {
    if (minF > least) forward[base + --minF - 1] = -1; else minF++;
    if (maxF < most) forward[base + ++maxF + 1] = -1; else maxF--;
    for (let k = maxF; k >= minF; k -= 2) {
      let x = Math.max(forward[base + k - 1] + 1, forward[base + k + 1]);
      while (x < toA && x - k < toB && a[x] === b[x - k]) x++;
      forward[base + k] = x;
      if (odd && k >= minB && k <= maxB && x >= backward[base + k]) return [x, x - k];
    }
    if (minB > least) backward[base + --minB - 1] = toA + 1; else minB++;
    if (maxB < most) backward[base + ++maxB + 1] = toA + 1; else maxB--;
    for (let k = maxB; k >= minB; k -= 2) {
      let x = Math.min(backward[base + k - 1], backward[base + k + 1] - 1);
      while (x > fromA && x - k > fromB && a[x - 1] === b[x - k - 1]) x--;
      backward[base + k] = x;
      if (!odd && k >= minF && k <= maxF && x <= forward[base + k]) return [x, x - k];
    }
    if (step >= MAX_STEPS) return furthestOf(forward, base, minF, maxF, toA, toB);
  }
}

function furthestOf(forward, base, min, max, toA, toB) {
  let best = [-1, -1];
  for (let k = max; k >= min; k -= 2) {
    const x = Math.min(forward[base + k], toA, toB + k);
    if (2 * x - k > best[0] + best[1]) best = [x, x - k];
  }
  return best;
}

const CONTEXT = 3; // lines shown around a change

/** hunks leaves out unchanged lines: the items are {sign, line} and {skipped: n}. */
export function hunks(changes) {
  const near = new Uint8Array(changes.length);
  changes.forEach(({ sign }, i) => {
    if (sign !== ' ') near.fill(1, Math.max(0, i - CONTEXT), i + CONTEXT + 1);
  });
  const out = [];
  for (let i = 0; i < changes.length; i++) {
    if (near[i]) out.push(changes[i]);
    else if (out.at(-1)?.skipped) out.at(-1).skipped++;
    else out.push({ skipped: 1 });
  }
  return out;
}
