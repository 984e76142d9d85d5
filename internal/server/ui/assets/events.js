// The Events of a workload, as far as they are loaded: newest first, and the newest looked for again and again. Those
// that are beyond what a page can hold are left out, the oldest first, however long it is open.

import { get } from './api.js';
import { untilAnswered } from './retry.js';
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
  complete = false; // there are no older ones than these
  cut = false; // there are, in the API
  olderProblem = null; // why older ones are not here
  newerProblem = null; // why there may be newer ones

  #path;
  #byID = new Map();
  #stop = new AbortController();
  #older = ''; // cursors: where the next page is that each has to read
  #newer = '';
  #loading = null;
  #refreshing = null;

  constructor(path) {
    super();
    this.#path = path;
  }

  stop() { this.#stop.abort(); }

  /** load reads all pages, from the newest on, or what an earlier load could not read. */
  load() {
    this.#loading ??= this.#try('olderProblem', async (ask) => {
      while (!this.complete && !this.cut) {
        const { items, next } = await ask({ size: PAGE, cursor: this.#older });
        this.#merge(items);
        this.#older = next;
        this.complete = !next && !this.cut;
        this.cut ||= this.items.length === MOST && !this.complete;
        this.#tell();
      }
    }).finally(() => { this.#loading = null; });
    return this.#loading;
  }

  /**
   * refresh reads what is new: pages from the newest on, until one has something that is known and has not changed. One
   * that was broken off goes on where it was, since what lies between is not known.
   */
  refresh() {
    this.#refreshing ??= this.#try('newerProblem', async (ask) => {
      do {
        const { items, next } = await ask({ size: HEAD, cursor: this.#newer });
        const fresh = this.#merge(items);
        this.#newer = fresh === items.length && this.#byID.has(items.at(-1)?.id) ? next : ''; // the last may be cut off already
        if (fresh) this.#tell();
      } while (this.#newer);
    }).finally(() => { this.#refreshing = null; });
    return this.#refreshing;
  }

  async #try(name, read) {
    const { signal } = this.#stop;
    const become = (problem) => {
      if (this[name] === problem) return;
      this[name] = problem;
      this.#tell();
    };
    const ask = async (params) => {
      const { items, next } = await untilAnswered(() => get(this.#path, params, { signal }), { signal, failed: become });
      become(null);
      return { items: items ?? [], next: next ?? '' };
    };
    try {
      await read(ask);
    } catch (problem) {
      if (!signal.aborted) become(problem);
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
    if (!fresh) return 0;
    this.items = [...this.#byID.values()].sort((a, b) => b.at - a.at || b.id.length - a.id.length || (a.id < b.id ? 1 : -1));
    for (const { id } of this.items.splice(MOST)) {
      this.#byID.delete(id);
      this.cut = true;
    }
    return fresh;
  }

  #tell() { this.dispatchEvent(new CustomEvent('change')); }
}
