// The scale of the timeline. Pure: no clock, no document. Times are milliseconds since 1970.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const STEPS = [
  SECOND, 5 * SECOND, 15 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY, 365 * DAY,
];

export const SHORTEST = 10 * SECOND; // the shortest span
export const LONGEST = 3650 * DAY;

/** Span is a time span on a number of pixels. */
export class Span {
  constructor(from, to, width) {
    this.from = from;
    this.to = to;
    this.width = Math.max(1, width);
  }

  get length() { return this.to - this.from; }

  /** x is the position of a time. */
  x(time) { return ((time - this.from) / this.length) * this.width; }

  /** at is the time of a position. */
  at(x) { return this.from + (x / this.width) * this.length; }

  has(time) { return time >= this.from && time <= this.to; }

  /** zoomed is shorter for a factor below 1; the time at x keeps its position. */
  zoomed(factor, x = this.width / 2) {
    const length = Math.min(LONGEST, Math.max(SHORTEST, this.length * factor));
    const from = this.at(x) - (x / this.width) * length;
    return new Span(from, from + length, this.width);
  }

  /** moved is shifted by a number of pixels; positive is later. */
  moved(pixels) {
    const by = (pixels / this.width) * this.length;
    return new Span(this.from + by, this.to + by, this.width);
  }

  /** within is shifted so that at least half of it, or the whole range, is between two times. */
  within(first, last) {
    const share = Math.min(this.length / 2, last - first);
    const from = Math.max(first + share - this.length, Math.min(last - share, this.from));
    return new Span(from, from + this.length, this.width);
  }
}

/** ticks are the round times of a span at a minimum distance in pixels: {times, step}. `zone` is minutes behind UTC. */
export function ticks(span, apart, zone) {
  const least = (apart / span.width) * span.length;
  const step = STEPS.find((size) => size >= least) ?? Math.ceil(least / (365 * DAY)) * 365 * DAY;
  const offset = zone * MINUTE;
  const times = [];
  for (let t = Math.ceil((span.from - offset) / step) * step + offset; t <= span.to; t += step) times.push(t);
  return { times, step };
}

/** fit is the span of all times up to now, with a margin; without times the last hour. */
export function fit(times, now, width) {
  const first = times.reduce((a, b) => Math.min(a, b), now - (times.length ? MINUTE : HOUR));
  const margin = Math.max(2 * SECOND, (now - first) * 0.03);
  return new Span(first - margin, now + margin, width);
}

/** recent is the shortest of the usual spans that has most of the latest times, else all. */
export function recent(times, now, width) {
  const latest = [...times].sort((a, b) => b - a).slice(0, 40);
  for (const length of [15 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY]) {
    const inside = latest.filter((t) => t >= now - length).length;
    if (inside >= Math.max(1, latest.length * 0.8)) return last(length, now, width);
  }
  return fit(times, now, width);
}

/** last is the span of a duration until now, with a margin. */
export function last(length, now, width) {
  return new Span(now - length, now + length * 0.02, width);
}

const UNITS = [[DAY, 'd'], [HOUR, 'h'], [MINUTE, 'm'], [SECOND, 's']];

/** writeLength writes a duration for an address: 15m. */
export function writeLength(length) {
  const whole = Math.round(length / SECOND) * SECOND;
  const [size, unit] = UNITS.find(([each]) => whole % each === 0);
  return `${whole / size}${unit}`;
}

/** readLength parses a duration of writeLength; 0 for any other text. */
export function readLength(text) {
  const [, n, unit] = /^(\d{1,9})([dhms])$/.exec(text) ?? [];
  const [size] = UNITS.find(([, name]) => name === unit) ?? [0];
  const length = Number(n ?? 0) * size;
  return length >= SHORTEST && length <= LONGEST ? length : 0;
}

/** between is the part of a sorted list, latest first, whose times are in a span. */
export function between(list, { from, to }) {
  return list.slice(place(list, (item) => item.at <= to), place(list, (item) => item.at < from));
}

// place is the index of the first item for which a monotonic test holds.
function place(list, holds) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(list[middle])) high = middle; else low = middle + 1;
  }
  return low;
}

export { DAY, HOUR, MINUTE, SECOND };
