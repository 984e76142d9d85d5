// The table of workloads, with keyboard navigation and for screen readers.

import { h, icon, unseen } from './dom.js';
import { direction, isLate } from './filters.js';
import { foldText } from './offline.js';
import { causes, keyOf, known, pathOf, offlineText, sinceOf, typeName, fallbackCause } from './status.js';
import { many, plain, sentence, setIsolated } from './text.js';
import { ago, durationText, exactTime } from './time.js';
import { Windowed } from './windowed.js';

// The order that a heading sorts by, if any, with the name of the cell and of the heading.
const COLUMNS = [
  ['worst', 'worst', 'Status'], ['name', 'name', 'Workload'], [null, 'pods', 'Pods'], [null, 'cause', 'Cause'],
  ['cluster', 'cluster', 'Cluster'], ['since', 'since', 'Since'], ['delay', 'delay', 'Delay'],
];

/** Grid shows rows. A click on a heading calls sort(column), and one on an item of foldOffline calls fold(item). */
export class Grid {
  #list = h('div', { class: 'grid-list', role: 'rowgroup' });
  #headings = new Map();
  #windowed;
  #scroller;
  #none = h('p', { class: 'none', hidden: true }, 'No workload matches these filters.');
  #fold;
  #active = 0; // the last focused row
  #changed = new Set();
  #grouped = false; // by cluster

  constructor({ sort, fold }) {
    this.#fold = fold;
    const headings = COLUMNS.map(([column, cell, name]) => this.#heading(column, cell, name, sort));
    this.#scroller = h('div', { class: 'grid', role: 'grid', 'aria-label': 'Workloads', 'aria-readonly': 'true', onkeydown: (e) => this.#key(e) },
      h('div', { class: 'grid-head', role: 'rowgroup' }, h('div', { class: 'row', role: 'row', 'aria-rowindex': '1' }, headings)),
      this.#list);
    this.element = h('div', { class: 'grid-frame' }, this.#scroller, this.#none);
    this.#list.addEventListener('focusin', ({ target }) => this.#rowFocused(target.closest('.row')));
    // Some browsers do not focus a clicked link.
    this.#list.addEventListener('click', ({ target }) => {
      const open = target.closest('.open');
      open?.focus({ preventScroll: true });
      if (open?.ariaExpanded) this.#fold(open.closest('.row').item);
    });
    this.#list.addEventListener('animationend', ({ target }) => target.classList.remove('changed'));
    this.#windowed = new Windowed({
      scroller: this.#scroller, list: this.#list, key: keyOf, height: () => this.#height(),
      make: makeRow, fill: (row, item, index) => this.#fill(row, item, index), drawn: () => this.#updateTabStop(),
    });
  }

  get scrolled() { return this.#scroller.scrollTop; }

  scrollTo(top) { this.#scroller.scrollTop = top; }

  /** focused is the key of the focused row, or null. */
  get focused() {
    return this.#hasFocus() ? keyOf(this.#windowed.items[this.#active]) : null;
  }

  /** redraw draws all rows again, in another time zone. */
  redraw() {
    for (const row of this.#list.children) row.item = null;
    this.tick();
  }

  /** tick updates the times. */
  tick() { this.#windowed.draw(); }

  stop() { this.#windowed.stop(); }

  /** show draws sorted rows; `changed` has the keys of rows that have just changed. */
  show(rows, filters, changed) {
    const focused = this.focused;
    this.#changed = changed;
    this.#grouped = filters.sort === 'cluster';
    for (const [column, heading] of this.#headings) {
      heading.setAttribute('aria-sort', column === filters.sort ? direction(filters) : 'none');
    }
    this.#list.hidden = rows.length === 0;
    this.#scroller.setAttribute('aria-rowcount', String(rows.length + 1));
    // The focus follows its row. If the row is gone, the row in its place gets the focus.
    const at = focused === null ? -1 : rows.findIndex((row) => keyOf(row) === focused);
    this.#active = at >= 0 ? at : Math.min(this.#active, Math.max(0, rows.length - 1));
    this.#none.hidden = rows.length > 0;
    this.#windowed.set(rows);
    this.#changed = new Set();
    if (focused !== null && !this.#hasFocus()) this.#focusOn(this.#active);
  }

  /** focus moves to the row with a key; without a key, to the row that Tab reaches. */
  focus(key) {
    this.#move(key === undefined ? this.#tabStop() : this.#windowed.items.findIndex((item) => keyOf(item) === key));
  }

  #heading(column, cell, name, sort) {
    if (!column) return h('span', { role: 'columnheader', class: `cell cell-${cell}` }, name);
    const heading = h('span', { role: 'columnheader', class: `cell cell-${cell}`, 'aria-sort': 'none' },
      h('button', { type: 'button', class: 'sort', onclick: () => sort(column) }, name, h('span', { class: 'arrow', 'aria-hidden': 'true' })));
    this.#headings.set(column, heading);
    return heading;
  }

  #rowHeight = 0;
  #rowHeightAt = 0;

  // The style sheet defines the height of a row: on a phone it has more lines.
  #height() {
    const width = innerWidth;
    if (width !== this.#rowHeightAt) {
      this.#rowHeight = Number.parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--row-height')) || 44;
      this.#rowHeightAt = width;
    }
    return this.#rowHeight;
  }

  #fill(row, item, index) {
    const { parts } = row;
    row.index = index;
    row.setAttribute('aria-rowindex', String(index + 2));
    if (row.item !== item) {
      fillRow(row, item);
      row.item = item;
    }
    row.classList.toggle('changed', this.#changed.has(keyOf(item)) || (row.classList.contains('changed') && row.shows === keyOf(item)));
    row.shows = keyOf(item);
    row.classList.toggle('begins', this.#grouped && item.clusterUID !== this.#windowed.items[index - 1]?.clusterUID);
    const since = sinceOf(item) ? ago(sinceOf(item)) : '–';
    if (parts.since.textContent !== since) parts.since.textContent = since;
  }

  #hasFocus() { return this.#list.contains(document.activeElement); }

  #rowFocused(row) {
    this.#active = row.index;
    this.#updateTabStop();
  }

  // The row that Tab reaches: the focused one, the last focused one if it is visible, or the first visible one.
  #tabStop() {
    const { items, visible: { first, end } } = this.#windowed;
    if (this.#hasFocus() || (this.#active >= first && this.#active < end)) return this.#active;
    return Math.min(first, items.length - 1);
  }

  #updateTabStop() {
    const stop = this.#tabStop();
    for (const { index, parts: { link } } of this.#list.children) {
      const tabIndex = index === stop ? 0 : -1;
      if (link.tabIndex !== tabIndex) link.tabIndex = tabIndex;
    }
  }

  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.#list.contains(event.target)) return;
    const item = this.#windowed.items[this.#active];
    if (item.folds && ['Enter', ' ', item.unfolded ? 'ArrowLeft' : 'ArrowRight'].includes(event.key)) {
      event.preventDefault();
      this.#fold(item);
      return;
    }
    const { pageSize } = this.#windowed;
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: pageSize, PageUp: -pageSize, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    this.#move(Math.min(this.#windowed.items.length - 1, Math.max(0, this.#active + step)));
  }

  #move(index) {
    if (index < 0) return;
    this.#windowed.reveal(index);
    this.#focusOn(index);
  }

  #focusOn(index) {
    const item = this.#windowed.items[index];
    if (item) this.#windowed.row(keyOf(item))?.parts.link.focus({ preventScroll: true });
  }
}

function makeRow() {
  const cell = (name, ...children) => h('span', { role: 'gridcell', class: `cell cell-${name}` }, ...children);
  const parts = {
    shape: icon('Unknown'), word: h('span', { class: 'word' }),
    link: h('a', { class: 'open', tabindex: '-1' }, h('bdi')), tag: h('span', { class: 'tag' }),
    namespace: h('bdi'), others: h('span', { class: 'others' }), pods: h('span'),
    fault: h('bdi', { class: 'fault' }), effect: h('bdi', { class: 'effect' }), cluster: h('bdi'), since: h('time'), delay: h('span'),
  };
  parts.name = parts.link.firstChild;
  parts.namespaces = h('span', { class: 'namespaces' }, unseen('namespace '), parts.namespace, ' ', parts.others);
  const row = h('div', { class: 'row', role: 'row' },
    cell('worst', h('span', { class: 'badge' }, parts.shape, parts.word)),
    cell('name', h('span', { class: 'named' }, parts.link, parts.tag), parts.namespaces),
    cell('pods', parts.pods, h('span', { class: 'unit' }, ' Pods')),
    cell('cause', h('span', { class: 'chain' }, parts.fault, ' ', parts.effect)), cell('cluster', parts.cluster), cell('since', unseen('since '), parts.since), cell('delay', parts.delay));
  parts.badge = parts.shape.parentNode;
  row.parts = parts;
  return row;
}

function fillRow({ parts }, item) {
  const status = known(item.status);
  parts.badge.dataset.status = status;
  parts.shape.firstChild.setAttribute('href', `#i-${status}`);
  parts.word.textContent = status;
  fillLink(parts.link, item);
  setIsolated(parts.name, item.name || `${typeName(item.type)} ${item.id}`);
  parts.tag.textContent = item.type === 'HelmWorkloadInstance' ? 'Helm' : '';
  parts.link.title = [plain(item.name), fillCause(parts, item)].filter(Boolean).join('\n');
  fillNamespaces(parts, item.namespaces ?? []);
  fillPods(parts.pods, item);
  setIsolated(parts.cluster, item.clusterName || item.clusterUID || '–', 80);
  parts.cluster.title = [item.clusterName, item.clusterUID].filter(Boolean).map(plain).join('\n');
  const since = sinceOf(item);
  if (since) {
    parts.since.dateTime = since;
    parts.since.title = `${status} since ${exactTime(since)}`;
  } else {
    parts.since.removeAttribute('datetime');
    parts.since.title = 'unknown';
  }
  fillDelay(parts.delay, item);
}

// An item that folds is a button.
function fillLink(link, item) {
  if (item.folds) {
    link.removeAttribute('href');
    link.role = 'button';
    link.ariaExpanded = String(item.unfolded);
  } else {
    link.href = pathOf(item);
    link.role = link.ariaExpanded = null;
  }
}

// The object at fault, and the way to the listed object, which a small window cuts. The returned text is for the tooltip.
function fillCause({ fault, effect }, item) {
  const [first, ...rest] = item.folds ? [foldText(item)] : item.silent ? [sentence(offlineText(item))] : causes(item);
  const what = first || fallbackCause(item);
  setIsolated(fault, what);
  setIsolated(effect, rest.map((link) => `→ ${link}`).join(' '));
  return plain([what, ...rest].filter(Boolean).join(' → ').slice(0, 1000));
}

const MAX_NAMESPACES = 10; // that the API names

function fillNamespaces({ namespaces, namespace, others }, names) {
  namespaces.hidden = names.length === 0;
  setIsolated(namespace, names[0] ?? '');
  others.textContent = names.length > 1 ? `+${names.length - 1}${names.length < MAX_NAMESPACES ? '' : ' or more'}` : '';
  namespaces.title = plain(names.join(', '));
}

// Agents of v0 report no objects.
function fillPods(element, { pods, resources }) {
  element.parentNode.classList.toggle('unknown', !pods);
  element.textContent = pods ? `${pods.healthy}/${pods.total}` : '';
  element.title = pods ? [pods, resources].map((of, i) => `${of.healthy} of ${many(of.total, ['Pod', 'listed object'][i])} Healthy`).join('\n') : '';
}

function fillDelay(element, item) {
  element.className = '';
  element.title = '';
  if (item.silent) {
    element.textContent = 'offline';
    element.className = 'late';
    element.title = item.heardAt ? `No report since ${exactTime(item.heardAt)}` : 'The agent has not reported';
  } else if (!item.heardAt) {
    element.textContent = '–';
    element.title = 'The agent does not report its delay';
  } else {
    element.textContent = item.delaySeconds < 1 ? 'none' : durationText(item.delaySeconds);
    if (isLate(item)) element.className = 'late';
  }
}
