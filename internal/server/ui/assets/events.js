// The loaded Events of a workload, newest first. New Events are polled. Beyond MAX_EVENTS the oldest are dropped.

import { get } from './api.js';
import { retry } from './retry.js';
import { STATUSES } from './status.js';

const PAGE = 500;
const HEAD = 50;
const MAX_EVENTS = 5000; // as many as the control plane keeps of an instance

// FILTERED is the reason of an Event that counts those which a filter left out. They were not lost, so it is no gap here.
const FILTERED = 'EventsFiltered';

const CHANGE_PREFIX = 'Workload'; // of the reason of an Event about a change of the workload's status

/** changeOf is the new status in an Event about a change of status, and empty for other Events. */
export function changeOf({ reason }) {
  const word = reason.startsWith(CHANGE_PREFIX) ? reason.slice(CHANGE_PREFIX.length) : '';
  return STATUSES.includes(word) ? word : '';
}

/**
 * notHealthySince is when a workload was last Healthy, or its first status if it never was, by its Events, newest first. It is empty if
 * the workload is Healthy, if the time is unknown, or if it is the time of the last change. The Events of several ThreeportWorkloads
 * are not compared.
 */
export function notHealthySince({ items, complete }, status) {
  if (status === 'Healthy') return '';
  const [latest, ...earlier] = items.filter(changeOf);
  if (!latest || changeOf(latest) !== status) return '';
  let began = '';
  for (const event of earlier) {
    if (event.involved?.uid !== latest.involved?.uid) return '';
    if (changeOf(event) === 'Healthy') return began;
    began = event.time;
  }
  return complete ? began : '';
}

/** Events dispatches `change` when its items or its state change. */
export class Events extends EventTarget {
  items = []; // newest first, each with `at`, its time in milliseconds since 1970
  complete = false; // the API has no older Events
  cut = false; // the API has older Events, which are not loaded
  olderProblem = null; // why older Events are missing
  newerProblem = null; // why newer Events may be missing

  #path;
  #byID = new Map();
  #stop = new AbortController();
  #older = ''; // cursor of load
  #newer = ''; // cursor of refresh
  #loading = null;
  #refreshing = null;

  constructor(path) {
    super();
    this.#path = path;
  }

  stop() { this.#stop.abort(); }

  /** load reads all pages, the newest first. After a failure it resumes. */
  load() {
    this.#loading ??= this.#try('olderProblem', async (read) => {
      while (!this.complete && !this.cut) {
        const { items, next } = await read({ size: PAGE, cursor: this.#older });
        this.#merge(items);
        this.#older = next;
        this.complete = !next && !this.cut;
        this.cut ||= this.items.length === MAX_EVENTS && !this.complete;
        this.#emitChange();
      }
    }).finally(() => { this.#loading = null; });
    return this.#loading;
  }

  /**
   * refresh reads new Events: pages from the newest on, until one has a known Event that has not changed. After a failure it
   * resumes, because the Events in between are unknown.
   */
  refresh() {
    this.#refreshing ??= this.#try('newerProblem', async (read) => {
      do {
        const { items, next } = await read({ size: HEAD, cursor: this.#newer });
        const added = this.#merge(items);
        this.#newer = added === items.length && this.#byID.has(items.at(-1)?.id) ? next : ''; // the last item may have been dropped again
        if (added) this.#emitChange();
      } while (this.#newer);
    }).finally(() => { this.#refreshing = null; });
    return this.#refreshing;
  }

  async #try(name, work) {
    const { signal } = this.#stop;
    const setProblem = (problem) => {
      if (this[name] === problem) return;
      this[name] = problem;
      this.#emitChange();
    };
    const read = async (params) => {
      const { items, next } = await retry(() => get(this.#path, params, { signal }), { signal, failed: setProblem });
      setProblem(null);
      return { items: items ?? [], next: next ?? '' };
    };
    try {
      await work(read);
    } catch (problem) {
      if (!signal.aborted) setProblem(problem);
    }
  }

  #merge(items) {
    let added = 0;
    for (const item of items) {
      const known = this.#byID.get(item.id);
      if (known && known.time === item.time && known.count === item.count && known.message === item.message) continue;
      const gap = item.reason === FILTERED ? undefined : item.gap;
      this.#byID.set(item.id, { ...item, gap, at: Date.parse(item.time), from: Date.parse(item.firstTime ?? item.time) });
      added++;
    }
    if (!added) return 0;
    this.items = [...this.#byID.values()].sort((a, b) => b.at - a.at || b.id.length - a.id.length || (a.id < b.id ? 1 : -1));
    for (const { id } of this.items.splice(MAX_EVENTS)) {
      this.#byID.delete(id);
      this.cut = true;
    }
    return added;
  }

  #emitChange() { this.dispatchEvent(new CustomEvent('change')); }
}
