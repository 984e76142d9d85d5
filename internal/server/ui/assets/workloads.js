// All loaded workloads, kept up to date by Live.
//
// The browser holds every row, so filters, counts and sorting respond at once. Rows are loaded worst first, because the first
// page matters most.

import { get } from './api.js';
import { retryNow, retry } from './retry.js';
import { keyOf, known } from './status.js';

const FIRST_PAGE = 200; // to have something to show soon
const PAGE = 1000;
const MAX_ROWS = 50_000; // that the browser holds

/** newer compares versions of a row: decimal integers as text. */
function newer(a, b) {
  return a.length === b.length ? a > b : a.length > b.length;
}

/**
 * Workloads dispatches `change` with {keys} of the rows that Live has changed, which are none after a load. The rows are
 * complete when loading is false and problem is null. With a problem while loading, it retries.
 */
export class Workloads extends EventTarget {
  rows = new Map();
  total = 0;
  loading = true;
  problem = null;
  beyond = 0; // rows beyond MAX_ROWS, which are not loaded

  #gone = new Map(); // versions of rows that were deleted during a load
  #updated = new Set(); // rows that Live has updated during a load
  #pending = new Set();
  #load = null;

  constructor(live) {
    super();
    live.addEventListener('open', ({ detail }) => {
      if (!live.all) return;
      if (detail.resumed && this.#load) retryNow();
      else if (!detail.resumed || this.problem) this.load();
    });
    live.addEventListener('reset', () => { if (live.all) this.load(); });
    live.addEventListener('workload', ({ detail }) => { if (live.all) this.#update(detail); });
    live.addEventListener('state', () => {
      const { all, state, problem } = live;
      if (all && !this.#load && this.rows.size === 0 && problem && (state === 'lost' || state === 'refused')) this.#fail(problem);
    });
  }

  /** load reads all pages. Newer updates that arrive meanwhile win. */
  async load() {
    this.#load?.abort();
    const { signal } = this.#load = new AbortController();
    this.loading = true;
    this.problem = null;
    this.#gone.clear();
    this.#updated.clear();
    const seen = new Set();
    try {
      await this.#pages(seen, signal);
    } catch (problem) {
      if (signal.aborted) return;
      this.#load = null;
      this.#fail(problem);
      return;
    }
    this.#load = null;
    for (const key of this.rows.keys()) if (!seen.has(key) && !this.#updated.has(key)) this.rows.delete(key);
    this.loading = false;
    this.#emitChange();
  }

  async #pages(seen, signal) {
    for (let cursor = '', size = FIRST_PAGE; ; size = PAGE) {
      const page = await retry(() => get('/v0/workloads', { sort: 'worst', size, cursor }, { signal }), {
        signal, failed: (problem) => { this.problem = problem; this.#emitChange(); },
      });
      this.problem = null;
      this.total = page.total;
      for (const row of page.items ?? []) {
        seen.add(keyOf(row));
        this.#put(row);
      }
      cursor = page.next ?? '';
      this.beyond = cursor && seen.size >= MAX_ROWS ? page.total - seen.size : 0;
      if (!cursor || this.beyond) return;
      this.#emitChange();
    }
  }

  #fail(problem) {
    this.loading = false;
    this.problem = problem;
    this.#emitChange();
  }

  #put(row) {
    const key = keyOf(row);
    const current = this.rows.get(key);
    const gone = this.#gone.get(key);
    if ((current && !newer(row.changed, current.changed)) || (gone && !newer(row.changed, gone))) return false;
    this.rows.set(key, row);
    return true;
  }

  #update(row) {
    const key = keyOf(row);
    if (this.loading) this.#updated.add(key);
    if (row.gone) {
      if (this.loading) this.#gone.set(key, row.changed);
      this.rows.delete(key);
    } else if (!this.#put(row)) {
      return;
    }
    this.#pending.add(key);
    if (this.#pending.size === 1) setTimeout(() => this.#emitChange(), 100); // an agent that goes offline changes hundreds of rows
  }

  #emitChange() {
    if (!this.loading && !this.problem) this.total = this.rows.size + this.beyond;
    const keys = this.#pending;
    this.#pending = new Set();
    this.dispatchEvent(new CustomEvent('change', { detail: { keys } }));
  }

  /** counts has the number of rows of each status. */
  counts() {
    const counts = new Map();
    for (const row of this.rows.values()) {
      const status = known(row.status);
      counts.set(status, (counts.get(status) ?? 0) + 1);
    }
    return counts;
  }
}
