// Times: short ones for the eye in the viewer's zone, and the exact one in UTC for whoever asks.

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

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const CLOCK_SECONDS = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const DAY_YEAR = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

/** clock is a time of day in the viewer's zone, with the day unless that is today. */
export function clock(time, { seconds = false } = {}) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return '';
  const hours = (seconds ? CLOCK_SECONDS : CLOCK).format(date);
  return day(time) === day(now()) ? hours : `${day(time)}, ${hours}`;
}

/** day is a date in the viewer's zone, with the year unless it is this one. */
export function day(time) {
  const date = new Date(time);
  return (date.getFullYear() === new Date(now()).getFullYear() ? DAY : DAY_YEAR).format(date);
}

/** stamp is a time that shows its exact UTC to the mouse and to the keyboard. */
export function stamp(time, text = clock(time, { seconds: true }), props = {}) {
  return h('time', { class: 'stamp', datetime: time, 'data-utc': utc(time), tabindex: '0', ...props }, text);
}

/** sinceStamp is a time as how long ago it was; tick keeps it true. */
export function sinceStamp(time) {
  return stamp(time, ago(time), { 'data-ago': '' });
}

/** tick brings what sinceStamp wrote up to date. */
export function tick(root = document) {
  for (const element of root.querySelectorAll('time[data-ago]')) {
    const text = ago(element.getAttribute('datetime'));
    if (element.textContent !== text) element.textContent = text;
  }
}
