// Live updates: the API's server-sent events.
//
// They are read with fetch. EventSource does not distinguish an ended session from a busy server, and forgets the
// Last-Event-ID when it gives up.

import { request } from './api.js';

const PATH = '/v0/workloads/watch';
const SILENCE_TIMEOUT = 15_000; // the server pings every 5 s: a connection that is silent for longer is dead, in milliseconds
const HIDDEN_TIMEOUT = 60_000; // a page that is hidden for longer closes the connection
const MAX_DELAY = 15_000; // between attempts to connect

/**
 * Live keeps a connection. It dispatches `state` when its state changes (connecting, live, lost, paused, refused), and
 * `open` with {resumed} when it is connected. It dispatches `workload` with a changed row. It dispatches `reset` when events
 * were missed, and everything has to be reloaded.
 */
export class Live extends EventTarget {
  state = 'connecting';
  problem = null;
  receivedAt = 0; // the last data, in milliseconds since 1970 by the browser's clock
  retryAt = 0;

  #path = '';
  #lastID = '';
  #connection = null;
  #wake = () => {};
  #hiding = 0;
  #suspended = false; // the page is hidden, and the connection closed

  /** all is true if all workloads are watched, and not only one. */
  all = false;

  /** watchAll watches all workloads, and reconnects for as long as the page is open. */
  watchAll() {
    if (this.all) return;
    this.all = true;
    this.#watch(PATH);
  }

  /** watchOne watches one workload, unless all are watched already. */
  watchOne({ type, id }) {
    if (!this.all) this.#watch(`${PATH}?${new URLSearchParams({ type, id })}`);
  }

  #watch(path) {
    const first = this.#path === '';
    if (path === this.#path) return;
    this.#path = path;
    this.#lastID = ''; // it belongs to another stream
    if (!first) {
      this.#pathChanged = true;
      this.#connection?.abort();
      this.#wake();
      return;
    }
    addEventListener('online', () => this.retry());
    document.addEventListener('visibilitychange', () => this.#visibilityChanged());
    addEventListener('focus', () => this.#visibilityChanged());
    // A browser may keep the page and its connection for the back button.
    addEventListener('pagehide', () => this.#suspend());
    addEventListener('pageshow', () => { if (this.state === 'paused') this.retry(); });
    this.#run();
  }

  /** signedOut is true if the server refuses because there is no session. */
  get signedOut() { return this.state === 'refused' && this.problem?.kind === 'signedOut'; }

  #pathChanged = false; // connect at once

  /** retry connects at once. */
  retry() {
    this.#suspended = false;
    this.#wake();
  }

  async #run() {
    for (let failures = 0; ; failures++) {
      try {
        await this.#connect(() => { failures = 0; });
        this.problem = null;
      } catch (problem) {
        this.problem = problem.kind ? problem : null; // else the connection broke
      }
      if (!this.#pathChanged) await this.#pause(failures);
      this.#pathChanged = false;
    }
  }

  async #pause(failures) {
    const refused = this.problem?.kind === 'signedOut' || this.problem?.kind === 'forbidden';
    const most = Math.min(MAX_DELAY, 500 * 2 ** failures);
    const delay = Math.max((this.problem?.retryAfter ?? 0) * 1000, most * (0.5 + Math.random() / 2));
    this.retryAt = refused || this.#suspended ? 0 : Date.now() + delay;
    let state = 'lost';
    if (refused) state = 'refused';
    else if (this.#suspended) state = 'paused';
    this.#setState(state);
    await new Promise((resolve) => {
      const timer = this.retryAt ? setTimeout(resolve, delay) : 0;
      this.#wake = () => { clearTimeout(timer); resolve(); };
    });
    this.#wake = () => {};
  }

  async #connect(opened) {
    const connection = this.#connection = new AbortController();
    let silence = setTimeout(() => connection.abort(), SILENCE_TIMEOUT);
    try {
      const resumed = this.#lastID !== '';
      const headers = { Accept: 'text/event-stream', ...(resumed && { 'Last-Event-ID': this.#lastID }) };
      const response = await request(this.#path, { headers, signal: connection.signal });
      opened();
      this.receivedAt = Date.now();
      this.problem = null;
      this.#setState('live');
      this.dispatchEvent(new CustomEvent('open', { detail: { resumed } }));
      await readEvents(response.body, (event) => this.#dispatch(event), () => {
        this.receivedAt = Date.now();
        clearTimeout(silence);
        silence = setTimeout(() => connection.abort(), SILENCE_TIMEOUT);
      });
    } finally {
      clearTimeout(silence);
      connection.abort();
    }
  }

  #dispatch({ type, data, id }) {
    if (id !== null) this.#lastID = id;
    if (type === 'workload' && data) this.dispatchEvent(new CustomEvent('workload', { detail: JSON.parse(data) }));
    if (type === 'reset') this.dispatchEvent(new CustomEvent('reset'));
  }

  #setState(state) {
    this.state = state;
    this.dispatchEvent(new CustomEvent('state'));
  }

  // With HTTP/1.1 a browser has six connections to a server for all its tabs.
  #visibilityChanged() {
    clearTimeout(this.#hiding);
    if (document.hidden) this.#hiding = setTimeout(() => this.#suspend(), HIDDEN_TIMEOUT);
    else if (this.state !== 'live' && this.state !== 'connecting') this.retry(); // refused too: the user may have signed in elsewhere
  }

  #suspend() {
    this.#suspended = true;
    this.#connection?.abort();
  }
}

/** readEvents parses a stream as of the HTML standard, and returns at its end. */
async function readEvents(body, take, received) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let event = { type: 'message', data: [], id: null };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    received();
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
