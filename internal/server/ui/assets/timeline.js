// The timeline: the workload's status over time, and its Events in a row for each object. The list below has the same as
// text (eventlist.js).

import { fill, h, later, s } from './dom.js';
import { Drag } from './drag.js';
import { NEAR, drawLane, drawLifecycle, drawRest, heightOf, labels, lanesOf, legend, movePresent, nameMark, statusSpans } from './plot.js';
import { many } from './text.js';
import { clock, now } from './time.js';
import { DAY, HOUR, LONGEST, MINUTE, SHORTEST, Span, between, fit, last, readLength, recent, writeLength } from './timescale.js';

const SPANS = [['15 min', 15 * MINUTE], ['1 h', HOUR], ['24 h', DAY], ['7 d', 7 * DAY]];

/**
 * Timeline draws Events. It calls `show` with the Events of the visible span, `pick` with the Events of a clicked mark, and
 * `write` with parameters for the address after the user has selected another span.
 */
export class Timeline {
  #calls;
  #span = null;
  #mode = 'recent'; // `recent` and `all` follow the Events, `last` follows the clock, `fixed` stays
  #ahead = 0; // from now to the end of a span that is not fixed, in milliseconds
  #read = '  '; // the span in the address
  #events = [];
  #gaps = [];
  #changes = [];
  #lanes = [];
  #workload = null;
  #silences = [];
  #health = ''; // the status as drawn
  #shownEvents = {}; // the last arguments of show
  #labels = h('div', { class: 'lane-labels', 'aria-hidden': 'true' });
  #plot = s('svg', { class: 'plot', 'aria-hidden': 'true' });
  #area;
  #drag;
  #sizes;
  #frame = 0;
  #marks = new Map();
  #tell = later(250, () => {
    const params = this.#params();
    this.#read = keyOf((name) => params[name]);
    this.#calls.write(params);
  });

  constructor({ show, pick, write }) {
    this.#calls = { show, pick, write };
    this.#area = h('div', {
      class: 'plot-area', tabindex: '0', role: 'group', 'aria-roledescription': 'timeline', 'aria-label': 'Timeline',
      'aria-keyshortcuts': 'ArrowLeft ArrowRight + - 0',
    }, this.#labels, h('div', { class: 'plot-frame' }, this.#plot));
    this.element = h('div', { class: 'timeline' }, this.#buttons(), this.#area, legend());
    this.#listen();
    this.#sizes = new ResizeObserver(() => this.#drawSoon());
    this.#sizes.observe(this.#plot.parentNode);
  }

  stop() {
    this.#tell.cancel();
    this.#sizes.disconnect();
    cancelAnimationFrame(this.#frame);
  }

  /** focus moves the focus to the timeline. */
  focus() { this.#area.focus({ preventScroll: true }); }

  /** show draws the filtered Events, newest first, with all changes of the status and all gaps. */
  show({ events, changes, gaps, workload, silences = [] }) {
    const { status, silent, said, since, heardAt } = workload;
    const health = JSON.stringify([status, silent, said, since, silent && heardAt, silences]);
    if (health === this.#health && same(events, this.#events) && same(changes, this.#changes) && same(gaps, this.#gaps)) return;
    this.#health = health;
    this.#events = events;
    this.#changes = changes;
    this.#gaps = gaps;
    this.#workload = workload;
    this.#silences = silences;
    this.#lanes = lanesOf(events);
    if (this.#span) this.#span = this.#spanOf(this.#span.width) ?? this.#span;
    this.#drawSoon();
  }

  /** read applies the span of an address: `last` is a duration or `all`, else `from` and `to` are times. */
  read(params) {
    const wanted = keyOf((name) => params.get(name));
    if (wanted === this.#read) return;
    this.#read = wanted;
    this.#tell.cancel();
    const width = this.#span?.width ?? 1;
    const [from, to] = [Date.parse(params.get('from') ?? ''), Date.parse(params.get('to') ?? '')];
    const length = readLength(params.get('last') ?? '');
    if (length) this.#place(last(length, now(), width), 'last');
    else if (to - from >= SHORTEST && to - from <= LONGEST) this.#place(new Span(from, to, width));
    else {
      this.#mode = params.get('last') === 'all' ? 'all' : 'recent';
      this.#span = null; // #draw finds it
    }
    this.#drawSoon();
  }

  #params() {
    const { from, to, length } = this.#span;
    if (this.#mode === 'all') return { last: 'all', from: '', to: '' };
    if (this.#mode === 'last' && this.#ahead < length * 0.05) return { last: writeLength(now() - from), from: '', to: '' };
    return { last: '', from: whole(from), to: whole(to) };
  }

  /** redraw draws again, in another time zone. */
  redraw() { this.#drawSoon(); }

  /** tick follows the clock, unless the span is fixed or a pointer is down. */
  tick() {
    if (this.#mode === 'fixed' || !this.#span || this.#drag.held) return;
    const end = now() + this.#ahead;
    const moved = this.#span.x(end) - this.#span.width;
    const aheadWidth = (this.#ahead / this.#span.length) * this.#span.width;
    if (moved < Math.max(1, Math.min(NEAR, aheadWidth))) movePresent(this.#plot, this.#span);
    else {
      this.#span = new Span(end - this.#span.length, end, this.#span.width);
      this.#drawSoon();
    }
  }

  // The times of everything that is drawn, with the start of the current status. Creations are often too long ago to be in the span.
  #times({ lifecycle = false } = {}) {
    const since = Date.parse(this.#workload?.since ?? '');
    return [...this.#events.filter((e) => lifecycle || !e.lifecycle).map((e) => e.from), ...this.#changes.map((e) => e.at), ...this.#gaps.map((e) => Date.parse(e.gap.first)), ...(since ? [since] : [])];
  }

  // The span of a mode that follows the Events.
  #spanOf(width) {
    if (this.#mode !== 'recent' && this.#mode !== 'all') return null;
    const span = (this.#mode === 'all' ? fit : recent)(this.#times(), now(), width);
    this.#ahead = span.to - now();
    return span;
  }

  #place(span, mode = span.to >= now() && span.from < now() ? 'last' : 'fixed') {
    this.#mode = mode;
    this.#span = span;
    this.#ahead = span.to - now();
  }

  // The user's choice.
  #set(span) {
    this.#place(span.within(this.#times({ lifecycle: true }).reduce((a, b) => Math.min(a, b), now() - HOUR), now()));
    this.#tell();
    this.#drawSoon();
  }

  #drawSoon() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  #draw() {
    const width = this.#plot.parentNode.clientWidth;
    if (!width || !this.#workload || this.#drag.pressed) return;
    const span = this.#span = this.#span ? new Span(this.#span.from, this.#span.to, width) : this.#spanOf(width);
    const height = heightOf(this.#lanes.length);
    this.#plot.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.#plot.setAttribute('width', String(width));
    this.#plot.setAttribute('height', String(height));
    this.#marks.clear();
    fill(this.#labels, labels(this.#lanes));
    fill(this.#plot, drawRest(span, this.#lanes, statusSpans(this.#changes, this.#workload, this.#silences), this.#gaps),
      this.#lanes.map((lane, i) => drawLane(span, lane, i, this.#marks)), drawLifecycle(span, this.#events, height, this.#marks));
    this.#showEvents(between(this.#events, span));
  }

  #showEvents(seen) {
    const warnings = seen.filter((event) => event.type === 'Warning').length;
    this.#area.setAttribute('aria-label', `Timeline from ${clock(this.#span.from)} to ${clock(this.#span.to)}: ${many(seen.length, 'Event')}, ` +
      `${many(warnings, 'warning')}. The list below has the details. Arrow keys move, plus and minus zoom.`);
    const { of, first, length } = this.#shownEvents;
    if (of === this.#events && first === seen[0] && length === seen.length) return;
    this.#shownEvents = { of: this.#events, first: seen[0], length: seen.length };
    this.#calls.show(seen, this.#events.length);
  }

  #buttons() {
    const button = (text, label, press) => h('button', { type: 'button', class: 'quiet', 'aria-label': label, onclick: press }, text);
    return h('div', { class: 'timeline-tools' }, h('div', { class: 'zoom', role: 'group', 'aria-label': 'Zoom' },
      button('−', 'Zoom out', () => this.#zoom(2)), button('+', 'Zoom in', () => this.#zoom(0.5)),
      SPANS.map(([text, length]) => button(text, `The last ${text}`, () => this.#set(last(length, now(), this.#span.width)))),
      button('All', 'All Events', () => this.#all())));
  }

  #all() {
    this.#mode = 'all';
    this.#span = this.#spanOf(this.#span.width);
    this.#tell();
    this.#drawSoon();
  }

  // The present keeps its place if it is visible, else the centre does.
  #zoom(factor, x = this.#mode === 'fixed' ? undefined : this.#span.x(now())) { this.#set(this.#span.zoomed(factor, x)); }

  #listen() {
    const frame = this.#plot.parentNode;
    this.#area.addEventListener('keydown', (event) => this.#key(event));
    frame.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
    const onMark = (call) => ({ target }) => {
      const mark = target.closest('.point');
      if (mark) call(this.#marks.get(mark.dataset.point), mark);
    };
    frame.addEventListener('click', onMark((events) => this.#calls.pick(events)));
    frame.addEventListener('pointerover', onMark((events, mark) => nameMark(mark, events)));
    this.#drag = new Drag(frame, {
      moved: (pixels) => this.#set(this.#span.moved(pixels)),
      pinched: (factor, x) => this.#zoom(factor, x),
      released: () => this.#drawSoon(),
    });
  }

  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.#span) return;
    const quarter = this.#span.width / 4;
    const keys = {
      ArrowLeft: () => this.#set(this.#span.moved(-quarter)), ArrowRight: () => this.#set(this.#span.moved(quarter)),
      '+': () => this.#zoom(0.5), '=': () => this.#zoom(0.5), '-': () => this.#zoom(2), 0: () => this.#all(),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  // The wheel scrolls the page, or zooms if the timeline has the focus. A pinch arrives as a wheel with Ctrl.
  #wheel(event) {
    if (!this.#span) return;
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (sideways) this.#set(this.#span.moved(event.deltaX));
    else if (event.ctrlKey || event.metaKey || this.#area.contains(document.activeElement)) {
      this.#zoom(1.0015 ** event.deltaY, event.clientX - this.#plot.getBoundingClientRect().left);
    } else return;
    event.preventDefault();
  }
}

// keyOf is the span of an address as one text.
function keyOf(value) {
  return ['last', 'from', 'to'].map((name) => value(name) ?? '').join(' ');
}

function same(one, other) {
  return one.length === other.length && one.every((event, i) => event === other[i]);
}

/** whole is a time to the second, as an address has it. */
function whole(time) {
  return new Date(Math.round(time / 1000) * 1000).toISOString().replace('.000', '');
}
