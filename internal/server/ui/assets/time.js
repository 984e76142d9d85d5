// Times: short ones for the eye in the viewer's zone, and exact ones in UTC for whoever asks.

import { h } from './dom.js';

let skew = 0; // how far the server's clock is ahead of this one, in milliseconds

/** serverSaid learns the server's clock from an answer; its Date has seconds only. */
export function serverSaid(date) {
  const there = Date.parse(date ?? '');
  if (Number.isNaN(there)) return;
  const ahead = there + 500 - Date.now();
  skew = Math.abs(ahead) < 2000 ? 0 : ahead;
}

/** now is the time by the server's clock, in milliseconds since 1970. */
export function now() {
  return Date.now() + skew;
}

const UNITS = [[86400 * 365, 'y'], [86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];

/** lasting writes a time span in its largest unit, and for days and hours the next one while it matters. */
export function lasting(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  for (const [i, [size, unit]] of UNITS.entries()) {
    const n = Math.floor(whole / size);
    if (n < 1) continue;
    const [nextSize, nextUnit] = UNITS[i + 1] ?? [0, ''];
    const rest = nextSize && n < 3 && unit !== 'min' ? Math.floor((whole % size) / nextSize) : 0;
    return rest ? `${n} ${unit} ${rest} ${nextUnit}` : `${n} ${unit}`;
  }
  return '0 s';
}

/** ago is how long since a time. */
export function ago(time) {
  return lasting((now() - Date.parse(time)) / 1000);
}

/** utc is a time exactly. */
export function utc(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return '';
  return date.toISOString().replace('T', ' ').replace(/(\.000)?Z$/, ' UTC');
}

// How times are written: in the viewer's zone, or in UTC.
const formats = (timeZone) => {
  const format = (parts) => new Intl.DateTimeFormat('en-GB', { ...parts, timeZone });
  const hours = { hour: '2-digit', minute: '2-digit' };
  return {
    minutes: format(hours), seconds: format({ ...hours, second: '2-digit' }),
    day: format({ day: 'numeric', month: 'short' }), dayYear: format({ day: 'numeric', month: 'short', year: 'numeric' }), year: format({ year: 'numeric' }),
  };
};
const LOCAL = formats();
const EXACT = formats('UTC');

const KEY = 'times';
let exact = false;
try { exact = localStorage.getItem(KEY) === 'utc'; } catch { /* then it is not remembered */ }
let written = exact ? EXACT : LOCAL;

/** isExact is true if times are written exactly, in UTC. */
export function isExact() { return exact; }

/** setExact writes all times of the page exactly, in UTC, or shortly, in the viewer's zone. */
export function setExact(on) {
  exact = on;
  written = on ? EXACT : LOCAL;
  try { localStorage.setItem(KEY, on ? 'utc' : 'local'); } catch { /* for this page only */ }
  document.querySelectorAll('time.stamp').forEach(write);
}

/** zone is how many minutes what is written is behind UTC. */
export function zone(time) {
  return exact ? 0 : new Date(time).getTimezoneOffset();
}

/** hours is a time of day. */
export function hours(time, { seconds = false } = {}) {
  return (seconds ? written.seconds : written.minutes).format(time);
}

/** clock is a time of day, with the day unless that is today. */
export function clock(time, options) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return '';
  return day(date) === day(now()) ? hours(date, options) : `${day(date)}, ${hours(date, options)}`;
}

/** day is a date, with the year unless it is this one. */
export function day(time) {
  return (written.year.format(time) === written.year.format(now()) ? written.day : written.dayYear).format(time);
}

/** stamp is a time that shows its exact UTC to the pointer, see tip.js, and to all if setExact says so. */
export function stamp(time) {
  return write(h('time', { class: 'stamp', datetime: time, 'data-utc': utc(time) }));
}

/** sinceStamp is a time as how long ago it was, and a word after that; tick keeps it true. */
export function sinceStamp(time, after = '') {
  return write(h('time', { class: 'stamp', datetime: time, 'data-utc': utc(time), 'data-ago': after }));
}

function write(element) {
  const { utc: all, ago: after } = element.dataset;
  const time = element.dateTime;
  let text = exact ? all : clock(time, { seconds: true });
  if (after !== undefined) text = `${ago(time)}${after}${exact ? ` (${all})` : ''}`;
  if (element.textContent !== text) element.textContent = text;
  return element;
}

/** tick brings what sinceStamp wrote up to date. */
export function tick(root = document) {
  root.querySelectorAll('time[data-ago]').forEach(write);
}
