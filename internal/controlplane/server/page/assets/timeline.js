// The timeline: the workload's health over time, and its Events in a lane for each object. The list below it tells the
// same in words; see eventlist.js.

import { fill, h, icon, s } from './dom.js';
import { changeOf } from './events.js';
import { eventText, involvedKey } from './eventlist.js';
import { known } from './status.js';
import { clip, count, many, middle, plain, said } from './text.js';
import { clock, day, hours, isExact, now, setExact, zone } from './time.js';
import { DAY, HOUR, MINUTE, Span, fit, recent, ticks } from './timescale.js';

const LANES = 10; // objects with a lane of their own; the others share one
const LANE = 26;
const BAND = 30;
const AXIS = 24;
const NEAR = 12; // marks that are closer become one, in pixels
const SPANS = [['15 min', 15 * MINUTE], ['1 h', HOUR], ['24 h', DAY], ['7 d', 7 * DAY]];

/** Timeline draws Events. `look` is called when another piece of time is looked at, `pick` with the Events of a mark. */
export class Timeline {
  span = null;

  #look;
  #pick;
  #events = [];
  #changes = [];
  #gaps = [];
  #workload = null;
  #following = true; // the end of the span moves with the clock
  #untouched = true; // nobody has chosen a span yet
  #labels = h('div', { class: 'lane-labels', 'aria-hidden': 'true' });
  #plot = s('svg', { class: 'plot', 'aria-hidden': 'true' });
  #area;
  #sizes;
  #frame = 0;
  #marks = new Map();

  constructor({ look, pick }) {
    this.#look = look;
    this.#pick = pick;
    this.#area = h('div', {
      class: 'plot-area', tabindex: '0', role: 'group', 'aria-roledescription': 'timeline', 'aria-label': 'Timeline',
      'aria-keyshortcuts': 'ArrowLeft ArrowRight + - 0',
    }, this.#labels, h('div', { class: 'plot-frame' }, this.#plot));
    this.element = h('div', { class: 'timeline' }, this.#buttons(), this.#area, legend());
    this.#listen();
    this.#sizes = new ResizeObserver(() => this.#soon());
    this.#sizes.observe(this.#plot.parentNode);
  }

  stop() {
    this.#sizes.disconnect();
    cancelAnimationFrame(this.#frame);
  }

  /** show takes the Events that pass the filter, all changes of the status, and all gaps. */
  show({ events, changes, gaps, workload }) {
    this.#events = events;
    this.#changes = changes;
    this.#gaps = gaps;
    this.#workload = workload;
    if (this.#untouched && this.span) this.span = recent(this.#times(), now(), this.span.width);
    this.#soon();
  }

  /** tick moves on with the clock, if the end is in sight. */
  tick() {
    if (!this.#following || !this.span) return;
    const end = now() + this.span.length * 0.02;
    this.span = new Span(end - this.span.length, end, this.span.width);
    this.#soon();
  }

  #times() {
    return [...this.#events.map((e) => e.from), ...this.#changes.map((e) => e.at), ...this.#gaps.map((e) => Date.parse(e.gap.first))];
  }

  #set(span, { following = false } = {}) {
    const times = this.#times();
    this.#untouched = false;
    this.span = span.within(Math.min(now() - HOUR, ...times), now());
    this.#following = following || (this.span.to >= now() && this.span.from < now());
    this.#soon();
  }

  #soon() {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  #draw() {
    const width = this.#plot.parentNode.clientWidth;
    if (!width || !this.#workload) return;
    this.span = this.span ? new Span(this.span.from, this.span.to, width) : recent(this.#times(), now(), width);
    const lanes = this.#lanes();
    const height = BAND + lanes.length * LANE + AXIS;
    this.#plot.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.#plot.setAttribute('width', String(width));
    this.#plot.setAttribute('height', String(height));
    this.#marks.clear();
    fill(this.#labels, h('span', { class: 'lane-label band-label' }, 'Health'),
      lanes.map((lane) => h('span', { class: 'lane-label', title: plain(clip(lane.name, 300)) }, lane.kind && h('span', { class: 'kind' }, said(clip(lane.kind, 40))), ' ', said(clip(lane.name, 80)))));
    fill(this.#plot, HATCH(), this.#axis(height), lanes.map((_, i) => s('line', { class: 'rule', x1: 0, x2: width, y1: BAND + i * LANE, y2: BAND + i * LANE })),
      this.#drawGaps(lanes.length), this.#drawBand(), lanes.map((lane, i) => this.#drawLane(lane, BAND + (i + 0.5) * LANE)));
    this.#describe();
    this.#look(this.span);
  }

  // Lanes are the same wherever one looks: objects with warnings first, and then the latest.
  #lanes() {
    const lanes = new Map();
    for (const event of this.#events) {
      if (event.gap) continue; // it is drawn as a gap
      const key = involvedKey(event);
      let lane = lanes.get(key);
      if (!lane) lanes.set(key, lane = { kind: event.involved.kind, name: event.involved.name, events: [], warned: 0, latest: event.at });
      lane.events.push(event);
      if (event.type === 'Warning') lane.warned = Math.max(lane.warned, event.at);
    }
    const all = [...lanes.values()].sort((a, b) => Number(b.warned > 0) - Number(a.warned > 0) || b.latest - a.latest);
    if (all.length <= LANES + 1) return all;
    const rest = all.slice(LANES);
    return [...all.slice(0, LANES), { kind: '', name: many(rest.length, 'other object'), events: rest.flatMap((lane) => lane.events) }];
  }

  #axis(height) {
    const { times, step } = ticks(this.span, 92, zone(this.span.to));
    const label = (t) => {
      if (step >= DAY || (t - zone(t) * MINUTE) % DAY === 0) return day(t);
      return hours(t, { seconds: step < MINUTE });
    };
    const present = this.span.has(now()) && this.span.x(now());
    return s('g', { class: 'axis' },
      times.map((t) => [s('line', { x1: this.span.x(t), x2: this.span.x(t), y1: 0, y2: height - AXIS }),
        s('text', { x: this.span.x(t), y: height - 7, 'text-anchor': 'middle' }, label(t))]),
      present && s('line', { class: 'now', x1: present, x2: present, y1: 0, y2: height - AXIS }));
  }

  // The health is what the last change said, until the next.
  #drawBand() {
    const stretches = this.#stretches();
    return s('g', { class: 'band' }, stretches.map(({ status, from, to }) => {
      const x1 = Math.max(-4, this.span.x(from));
      const x2 = Math.min(this.span.width + 4, this.span.x(to));
      if (x2 < 0 || x1 > this.span.width) return null;
      const width = Math.max(2, x2 - x1);
      const label = Math.max(0, x1);
      return s('g', { 'data-status': status },
        s('title', {}, `${status} from ${clock(from, { seconds: true })} to ${to >= now() ? 'now' : clock(to, { seconds: true })}`),
        s('rect', { x: x1, y: 4, width, height: BAND - 10, rx: 3 }),
        width > 22 && s('use', { href: `#i-${status}`, x: label + 5, y: 8, width: 12, height: 12 }),
        x2 - label > 26 + status.length * 7 && s('text', { x: label + 22, y: 18 }, status));
    }));
  }

  #stretches() {
    const changes = [...this.#changes].sort((a, b) => a.at - b.at).map((e) => ({ status: changeOf(e), from: e.at }));
    const { status, since } = this.#workload;
    const latest = changes.at(-1);
    if (since && latest?.status !== known(status) && Date.parse(since) > (latest?.from ?? 0)) changes.push({ status: known(status), from: Date.parse(since) });
    return changes.map((change, i) => ({ ...change, to: changes[i + 1]?.from ?? now() }));
  }

  #drawGaps(lanes) {
    return this.#gaps.map((event) => {
      const x1 = this.span.x(Date.parse(event.gap.first));
      const x2 = this.span.x(Date.parse(event.gap.last));
      if (x2 < 0 || x1 > this.span.width) return null;
      const lost = event.gap.normal + event.gap.warning;
      const width = Math.max(6, x2 - x1);
      const text = `${count(lost)} ${lost === 1 ? 'Event was' : 'Events were'} lost here`;
      return s('g', { class: 'gap' }, s('title', {}, text),
        s('rect', { x: x1, y: BAND, width, height: Math.max(LANE, lanes * LANE), fill: 'url(#hatch)' }),
        width > 44 && s('text', { x: Math.max(0, x1) + 5, y: BAND + Math.max(LANE, lanes * LANE) - 9 }, width > 150 ? text : `${count(lost)} lost`));
    });
  }

  #drawLane(lane, y) {
    const near = new Map();
    const tails = [];
    for (const event of lane.events) {
      if (event.at < this.span.from || event.from > this.span.to) continue;
      if (event.at - event.from > 0 && this.span.x(event.at) - Math.max(0, this.span.x(event.from)) > NEAR) tails.push(event);
      if (!this.span.has(event.at)) continue;
      const place = Math.floor(this.span.x(event.at) / NEAR);
      near.set(place, [...(near.get(place) ?? []), event]);
    }
    return s('g', { class: 'lane' },
      tails.slice(0, 50).map((e) => s('line', { class: e.type === 'Warning' ? 'tail warning' : 'tail', x1: Math.max(0, this.span.x(e.from)), x2: Math.min(this.span.width, this.span.x(e.at)), y1: y, y2: y })),
      [...near].map(([place, events]) => this.#mark(events, (place + 0.5) * NEAR, y)));
  }

  #mark(events, x, y) {
    const warning = events.some((event) => event.type === 'Warning');
    const times = events.reduce((sum, event) => sum + Math.max(1, event.count ?? 1), 0);
    const size = Math.min(16, 9 + Math.log2(times) * 1.6);
    const at = `${x.toFixed(1)}/${y}`;
    this.#marks.set(at, events);
    return s('g', { class: warning ? 'point warning' : 'point', 'data-point': at },
      s('title', {}, plain(events.slice(0, 6).map((event) => clip(eventText(event), 120)).join('\n')) + (events.length > 6 ? `\n… and ${events.length - 6} more` : '')),
      s('rect', { class: 'target', x: x - 10, y: y - LANE / 2, width: 20, height: LANE }),
      s('use', { href: warning ? '#i-warning' : '#i-normal', x: x - size / 2, y: y - size / 2, width: size, height: size }));
  }

  #describe() {
    const seen = this.#events.filter((event) => this.span.has(event.at));
    const warnings = seen.filter((event) => event.type === 'Warning').length;
    this.#area.setAttribute('aria-label', `Timeline from ${clock(this.span.from)} to ${clock(this.span.to)}: ${many(seen.length, 'Event')}, ` +
      `${many(warnings, 'warning')}. The list below has them. Arrow keys move, plus and minus zoom.`);
  }

  #buttons() {
    const button = (text, label, press) => h('button', { type: 'button', class: 'quiet', 'aria-label': label, onclick: press }, text);
    const exact = h('button', { type: 'button', class: 'quiet', 'aria-pressed': String(isExact()), 'aria-label': 'UTC: exact times', onclick: () => {
      setExact(!isExact());
      exact.setAttribute('aria-pressed', String(isExact()));
      this.#soon();
    } }, 'UTC');
    return h('div', { class: 'timeline-tools' }, exact, h('div', { class: 'zoom', role: 'group', 'aria-label': 'Zoom' },
      button('−', 'Zoom out', () => this.#zoom(2)), button('+', 'Zoom in', () => this.#zoom(0.5)),
      SPANS.map(([text, length]) => button(text, `The last ${text}`, () => this.#set(new Span(now() - length, now() + length * 0.02, this.span.width), { following: true }))),
      button('All', 'All Events', () => this.#all())));
  }

  #all() { this.#set(fit(this.#times(), now(), this.span.width), { following: true }); }

  #zoom(factor, x) { this.#set(this.span.zoomed(factor, this.#following && x === undefined && factor < 1 ? this.span.x(now()) : x)); }

  #listen() {
    this.#area.addEventListener('keydown', (event) => this.#key(event));
    const frame = this.#plot.parentNode;
    frame.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
    frame.addEventListener('click', (event) => {
      const mark = event.target.closest('.point');
      if (mark && this.#marks.has(mark.dataset.point)) this.#pick(this.#marks.get(mark.dataset.point));
    });
    this.#drag(frame);
  }

  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.span) return;
    const quarter = this.span.width / 4;
    const keys = {
      ArrowLeft: () => this.#set(this.span.moved(-quarter)), ArrowRight: () => this.#set(this.span.moved(quarter)),
      '+': () => this.#zoom(0.5), '=': () => this.#zoom(0.5), '-': () => this.#zoom(2), 0: () => this.#all(),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  // The wheel scrolls the page, unless the timeline has the focus: then it zooms. A pinch is a wheel with Ctrl.
  #wheel(event) {
    if (!this.span) return;
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (sideways) this.#set(this.span.moved(event.deltaX));
    else if (event.ctrlKey || event.metaKey || this.#area.contains(document.activeElement)) {
      this.#zoom(1.0015 ** event.deltaY, event.clientX - this.#plot.getBoundingClientRect().left);
    } else return;
    event.preventDefault();
  }

  #drag(frame) {
    const pointers = new Map();
    const middle = () => [...pointers.values()].reduce((sum, x) => sum + x, 0) / pointers.size;
    const apart = () => Math.max(...pointers.values()) - Math.min(...pointers.values());
    frame.addEventListener('pointerdown', (event) => { if (event.button === 0) pointers.set(event.pointerId, event.clientX); });
    frame.addEventListener('pointermove', (event) => {
      if (!pointers.has(event.pointerId) || !this.span) return;
      const [x, distance] = [middle(), apart()];
      pointers.set(event.pointerId, event.clientX);
      if (!frame.hasPointerCapture(event.pointerId) && Math.abs(middle() - x) > 1) frame.setPointerCapture(event.pointerId);
      let span = this.span.moved(x - middle());
      if (pointers.size > 1 && apart() > 10) span = span.zoomed(distance / apart(), middle() - frame.getBoundingClientRect().left);
      this.#set(span);
    });
    for (const end of ['pointerup', 'pointercancel', 'pointerleave']) frame.addEventListener(end, (event) => pointers.delete(event.pointerId));
  }
}

const HATCH = () => s('defs', {}, s('pattern', { id: 'hatch', width: 7, height: 7, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
  s('rect', { class: 'hatch-ground', width: 7, height: 7 }), s('line', { class: 'hatch-line', x1: 0, x2: 0, y1: 0, y2: 7 })));

function legend() {
  return h('ul', { class: 'legend', 'aria-hidden': 'true' },
    h('li', {}, icon('normal'), 'Normal'), h('li', { class: 'warning' }, icon('warning'), 'Warning'),
    h('li', {}, h('span', { class: 'swatch-tail' }), 'repeated since'), h('li', {}, h('span', { class: 'swatch-gap' }), 'Events were lost'),
    h('li', { class: 'hint' }, 'Drag to move; Ctrl and wheel, or pinch, to zoom'));
}
