// What changes, as it changes: the API's server-sent events.
//
// They are read through fetch and not through EventSource, which does not tell a session that has ended from a server
// that is busy, and which forgets the Last-Event-ID once it gives up.

import { ask } from './api.js';

const PATH = '/v0/workloads/watch';
const SILENCE = 45_000; // the server pings; a connection that says nothing for so long is dead, in milliseconds
const HIDDEN = 60_000; // a page that nobody sees for so long lets the connection go
const LONGEST = 15_000;

/**
 * Live keeps a connection. It dispatches `state` when its state changes (connecting, live, lost, paused, refused),
 * `open` with {resumed} when it is connected, `workload` with a row that has changed, and `reset` when what was shown
 * has to be loaded anew.
 */
export class Live extends EventTarget {
  state = 'connecting';
  problem = null;
  heardAt = 0; // by this machine's clock, milliseconds since 1970
  retryAt = 0;

  #path = '';
  #lastID = '';
  #connection = null;
  #wake = () => {};
  #hiding = 0;
  #left = false; // nobody looks: the connection is let go

  /** all is true if it hears of all workloads, and not of one only. */
  all = false;

  /** watchAll connects for the changes of all workloads, and connects again for as long as the page is open. */
  watchAll() {
    if (this.all) return;
    this.all = true;
    this.#watch(PATH);
  }

  /** watchOne does so for one workload's; not if all are watched already. */
  watchOne({ type, id }) {
    if (!this.all) this.#watch(`${PATH}?${new URLSearchParams({ type, id })}`);
  }

  #watch(path) {
    const first = this.#path === '';
    if (path === this.#path) return;
    this.#path = path;
    this.#lastID = ''; // it is a place in another stream
    if (!first) {
      this.#moved = true;
      this.#connection?.abort();
      this.#wake();
      return;
    }
    addEventListener('online', () => this.retry());
    document.addEventListener('visibilitychange', () => this.#seen());
    addEventListener('focus', () => this.#seen());
    // A browser may keep a page that was left, with its connection, for the back button.
    addEventListener('pagehide', () => this.#letGo());
    addEventListener('pageshow', () => { if (this.state === 'paused') this.retry(); });
    this.#run();
  }

  /** signedOut is true if it is refused because there is no session. */
  get signedOut() { return this.state === 'refused' && this.problem?.kind === 'signedOut'; }

  #moved = false; // to another path: there is nothing to wait for

  /** retry does not wait any longer. */
  retry() {
    this.#left = false;
    this.#wake();
  }

  async #run() {
    for (let failures = 0; ; failures++) {
      try {
        await this.#listen(() => { failures = 0; });
        this.problem = null;
      } catch (problem) {
        this.problem = problem.kind ? problem : null; // else it was cut off
      }
      if (!this.#moved) await this.#pause(failures);
      this.#moved = false;
    }
  }

  async #pause(failures) {
    const refused = this.problem?.kind === 'signedOut' || this.problem?.kind === 'forbidden';
    const most = Math.min(LONGEST, 500 * 2 ** failures);
    const delay = Math.max((this.problem?.retryAfter ?? 0) * 1000, most * (0.5 + Math.random() / 2));
    this.retryAt = refused || this.#left ? 0 : Date.now() + delay;
    let state = 'lost';
    if (refused) state = 'refused';
    else if (this.#left) state = 'paused';
    this.#become(state);
    await new Promise((resolve) => {
      const timer = this.retryAt ? setTimeout(resolve, delay) : 0;
      this.#wake = () => { clearTimeout(timer); resolve(); };
    });
    this.#wake = () => {};
  }

  async #listen(opened) {
    const connection = this.#connection = new AbortController();
    let silence = setTimeout(() => connection.abort(), SILENCE);
    try {
      const resumed = this.#lastID !== '';
      const headers = { Accept: 'text/event-stream', ...(resumed && { 'Last-Event-ID': this.#lastID }) };
      const response = await ask(this.#path, { headers, signal: connection.signal });
      opened();
      this.heardAt = Date.now();
      this.problem = null;
      this.#become('live');
      this.dispatchEvent(new CustomEvent('open', { detail: { resumed } }));
      await readEvents(response.body, (event) => this.#take(event), () => {
        this.heardAt = Date.now();
        clearTimeout(silence);
        silence = setTimeout(() => connection.abort(), SILENCE);
      });
    } finally {
      clearTimeout(silence);
      connection.abort();
    }
  }

  #take({ type, data, id }) {
    if (id !== null) this.#lastID = id;
    if (type === 'workload' && data) this.dispatchEvent(new CustomEvent('workload', { detail: JSON.parse(data) }));
    if (type === 'reset') this.dispatchEvent(new CustomEvent('reset'));
  }

  #become(state) {
    this.state = state;
    this.dispatchEvent(new CustomEvent('state'));
  }

  // A browser has six connections to a server for all its tabs together.
  #seen() {
    clearTimeout(this.#hiding);
    if (document.hidden) this.#hiding = setTimeout(() => this.#letGo(), HIDDEN);
    else if (this.state !== 'live' && this.state !== 'connecting') this.retry(); // refused too: one may have signed in elsewhere
  }

  #letGo() {
    this.#left = true;
    this.#connection?.abort();
  }
}

/** readEvents parses a stream as the HTML standard has it, and returns when it ends. */
async function readEvents(body, take, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let event = { type: 'message', data: [], id: null };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    heard();
    const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === '') {
        take({ type: event.type, data: event.data.join('\n'), id: event.id });
        event = { type: 'message', data: [], id: event.id };
        continue;
      }
      const [, field, text] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
      if (field === 'data') event.data.push(text ?? '');
      else if (field === 'event') event.type = text ?? '';
      else if (field === 'id') event.id = text ?? '';
    }
  }
}
