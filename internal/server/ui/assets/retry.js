// Requests that are repeated until they succeed.

import { plain } from './text.js';

const FIRST_DELAY = 1000; // doubles with each failure, in milliseconds
const MAX_DELAY = 30_000;

let waiting = new Set(); // functions that end the pauses under way

/** isTemporary is true for a problem that is worth a retry. */
export function isTemporary(problem) {
  return problem.kind === 'unreachable' || problem.kind === 'busy' || (problem.kind === 'broken' && (problem.status === 0 || problem.status >= 500));
}

/** problemText describes a problem, and whether the page retries. */
export function problemText(problem) {
  return `${plain(problem.message)}${isTemporary(problem) ? ' Retrying.' : ''}`;
}

/**
 * retry sends a request until it succeeds, and returns the answer. For each temporary problem it calls `failed` and waits: as
 * long as the server says, else longer each time. It throws any other problem, and the end of `signal`.
 */
export async function retry(send, { signal, failed }) {
  for (let failures = 0; ; failures++) {
    try {
      return await send();
    } catch (problem) {
      if (signal.aborted || !isTemporary(problem)) throw problem;
      failed(problem);
      const most = Math.min(MAX_DELAY, FIRST_DELAY * 2 ** failures);
      await pause(Math.max(problem.retryAfter * 1000, most * (0.5 + Math.random() / 2)), signal);
    }
  }
}

/** retryNow ends all pauses: the user asks for it, or the control plane is back. */
export function retryNow() {
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
