// The filter of Events.

import { fill, h, later } from './dom.js';
import { plain } from './text.js';

/** EventFilter has the inputs, and calls changed when the user edits one. */
export class EventFilter {
  #level;
  #kind;
  #text;
  #offered = '';
  #read = '["","",""]'; // the filter in the address
  #onEdit;

  constructor(changed) {
    const now = () => {
      this.#read = keyOf(this.params);
      changed();
    };
    const onEdit = this.#onEdit = later(120, now);
    this.#level = h('select', { 'aria-label': 'Level', onchange: now },
      h('option', { value: '' }, 'All levels'), h('option', { value: 'Warning' }, 'Warnings'), h('option', { value: 'Normal' }, 'Normal'));
    this.#kind = h('select', { 'aria-label': 'Kind of object', onchange: now }, h('option', { value: '' }, 'All kinds'));
    this.#text = h('input', { type: 'search', id: 'event-text', placeholder: 'Search Events', 'aria-label': 'Search Events', autocomplete: 'off', spellcheck: 'false', oninput: onEdit });
    this.element = h('form', { class: 'event-filter', role: 'search', 'aria-label': 'Filter Events', onsubmit: (e) => e.preventDefault() }, this.#level, this.#kind, this.#text);
  }

  focus() { this.#text.select(); }

  stop() { this.#onEdit.cancel(); }

  /** params are the values of the inputs, for the address. */
  get params() {
    return { level: this.#level.value, kind: this.#kind.value, text: this.#text.value.trim() };
  }

  /** read applies the filter of an address, and returns whether it has changed. If not, the inputs stay untouched. */
  read(params) {
    const wanted = { level: params.get('level') ?? '', kind: params.get('kind') ?? '', text: params.get('text') ?? '' };
    if (keyOf(wanted) === this.#read) return false;
    this.#read = keyOf(wanted);
    this.#onEdit.cancel();
    this.#level.value = wanted.level;
    if (this.#level.selectedIndex < 0) this.#level.value = '';
    if (![...this.#kind.options].some(({ value }) => value === wanted.kind)) this.#kind.append(option(wanted.kind)); // its Events may arrive later
    this.#kind.value = wanted.kind;
    this.#text.value = wanted.text;
    return true;
  }

  /** offer lists the kinds of the Events as options, and keeps the selection. */
  offer(events) {
    const chosen = this.#kind.value;
    const kinds = [...new Set(events.map(({ involved }) => involved.kind))].sort().slice(0, 100);
    if (chosen && !kinds.includes(chosen)) kinds.push(chosen);
    if (kinds.join('\n') === this.#offered) return;
    this.#offered = kinds.join('\n');
    fill(this.#kind, h('option', { value: '' }, 'All kinds'), kinds.map(option));
    this.#kind.value = chosen;
  }

  /** predicate is the filter as a function of an Event. */
  predicate() {
    const [level, kind] = [this.#level.value, this.#kind.value];
    const words = this.#text.value.toLowerCase().split(/\s+/).filter(Boolean);
    return (event) => (level === '' || event.type === level) && (kind === '' || event.involved.kind === kind) &&
      words.every((word) => `${event.reason}\n${event.message}\n${event.involved.name}`.toLowerCase().includes(word));
  }
}

function keyOf({ level, kind, text }) {
  return JSON.stringify([level, kind, text]);
}

function option(kind) {
  return h('option', { value: kind }, plain(kind));
}
