// Time as a place on a line. Pure: no clock, no document. Times are milliseconds since 1970.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const STEPS = [
  SECOND, 5 * SECOND, 15 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY, 365 * DAY,
];

export const SHORTEST = 10 * SECOND; // the closest that one may look
export const LONGEST = 3650 * DAY;

/** Span is a piece of time on so many pixels. */
export class Span {
  constructor(from, to, width) {
    this.from = from;
    this.to = to;
    this.width = Math.max(1, width);
  }

  get length() { return this.to - this.from; }

  /** x is where a time is. */
  x(time) { return ((time - this.from) / this.length) * this.width; }

  /** at is the time of a place. */
  at(x) { return this.from + (x / this.width) * this.length; }

  has(time) { return time >= this.from && time <= this.to; }

  /** zoomed is closer for a factor below 1; the time at x stays where it is. */
  zoomed(factor, x = this.width / 2) {
    const length = Math.min(LONGEST, Math.max(SHORTEST, this.length * factor));
    const from = this.at(x) - (x / this.width) * length;
    return new Span(from, from + length, this.width);
  }

  /** moved is by so many pixels; positive is later. */
  moved(pixels) {
    const by = (pixels / this.width) * this.length;
    return new Span(this.from + by, this.to + by, this.width);
  }

  /** within keeps the middle between two times. */
  within(first, last) {
    const middle = (this.from + this.to) / 2;
    const by = Math.max(first, Math.min(last, middle)) - middle;
    return new Span(this.from + by, this.to + by, this.width);
  }
}

/** ticks are the round times of a span, at least so many pixels apart: {times, step}. `zone` is minutes behind UTC. */
export function ticks(span, apart, zone) {
  const least = (apart / span.width) * span.length;
  const step = STEPS.find((size) => size >= least) ?? Math.ceil(least / (365 * DAY)) * 365 * DAY;
  const offset = zone * MINUTE;
  const times = [];
  for (let t = Math.ceil((span.from - offset) / step) * step + offset; t <= span.to; t += step) times.push(t);
  return { times, step };
}

/** fit is the span that shows all of some times up to now, with a margin. */
export function fit(times, now, width) {
  const first = times.reduce((a, b) => Math.min(a, b), now - MINUTE);
  const margin = Math.max(2 * SECOND, (now - first) * 0.03);
  return new Span(first - margin, now + margin, width);
}

/** recent is the shortest of some usual spans that has most of the latest times, else all. */
export function recent(times, now, width) {
  const latest = [...times].sort((a, b) => b - a).slice(0, 40);
  for (const length of [15 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY]) {
    const inside = latest.filter((t) => t >= now - length).length;
    if (inside >= Math.max(1, latest.length * 0.8)) return new Span(now - length, now + length * 0.02, width);
  }
  return fit(times, now, width);
}

export { DAY, HOUR, MINUTE, SECOND };
