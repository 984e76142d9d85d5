// Times in one zone: short in the viewer's, or exact in UTC.

import { h } from './dom.js';

let skew = 0; // the server's clock minus the browser's, in milliseconds

/** syncClock learns the server's clock from the Date of a response, which has seconds only. */
export function syncClock(date) {
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

/** durationText writes a duration in its largest unit, with the next unit for a few days or hours. */
export function durationText(seconds) {
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

/** ago is the duration since a time. */
export function ago(time) {
  return durationText((now() - Date.parse(time)) / 1000);
}

/** exactTime is an exact time with its zone. */
export function exactTime(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return '';
  const ahead = -zone(time);
  const shifted = new Date(date.getTime() + ahead * 60_000).toISOString().replace('T', ' ').replace(/(\.000)?Z$/, '');
  if (exact) return `${shifted} UTC`;
  const [h, m] = [Math.floor(Math.abs(ahead) / 60), Math.abs(ahead) % 60].map((n) => String(n).padStart(2, '0'));
  return `${shifted} ${ahead < 0 ? '−' : '+'}${h}:${m}`;
}

// The formats of times in a time zone; the viewer's without an argument.
const formats = (timeZone) => {
  const formatter = (parts) => new Intl.DateTimeFormat('en-GB', { ...parts, timeZone });
  const hours = { hour: '2-digit', minute: '2-digit' };
  return {
    minutes: formatter(hours), seconds: formatter({ ...hours, second: '2-digit' }),
    day: formatter({ day: 'numeric', month: 'short' }), dayYear: formatter({ day: 'numeric', month: 'short', year: 'numeric' }), year: formatter({ year: 'numeric' }),
  };
};
const LOCAL = formats();
const EXACT = formats('UTC');

const KEY = 'times';
let exact = false;
try { exact = localStorage.getItem(KEY) === 'utc'; } catch { /* storage is forbidden: times are local */ }
let format = exact ? EXACT : LOCAL;

/** isExact is true if times are exact, in UTC. */
export function isExact() { return exact; }

/** zoneSwitch dispatches `change` when the page changes between the viewer's zone and UTC. */
export const zoneSwitch = new EventTarget();

/** setExact writes all times of the page exactly in UTC, or short in the viewer's time zone. */
export function setExact(on) {
  exact = on;
  format = on ? EXACT : LOCAL;
  try { localStorage.setItem(KEY, on ? 'utc' : 'local'); } catch { /* for this page only */ }
  document.querySelectorAll('time.stamp').forEach(write);
  zoneSwitch.dispatchEvent(new Event('change'));
}

/** zone is how many minutes displayed times are behind UTC. */
export function zone(time) {
  return exact ? 0 : new Date(time).getTimezoneOffset();
}

/** hours is a time of day. */
export function hours(time, { seconds = false } = {}) {
  return (seconds ? format.seconds : format.minutes).format(time);
}

/** clock is a time of day, with the date unless it is today. */
export function clock(time, options) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return '';
  return day(date) === day(now()) ? hours(date, options) : `${day(date)}, ${hours(date, options)}`;
}

/** day is a date, with the year unless it is this one. */
export function day(time) {
  return (format.year.format(time) === format.year.format(now()) ? format.day : format.dayYear).format(time);
}

/** stamp is a time with the exact time as a tooltip (tip.js), or as text after setExact. */
export function stamp(time) {
  return write(h('time', { class: 'stamp', datetime: time }));
}

/** sinceStamp is the duration since a time, followed by a word. tick updates it. */
export function sinceStamp(time, after = '') {
  return write(h('time', { class: 'stamp', datetime: time, 'data-ago': after }));
}

function write(element) {
  const { dateTime: time, dataset: { ago: after } } = element;
  let text = exact ? exactTime(time) : clock(time, { seconds: true });
  if (after !== undefined) text = `${ago(time)}${after}${exact ? ` (${text})` : ''}`;
  if (element.textContent !== text) element.textContent = text;
  return element;
}

/** tick updates all elements of sinceStamp. */
export function tick(root = document) {
  root.querySelectorAll('time[data-ago]').forEach(write);
}
