// The list of the Events in the visible time span, newest first.

import { fill, h, icon } from './dom.js';
import { changeOf } from './events.js';
import { badge } from './status.js';
import { count, long, many, isolated } from './text.js';
import { clock, stamp } from './time.js';

const PAGE = 50;

/** involvedKey names the object of an Event. */
export function involvedKey({ involved }) {
  return involved.uid || [involved.group, involved.kind, involved.namespace, involved.name].join('/');
}

/** eventText is an Event on one line. */
export function eventText(event) {
  const times = event.count > 1 ? ` × ${event.count}` : '';
  return `${clock(event.time, { seconds: true })} ${event.reason}${times}: ${event.message}`;
}

/** EventList shows Events page by page. */
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

  /** show draws Events; `total` is their number in all time spans. */
  show(events, total) {
    this.#title.textContent = events.length === total ? many(total, 'Event') : `${many(events.length, 'Event')} in view, of ${count(total)}`;
    if (events.length === this.#events.length && events.every((event, i) => event === this.#events[i])) return;
    this.#events = events;
    this.#draw();
  }

  /** pick highlights Events and scrolls to the first. */
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
    const rows = new Map(this.#drawn.map(({ event, row }) => [event, row])); // unchanged Events keep their elements
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
      h('span', { class: 'level' }, icon(levelIcon(event)), h('span', { class: 'unseen' }, event.gap ? 'Dropped: ' : `${event.type}: `)),
      h('span', { class: 'reason' }, change ? badge(change) : isolated(event.gap ? 'Events were dropped here' : event.reason),
        event.count > 1 && h('span', { class: 'times' }, `× ${count(event.count)}`, event.firstTime && h('span', { class: 'first' }, ' since ', stamp(event.firstTime)))),
      h('span', { class: 'who' }, h('span', { class: 'kind' }, isolated(event.involved.kind)), ' ', isolated(event.involved.name)),
      h('span', { class: 'message' }, event.gap ? gapText(event) : long(event.message, 400)));
  }
}

function levelIcon(event) {
  if (event.gap) return 'lost';
  return event.type === 'Warning' ? 'warning' : 'normal';
}

function gapText({ gap }) {
  return h('span', {}, `The agent dropped ${many(gap.warning, 'warning')} and ${many(gap.normal, 'other Event')} from `, stamp(gap.first), ' to ', stamp(gap.last),
    ' because its memory limit was reached.');
}
