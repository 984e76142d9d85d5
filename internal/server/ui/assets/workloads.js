// All workloads, as far as they are loaded, kept up to date by what Live hears.
//
// The browser holds every row: filters, counts and order are its own then, and answer at once. The rows come worst
// first, so that the first page is what matters.

import { get } from './api.js';
import { askAgain, untilAnswered } from './retry.js';
import { keyOf, known } from './status.js';

const FIRST_PAGE = 200; // to have something to show soon
const PAGE = 1000;
const MOST = 50_000; // rows that a browser has to hold

/** newer compares versions of a row: decimal integers, as texts. */
function newer(a, b) {
  return a.length === b.length ? a > b : a.length > b.length;
}

/**
 * Workloads dispatches `change` with {keys}, those of the rows that were told of as changed; none after a load. They
 * are complete once loading is false and problem is null. While it is loading in spite of a problem, it tries again.
 */
export class Workloads extends EventTarget {
  rows = new Map();
  total = 0;
  loading = true;
  problem = null;
  beyond = 0; // rows that are left out, being more than a browser can hold

  #gone = new Map(); // versions of rows that went while a load is under way
  #told = new Set(); // rows that were told of while a load is under way
  #pending = new Set();
  #load = null;

  constructor(live) {
    super();
    live.addEventListener('open', ({ detail }) => {
      if (!live.all) return;
      if (detail.resumed && this.#load) askAgain();
      else if (!detail.resumed || this.problem) this.load();
    });
    live.addEventListener('reset', () => { if (live.all) this.load(); });
    live.addEventListener('workload', ({ detail }) => { if (live.all) this.#hear(detail); });
    live.addEventListener('state', () => {
      const { all, state, problem } = live;
      if (all && !this.#load && this.rows.size === 0 && problem && (state === 'lost' || state === 'refused')) this.#fail(problem);
    });
  }

  /** load reads all pages. What is heard meanwhile stays if it is newer than what they say. */
  async load() {
    this.#load?.abort();
    const { signal } = this.#load = new AbortController();
    this.loading = true;
    this.problem = null;
    this.#gone.clear();
    this.#told.clear();
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
    for (const key of this.rows.keys()) if (!seen.has(key) && !this.#told.has(key)) this.rows.delete(key);
    this.loading = false;
    this.#tell();
  }

  async #pages(seen, signal) {
    for (let cursor = '', size = FIRST_PAGE; ; size = PAGE) {
      const page = await untilAnswered(() => get('/v0/workloads', { sort: 'worst', size, cursor }, { signal }), {
        signal, failed: (problem) => { this.problem = problem; this.#tell(); },
      });
      this.problem = null;
      this.total = page.total;
      for (const row of page.items ?? []) {
        seen.add(keyOf(row));
        this.#put(row);
      }
      cursor = page.next ?? '';
      this.beyond = cursor && seen.size >= MOST ? page.total - seen.size : 0;
      if (!cursor || this.beyond) return;
      this.#tell();
    }
  }

  #fail(problem) {
    this.loading = false;
    this.problem = problem;
    this.#tell();
  }

  #put(row) {
    const key = keyOf(row);
    const have = this.rows.get(key);
    const gone = this.#gone.get(key);
    if ((have && !newer(row.changed, have.changed)) || (gone && !newer(row.changed, gone))) return false;
    this.rows.set(key, row);
    return true;
  }

  #hear(row) {
    const key = keyOf(row);
    if (this.loading) this.#told.add(key);
    if (row.gone) {
      if (this.loading) this.#gone.set(key, row.changed);
      this.rows.delete(key);
    } else if (!this.#put(row)) {
      return;
    }
    this.#pending.add(key);
    if (this.#pending.size === 1) setTimeout(() => this.#tell(), 100); // a cluster that falls silent changes hundreds
  }

  #tell() {
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
