// The drawing of the timeline: the axis, the status, the gaps, and a row for each object.

import { h, icon, s } from './dom.js';
import { changeOf } from './events.js';
import { eventText, involvedKey } from './eventlist.js';
import { known, lastStatus } from './status.js';
import { clip, count, many, middle, plain, isolated } from './text.js';
import { clock, day, hours, now, zone } from './time.js';
import { DAY, MINUTE, ticks } from './timescale.js';

const LANES = 10; // objects with their own row; the others share one
const LANE = 26; // heights, in pixels
const BAND = 30;
const AXIS = 24;
const LABEL = 92; // minimum distance of labels on the axis
export const NEAR = 12; // closer marks are merged

/** heightOf is the height of a drawing with a number of rows. */
export function heightOf(lanes) {
  return BAND + lanes * LANE + AXIS;
}

/** lanesOf does not depend on the span: objects with warnings come first, and then the latest. */
export function lanesOf(events) {
  const lanes = new Map();
  for (const event of events) {
    if (event.gap || event.lifecycle || changeOf(event)) continue; // drawn across all rows, or as the status
    const key = involvedKey(event);
    let lane = lanes.get(key);
    if (!lane) lanes.set(key, lane = { kind: event.involved.kind, name: event.involved.name, events: [], warned: false, latest: event.at });
    lane.events.push(event);
    lane.warned ||= event.type === 'Warning';
  }
  const all = [...lanes.values()].sort((a, b) => Number(b.warned) - Number(a.warned) || b.latest - a.latest);
  if (all.length <= LANES + 1) return all;
  const rest = all.slice(LANES);
  return [...all.slice(0, LANES), { kind: '', name: many(rest.length, 'other object'), events: rest.flatMap((lane) => lane.events) }];
}

/** labels are beside the drawing. Names are cut in the middle, because those of pods differ at the end. */
export function labels(lanes) {
  return [h('span', { class: 'lane-label band-label' }, 'Health'), lanes.map(({ kind, name }) => h('span', { class: 'lane-label', title: plain(`${clip(kind, 40)} ${clip(name, 300)}`.trim()) },
    kind && h('span', { class: 'kind' }, isolated(clip(kind, 40))), middle(name)))];
}

/**
 * statusSpans are {status, from, to, lasts} of a workload: a status lasts until the next change, and the last one until now. With
 * an offline agent it lasts until the last report. During earlier silences of the agent it was Unknown.
 */
export function statusSpans(changes, { status, silent, said: reported, since, heardAt }, silences = []) {
  const all = [...changes].sort((a, b) => a.at - b.at).map((event) => ({ status: changeOf(event), from: event.at }));
  const held = known(lastStatus({ status, silent, said: reported }));
  const start = Date.parse(since ?? '');
  if (all.at(-1)?.status !== held && start > (all.at(-1)?.from ?? 0)) all.push({ status: held, from: start });
  const heard = Date.parse(heardAt ?? '');
  if (silent && heard) all.push({ status: 'Unknown', from: Math.max(heard, all.at(-1)?.from ?? 0) });
  const spans = all.map((stretch, i) => ({ ...stretch, to: all[i + 1]?.from ?? now(), lasts: i === all.length - 1 }));
  return silences.reduce(interrupt, spans);
}

// interrupt makes a status Unknown that the agent could not see: until the end of the silence, or the first change that was reported
// later.
function interrupt(spans, silence) {
  return spans.flatMap((span) => {
    const from = Date.parse(silence.from);
    const to = Math.min(span.to, Date.parse(silence.to));
    if (from < span.from || from >= to) return [span];
    return [{ ...span, to: from, lasts: false }, { status: 'Unknown', from, to, lasts: false }, { ...span, from: to }].filter((part) => part.from < part.to);
  });
}

/** drawRest draws everything below the marks. */
export function drawRest(span, lanes, health, gaps) {
  const rules = lanes.map((_, i) => s('line', { class: 'rule', x1: 0, x2: span.width, y1: BAND + i * LANE, y2: BAND + i * LANE }));
  return [hatch(), axis(span, heightOf(lanes.length)), rules, gaps.map((gap) => drawGap(span, gap, Math.max(1, lanes.length) * LANE)), band(span, health)];
}

function axis(span, height) {
  const { times, step } = ticks(span, LABEL, zone(span.to));
  const label = (t) => (step >= DAY || (t - zone(t) * MINUTE) % DAY === 0 ? day(t) : hours(t, { seconds: step < MINUTE }));
  // A label at an end is beside its line, where it fits.
  const anchor = (x) => {
    if (x < LABEL / 2) return 'start';
    return x > span.width - LABEL / 2 ? 'end' : 'middle';
  };
  const present = span.has(now()) && span.x(now());
  return s('g', { class: 'axis' },
    times.map((t) => [s('line', { x1: span.x(t), x2: span.x(t), y1: 0, y2: height - AXIS }),
      s('text', { x: span.x(t), y: height - 7, 'text-anchor': anchor(span.x(t)) }, label(t))]),
    present && s('line', { class: 'now', x1: present, x2: present, y1: 0, y2: height - AXIS }));
}

function band(span, health) {
  return s('g', { class: 'band' }, health.map(({ status, from, to, lasts }) => {
    const x1 = Math.max(-4, span.x(from));
    const x2 = Math.min(span.width + 4, span.x(to));
    if (x2 < 0 || x1 > span.width) return null;
    const width = Math.max(2, x2 - x1);
    const label = Math.max(0, x1);
    return s('g', { 'data-status': status },
      s('title', {}, `${status} from ${clock(from, { seconds: true })} to ${lasts ? 'now' : clock(to, { seconds: true })}`),
      s('rect', { class: lasts && 'still', x: x1, y: 4, width, height: BAND - 10, rx: 3 }),
      width > 22 && s('use', { href: `#i-${status}`, x: label + 5, y: 8, width: 12, height: 12 }),
      x2 - label > 26 + status.length * 7 && s('text', { x: label + 22, y: 18 }, status));
  }));
}

function drawGap(span, { gap }, height) {
  const x1 = span.x(Date.parse(gap.first));
  const x2 = span.x(Date.parse(gap.last));
  if (x2 < 0 || x1 > span.width) return null;
  const lost = gap.normal + gap.warning;
  const width = Math.max(6, x2 - x1);
  const text = `${many(lost, 'Event was', 'Events were')} dropped here`;
  return s('g', { class: 'gap' }, s('title', {}, text),
    s('rect', { x: x1, y: BAND, width, height, fill: 'url(#hatch)' }),
    width > 44 && s('text', { x: Math.max(0, x1) + 5, y: BAND + height - 9 }, width > 150 ? text : `${count(lost)} dropped`));
}

/** drawLane draws the marks of a row, and adds their Events to `marks`. */
export function drawLane(span, { events }, index, marks) {
  const y = BAND + (index + 0.5) * LANE;
  const tails = [];
  for (const event of events) {
    if (event.at < span.from || event.from > span.to) continue;
    if (tails.length < 50 && span.x(event.at) - Math.max(0, span.x(event.from)) > NEAR) tails.push(event);
  }
  return s('g', { class: 'lane' },
    tails.map((e) => s('line', { class: e.type === 'Warning' ? 'tail warning' : 'tail', x1: Math.max(0, span.x(e.from)), x2: Math.min(span.width, span.x(e.at)), y1: y, y2: y })),
    merge(span, events).map(({ place, x, those }) => {
      const at = `${place}/${index}`;
      marks.set(at, those);
      return drawMark(those, at, x, y);
    }));
}

// merge returns the visible Events by place. Places are aligned to the clock, so marks stay merged while the span moves.
function merge(span, events) {
  const each = (NEAR / span.width) * span.length;
  const near = Map.groupBy(events.filter(({ at }) => span.has(at)), ({ at }) => Math.floor(at / each));
  return [...near].map(([place, those]) => ({ place, x: span.x((place + 0.5) * each), those }));
}

const LIFECYCLE = ['deleted', 'specChanged', 'created']; // the first of merged ones is drawn

/** drawLifecycle draws creations, changes and deletions of objects as lines across all rows, and adds them to `marks`. */
export function drawLifecycle(span, events, height, marks) {
  return s('g', {}, merge(span, events.filter(({ lifecycle }) => lifecycle)).map(({ place, x, those }) => {
    const at = `${place}/lifecycle`;
    marks.set(at, those);
    const name = LIFECYCLE.find((each) => those.some(({ lifecycle }) => lifecycle === each));
    return s('g', { class: `point lifecycle ${name}`, 'data-point': at },
      s('rect', { class: 'target', x: x - 6, y: 0, width: 12, height: BAND }), s('line', { x1: x, x2: x, y1: 0, y2: height - AXIS }),
      s('use', { href: `#i-${name}`, x: x - 5, y: height - AXIS - 6, width: 10, height: 10 }));
  }));
}

function drawMark(events, at, x, y) {
  const warning = events.some((event) => event.type === 'Warning');
  const times = events.reduce((sum, event) => sum + Math.max(1, event.count ?? 1), 0);
  const size = Math.min(16, 9 + Math.log2(times) * 1.6);
  return s('g', { class: warning ? 'point warning' : 'point', 'data-point': at },
    s('rect', { class: 'target', x: x - 10, y: y - LANE / 2, width: 20, height: LANE }),
    s('use', { href: warning ? '#i-warning' : '#i-normal', x: x - size / 2, y: y - size / 2, width: size, height: size }));
}

/** nameMark adds a tooltip to a mark, on the first hover. */
export function nameMark(mark, events) {
  if (mark.querySelector('title')) return;
  const lines = events.slice(0, 6).map((event) => plain(clip(eventText(event), 120)));
  if (events.length > 6) lines.push(`… and ${count(events.length - 6)} more`);
  mark.prepend(s('title', {}, lines.join('\n')));
}

/** movePresent moves the end of everything that ends now, without drawing the rest again. */
export function movePresent(picture, span) {
  const x = span.x(now());
  const line = picture.querySelector('.now');
  if (!line || Math.abs(x - Number(line.getAttribute('x1'))) < 1) return;
  line.setAttribute('x1', x);
  line.setAttribute('x2', x);
  const still = picture.querySelector('.still');
  still?.setAttribute('width', Math.max(2, Math.min(span.width + 4, x) - Number(still.getAttribute('x'))));
}

function hatch() {
  return s('defs', {}, s('pattern', { id: 'hatch', width: 7, height: 7, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    s('rect', { class: 'hatch-ground', width: 7, height: 7 }), s('line', { class: 'hatch-line', x1: 0, x2: 0, y1: 0, y2: 7 })));
}

/** legend explains the symbols. */
export function legend() {
  return h('ul', { class: 'legend', 'aria-hidden': 'true' },
    h('li', {}, icon('normal'), 'Normal'), h('li', { class: 'warning' }, icon('warning'), 'Warning'),
    h('li', {}, h('span', { class: 'swatch-tail' }), 'repeated since'), h('li', { class: 'created' }, icon('created'), 'object created'),
    h('li', { class: 'specChanged' }, icon('specChanged'), 'spec changed'), h('li', { class: 'deleted' }, icon('deleted'), 'object deleted'), h('li', {}, h('span', { class: 'swatch-gap' }), 'Events were dropped'),
    h('li', { class: 'hint' }, 'Drag to move; Ctrl and wheel, or pinch, to zoom'));
}
