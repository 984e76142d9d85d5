// Questions that are asked until they are answered.

import { plain } from './text.js';

const FIRST = 1000; // the first pause, in milliseconds; each is twice as long as the one before
const LONGEST = 30_000;

let waiting = new Set(); // what ends each pause that is under way

/** passes is true of a problem that goes away without anybody's doing here: one that it helps to wait for. */
export function passes(problem) {
  return problem.kind === 'unreachable' || problem.kind === 'busy' || (problem.kind === 'broken' && (problem.status === 0 || problem.status >= 500));
}

/** inWords says what a problem is, and whether it is waited for. */
export function inWords(problem) {
  return `${plain(problem.message)}${passes(problem) ? ' Trying again.' : ''}`;
}

/**
 * untilAnswered asks until there is an answer, and returns it. Each problem that passes is told to `failed`, and waited
 * for: as long as the server says, else longer each time. Any other is thrown, and so is the end of `signal`.
 */
export async function untilAnswered(ask, { signal, failed }) {
  for (let failures = 0; ; failures++) {
    try {
      return await ask();
    } catch (problem) {
      if (signal.aborted || !passes(problem)) throw problem;
      failed(problem);
      const most = Math.min(LONGEST, FIRST * 2 ** failures);
      await pause(Math.max(problem.retryAfter * 1000, most * (0.5 + Math.random() / 2)), signal);
    }
  }
}

/** askAgain ends all pauses: somebody cannot wait, or the control plane was heard. */
export function askAgain() {
  const ends = waiting;
  waiting = new Set();
  for (const end of ends) end();
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      resolve();
    };
    const abort = () => {
      clearTimeout(timer);
      waiting.delete(end);
      reject(signal.reason);
    };
    const timer = setTimeout(() => { waiting.delete(end); end(); }, milliseconds);
    waiting.add(end);
    signal.addEventListener('abort', abort);
  });
}
