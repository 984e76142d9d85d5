// The number of workloads by status and by delivery problem. Each number is a filter.

import { fill, h, icon } from './dom.js';
import { ONLY } from './filters.js';
import { MEANINGS, STATUSES, known } from './status.js';
import { count } from './text.js';

/** Chips shows the numbers. A click calls toggle(group, name), where the group is `statuses` or `only`. */
export class Chips {
  #chips = { statuses: new Map(), only: new Map() };
  #bar = h('div', { class: 'share', 'aria-hidden': 'true' });

  constructor(toggle) {
    for (const status of STATUSES) this.#add('statuses', status, toggle, { 'data-status': status, title: MEANINGS[status] }, icon(status), h('span', { class: 'word' }, status));
    for (const [name, word, meaning] of ONLY) this.#add('only', name, toggle, { 'data-only': name, title: meaning }, h('span', { class: 'word' }, word));
    const group = (name, props, ...label) => h('div', { class: 'chips-group', role: 'group', ...props }, ...label, [...this.#chips[name].values()].map(({ button }) => button));
    this.element = h('div', { class: 'summary' },
      h('div', { class: 'chips' }, group('statuses', { 'aria-label': 'Filter by status' }),
        group('only', { 'aria-labelledby': 'only' }, h('span', { class: 'only', id: 'only' }, 'Only'))),
      this.#bar);
  }

  #add(group, name, toggle, props, ...content) {
    const number = h('span', { class: 'number' });
    const button = h('button', { type: 'button', class: 'chip', 'aria-pressed': 'false', onclick: () => toggle(group, name), ...props }, ...content, number);
    this.#chips[group].set(name, { button, number });
  }

  /**
   * show counts rows: for each group of chips, the rows that pass all other filters. `filters` has the pressed chips.
   */
  show(rows, filters) {
    const sums = {
      statuses: countByStatus(rows.statuses),
      only: new Map(ONLY.map(([name, , , test]) => [name, rows.only.filter(test).length])),
    };
    for (const group of ['statuses', 'only']) {
      for (const [name, { button, number }] of this.#chips[group]) {
        const n = sums[group].get(name) ?? 0;
        number.textContent = count(n);
        button.setAttribute('aria-pressed', String(filters[group].has(name)));
        button.classList.toggle('zero', n === 0);
      }
    }
    fill(this.#bar, STATUSES.filter((status) => sums.statuses.get(status)).map((status) =>
      h('span', { 'data-status': status, '--share': String(sums.statuses.get(status)) })));
  }
}

function countByStatus(rows) {
  const counts = new Map();
  for (const row of rows) counts.set(known(row.status), (counts.get(known(row.status)) ?? 0) + 1);
  return counts;
}
