// The Events of a workload, as far as they are loaded: newest first, and the newest looked for again and again.

import { get } from './api.js';
import { STATUSES } from './status.js';

const PAGE = 500;
const HEAD = 50;
const MOST = 5000; // as many as the control plane keeps of an instance

const CHANGE = 'Workload'; // begins the reason of an Event that tells of a change of the workload's status

/** changeOf is the status that an Event tells of; empty if it tells of something else. */
export function changeOf({ reason }) {
  const word = reason.startsWith(CHANGE) ? reason.slice(CHANGE.length) : '';
  return STATUSES.includes(word) ? word : '';
}

/** Events dispatches `change` whenever it has learned something. */
export class Events extends EventTarget {
  items = []; // newest first, each with `at`, its time in milliseconds since 1970
  complete = false;
  problem = null;

  #path;
  #byID = new Map();
  #stop = new AbortController();
  #refreshing = null;

  constructor(path) {
    super();
    this.#path = path;
  }

  stop() { this.#stop.abort(); }

  /** load reads all pages. */
  async load() {
    await this.#try(async () => {
      for (let cursor = ''; ;) {
        const page = await this.#page({ size: PAGE, cursor });
        this.#merge(page.items ?? []);
        cursor = page.next ?? '';
        this.complete = !cursor;
        this.#tell();
        if (!cursor || this.#byID.size >= MOST) return;
      }
    });
  }

  /** refresh reads what is new: pages from the newest on, until one has something that is known and has not changed. */
  async refresh() {
    this.#refreshing ??= this.#try(async () => {
      let changed = false;
      for (let cursor = ''; ;) {
        const page = await this.#page({ size: HEAD, cursor });
        const fresh = this.#merge(page.items ?? []);
        changed ||= fresh > 0;
        cursor = page.next ?? '';
        if (fresh < (page.items ?? []).length || !cursor) break;
      }
      if (changed) this.#tell();
    }).finally(() => { this.#refreshing = null; });
    return this.#refreshing;
  }

  #page(params) {
    return get(this.#path, params, { signal: this.#stop.signal });
  }

  async #try(read) {
    try {
      await read();
      if (this.problem) {
        this.problem = null;
        this.#tell();
      }
    } catch (problem) {
      if (this.#stop.signal.aborted) return;
      this.problem = problem;
      this.#tell();
    }
  }

  #merge(items) {
    let fresh = 0;
    for (const item of items) {
      const have = this.#byID.get(item.id);
      if (have && have.time === item.time && have.count === item.count && have.message === item.message) continue;
      this.#byID.set(item.id, { ...item, at: Date.parse(item.time), from: Date.parse(item.firstTime ?? item.time) });
      fresh++;
    }
    if (fresh) this.items = [...this.#byID.values()].sort((a, b) => b.at - a.at || b.id.length - a.id.length || (a.id < b.id ? 1 : -1));
    return fresh;
  }

  #tell() { this.dispatchEvent(new CustomEvent('change')); }
}
