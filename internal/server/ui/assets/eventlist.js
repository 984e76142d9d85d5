// The Events in words: those of the piece of time that is looked at, newest first.

import { fill, h, icon } from './dom.js';
import { changeOf } from './events.js';
import { badge } from './status.js';
import { count, long, many, said } from './text.js';
import { clock, stamp } from './time.js';

const PAGE = 50;

/** involvedKey names the object of an Event. */
export function involvedKey({ involved }) {
  return involved.uid || [involved.group, involved.kind, involved.namespace, involved.name].join('/');
}

/** eventText is an Event in a line. */
export function eventText(event) {
  const times = event.count > 1 ? ` × ${event.count}` : '';
  return `${clock(event.time, { seconds: true })} ${event.reason}${times}: ${event.message}`;
}

/** EventList shows Events a page at a time. */
export class EventList {
  #events = [];
  #shown = PAGE;
  #picked = new Set();
  #list = h('ol', { class: 'event-list' });
  #more = h('button', { type: 'button', class: 'button', hidden: true, onclick: () => { this.#shown += 2 * PAGE; this.#draw(); } });
  #title = h('h3', { 'aria-live': 'off' });
  #drawn = [];

  constructor() {
    this.element = h('div', { class: 'event-part' }, this.#title, this.#list, this.#more);
  }

  /** show draws Events; `whole` is how many there are at other times too. */
  show(events, whole) {
    this.#title.textContent = events.length === whole ? many(whole, 'Event') : `${many(events.length, 'Event')} in view, of ${count(whole)}`;
    if (events.length === this.#events.length && events.every((event, i) => event === this.#events[i])) return;
    this.#events = events;
    this.#draw();
  }

  /** pick brings some Events into sight, and marks them. */
  pick(events) {
    this.#picked = new Set(events.map(({ id }) => id));
    const at = this.#events.findIndex(({ id }) => this.#picked.has(id));
    if (at < 0) return;
    this.#shown = Math.max(this.#shown, at + PAGE);
    this.#drawn = [];
    this.#draw();
    this.#list.querySelector('.picked')?.scrollIntoView({ block: 'nearest' });
  }

  #draw() {
    const shown = this.#events.slice(0, this.#shown);
    const rows = new Map(this.#drawn.map(({ event, row }) => [event, row])); // what has not changed keeps its element
    this.#drawn = shown.map((event) => ({ event, row: rows.get(event) ?? this.#row(event) }));
    fill(this.#list, this.#drawn.map(({ row }) => row));
    const rest = this.#events.length - shown.length;
    this.#more.hidden = rest === 0;
    this.#more.textContent = `Show ${count(Math.min(rest, 2 * PAGE))} of ${count(rest)} more`;
  }

  #row(event) {
    const classes = ['event', event.type === 'Warning' && 'warning', event.gap && 'lost', this.#picked.has(event.id) && 'picked'].filter(Boolean).join(' ');
    const change = changeOf(event);
    return h('li', { class: classes },
      h('span', { class: 'when' }, stamp(event.time)),
      h('span', { class: 'level' }, icon(levelIcon(event)), h('span', { class: 'unseen' }, event.gap ? 'Lost: ' : `${event.type}: `)),
      h('span', { class: 'reason' }, change ? badge(change) : said(event.gap ? 'Events were lost here' : event.reason),
        event.count > 1 && h('span', { class: 'times' }, `× ${count(event.count)}`, event.firstTime && h('span', { class: 'first' }, ' since ', stamp(event.firstTime)))),
      h('span', { class: 'who' }, h('span', { class: 'kind' }, said(event.involved.kind)), ' ', said(event.involved.name)),
      h('span', { class: 'message' }, event.gap ? gapText(event) : long(event.message, 400)));
  }
}

function levelIcon(event) {
  if (event.gap) return 'lost';
  return event.type === 'Warning' ? 'warning' : 'normal';
}

function gapText({ gap }) {
  return h('span', {}, `${many(gap.warning, 'warning')} and ${many(gap.normal, 'other')} happened from `, stamp(gap.first), ' to ', stamp(gap.last),
    ', and were dropped by the agent, which could keep no more.');
}
