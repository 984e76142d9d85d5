// Which Events are of interest.

import { fill, h, later } from './dom.js';
import { plain } from './text.js';

/** EventFilter has inputs, and calls changed when one has. */
export class EventFilter {
  #level;
  #kind;
  #text;
  #kinds = '';

  constructor(changed) {
    const soon = later(120, changed);
    this.#level = h('select', { 'aria-label': 'Level', onchange: changed },
      h('option', { value: '' }, 'All levels'), h('option', { value: 'Warning' }, 'Warnings'), h('option', { value: 'Normal' }, 'Normal'));
    this.#kind = h('select', { 'aria-label': 'Kind of object', onchange: changed }, h('option', { value: '' }, 'All kinds'));
    this.#text = h('input', { type: 'search', id: 'event-text', placeholder: 'Search Events', 'aria-label': 'Search Events', autocomplete: 'off', spellcheck: 'false', oninput: soon });
    this.element = h('form', { class: 'event-filter', role: 'search', 'aria-label': 'Filter the Events', onsubmit: (e) => e.preventDefault() }, this.#level, this.#kind, this.#text);
  }

  focus() { this.#text.select(); }

  /** offer makes the kinds that there are choosable. */
  offer(events) {
    const kinds = [...new Set(events.map(({ involved }) => involved.kind))].sort().slice(0, 100);
    if (kinds.join('\n') === this.#kinds) return;
    this.#kinds = kinds.join('\n');
    const chosen = this.#kind.value;
    fill(this.#kind, h('option', { value: '' }, 'All kinds'), kinds.map((kind) => h('option', { value: kind }, plain(kind))));
    this.#kind.value = kinds.includes(chosen) ? chosen : '';
  }

  /** predicate is what an Event has to fulfil. */
  predicate() {
    const [level, kind] = [this.#level.value, this.#kind.value];
    const words = this.#text.value.toLowerCase().split(/\s+/).filter(Boolean);
    return (event) => (level === '' || event.type === level) && (kind === '' || event.involved.kind === kind) &&
      words.every((word) => `${event.reason}\n${event.message}\n${event.involved.name}`.toLowerCase().includes(word));
  }
}
