// What differs between two lists of lines. Pure.
//
// E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", Algorithmica 1 (1986).

const MOST_STEPS = 1200; // beyond it, all of the part that differs counts as replaced

/** diff is a list of {sign, line}, sign being ' ', '-' or '+': how to come from one list to the other. */
export function diff(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  return [
    ...before.slice(0, start).map((line) => ({ sign: ' ', line })),
    ...myers(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map((line) => ({ sign: ' ', line })),
  ];
}

function myers(a, b) {
  if (!a.length || !b.length) return replaced(a, b);
  const most = Math.min(a.length + b.length, MOST_STEPS);
  const furthest = new Int32Array(2 * most + 2);
  const trace = [];
  for (let d = 0; d <= most; d++) {
    trace.push(furthest.slice(most - d, most + d + 2)); // those of the step before
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && furthest[most + k - 1] < furthest[most + k + 1]);
      let x = down ? furthest[most + k + 1] : furthest[most + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      furthest[most + k] = x;
      if (x >= a.length && x - k >= b.length) return walk(a, b, trace);
    }
  }
  return replaced(a, b);
}

function replaced(a, b) {
  return [...a.map((line) => ({ sign: '-', line })), ...b.map((line) => ({ sign: '+', line }))];
}

// walk goes back the way that was found.
function walk(a, b, trace) {
  const out = [];
  let x = a.length;
  let y = b.length;
  for (let d = trace.length - 1; d >= 0; d--) {
    const at = (k) => trace[d][k + d];
    const k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const fromX = d === 0 ? 0 : at(down ? k + 1 : k - 1);
    const fromY = d === 0 ? 0 : fromX - (down ? k + 1 : k - 1);
    while (x > fromX && y > fromY && (d === 0 || x > fromX + Number(!down) || y > fromY + Number(down))) {
      out.push({ sign: ' ', line: a[--x] });
      y--;
    }
    if (d === 0) break;
    out.push(down ? { sign: '+', line: b[--y] } : { sign: '-', line: a[--x] });
  }
  return out.reverse();
}

const AROUND = 3; // lines that are shown around a change

/** hunks leaves out what has not changed: the pieces are {sign, line}, or {skipped: n}. */
export function hunks(changes) {
  const near = new Uint8Array(changes.length);
  changes.forEach(({ sign }, i) => {
    if (sign !== ' ') near.fill(1, Math.max(0, i - AROUND), i + AROUND + 1);
  });
  const out = [];
  for (let i = 0; i < changes.length; i++) {
    if (near[i]) out.push(changes[i]);
    else if (out.at(-1)?.skipped) out.at(-1).skipped++;
    else out.push({ skipped: 1 });
  }
  return out;
}
