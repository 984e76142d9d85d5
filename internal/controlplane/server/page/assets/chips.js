// How many workloads have which status: each count is a filter.

import { fill, h, icon } from './dom.js';
import { STATUSES, known } from './status.js';
import { count } from './text.js';

/** Chips shows counts; pressing one calls toggle(status). */
export class Chips {
  #chips = new Map();
  #bar = h('div', { class: 'share', 'aria-hidden': 'true' });

  constructor(toggle) {
    for (const status of STATUSES) {
      const number = h('span', { class: 'number' });
      const button = h('button', {
        type: 'button', class: 'chip', 'data-status': status, 'aria-pressed': 'false', onclick: () => toggle(status),
      }, icon(status), h('span', { class: 'word' }, status), number);
      this.#chips.set(status, { button, number });
    }
    this.element = h('div', { class: 'summary' },
      h('div', { class: 'chips', role: 'group', 'aria-label': 'Filter by status' }, [...this.#chips.values()].map(({ button }) => button)),
      this.#bar);
  }

  /** show takes counts by status, and the statuses that are chosen. */
  show(counts, chosen) {
    const sums = new Map();
    for (const [status, n] of counts) sums.set(known(status), (sums.get(known(status)) ?? 0) + n);
    for (const [status, { button, number }] of this.#chips) {
      const n = sums.get(status) ?? 0;
      number.textContent = count(n);
      button.setAttribute('aria-pressed', String(chosen.has(status)));
      button.classList.toggle('zero', n === 0);
    }
    fill(this.#bar, STATUSES.filter((status) => sums.get(status)).map((status) =>
      h('span', { 'data-status': status, '--share': String(sums.get(status)) })));
  }
}
