// The list of all workloads, worst first.

import { announce, fill, h, later, unseen } from './dom.js';
import { SORTS, addressOf, chosen, filtering, order, predicate, readFilters, sortName, unfiltered } from './filters.js';
import { Chips } from './chips.js';
import { Grid } from './grid.js';
import { setListAddress } from './home.js';
import { foldOffline } from './offline.js';
import { problemText } from './retry.js';
import { go, reload } from './router.js';
import { problemState, skeleton, state } from './states.js';
import { count, many } from './text.js';
import { zoneSwitch } from './time.js';

/** The workload list is the view at /. It restores its scroll position and focus after a visit to a workload. */
export class WorkloadList {
  #workloads;
  #live;
  #filters;
  #parts = null;
  #saved = null; // the state to restore: {address, top, scrolled, focused}
  #stop = null;
  #unfolded = new Set(); // UIDs of offline clusters
  #shown = 0;
  #announceCount = later(1000, () => announce(`${many(this.#shown, 'workload')} shown`));
  #write = later(250, () => go(addressOf(this.#filters), { replace: true }));

  constructor(workloads, live) {
    this.#workloads = workloads;
    this.#live = live;
  }

  show(main, match, params) {
    document.title = 'Workloads';
    this.#live.watchAll();
    this.#read(params);
    this.#parts = this.#build(main);
    this.#putFilters();
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.#workloads.addEventListener('change', ({ detail }) => this.#draw(detail.keys), { signal });
    zoneSwitch.addEventListener('change', () => this.#parts.grid.redraw(), { signal });
    const timer = setInterval(() => this.#parts.grid.tick(), 5000);
    signal.addEventListener('abort', () => clearInterval(timer));
    this.#draw(new Set());
    this.#restore();
  }

  #restore() {
    if (this.#saved?.address !== addressOf(this.#filters)) return;
    scrollTo(0, this.#saved.top);
    this.#parts.grid.scrollTo(this.#saved.scrolled);
    if (this.#saved.focused !== null) this.#parts.grid.focus(this.#saved.focused);
  }

  leave() {
    this.#write.cancel();
    this.#announceCount.cancel();
    const { grid } = this.#parts;
    this.#saved = { address: addressOf(this.#filters), top: scrollY, scrolled: grid.scrolled, focused: grid.focused };
    grid.stop();
    this.#parts = null;
    this.#stop.abort();
  }

  #read(params) {
    this.#filters = readFilters(params);
    setListAddress(addressOf(this.#filters));
  }

  update(params) {
    this.#read(params);
    this.#putFilters();
    this.#draw(new Set());
  }

  /** search moves the cursor to the search field. */
  search() {
    this.#parts?.text.select();
  }

  /** focus moves to the rows. */
  focus() {
    this.#parts?.grid.focus();
  }

  #build(main) {
    const parts = {
      total: h('span', { class: 'total' }),
      chips: new Chips((group, name) => this.#toggle(group, name)),
      grid: new Grid({ sort: (column) => this.#sort(column), fold: (item) => this.#fold(item) }),
      body: h('div', { class: 'list-body' }),
      note: h('p', { class: 'note', hidden: true, role: 'status' }),
      ...this.#inputs(),
    };
    fill(main, h('div', { class: 'list-page' },
      h('div', { class: 'list-head' },
        h('div', { class: 'headline' }, h('h1', {}, 'Workloads'), parts.total),
        parts.chips.element,
        h('form', { class: 'filters', role: 'search', 'aria-label': 'Filter workloads', onsubmit: (e) => e.preventDefault() },
          labelled('Search', parts.text, 'search'), labelled('Cluster', parts.cluster), labelled('Type', parts.type), labelled('Sort', parts.sort, 'sorts'),
          parts.clusters, parts.clear),
        parts.note),
      parts.body));
    return parts;
  }

  #inputs() {
    const edit = (name, input) => () => {
      this.#filters = { ...this.#filters, [name]: input.value.trim() };
      this.#draw(new Set());
      this.#write();
    };
    // The address gets the text before the user moves on.
    const settle = () => { this.#write.cancel(); if (this.#parts) go(addressOf(this.#filters), { replace: true }); };
    const text = h('input', {
      type: 'search', id: 'text', placeholder: 'Name, cause, status …', autocomplete: 'off', spellcheck: 'false', 'aria-keyshortcuts': '/',
    });
    const cluster = h('input', { type: 'search', id: 'cluster', placeholder: 'Any cluster', list: 'clusters', autocomplete: 'off', spellcheck: 'false' });
    const type = h('select', { id: 'type' },
      h('option', { value: '' }, 'Any type'), h('option', { value: 'WorkloadInstance' }, 'Workload'), h('option', { value: 'HelmWorkloadInstance' }, 'Helm workload'));
    const sort = h('select', { id: 'sort' }, SORTS.map(([value, name]) => h('option', { value }, name)));
    for (const [name, input] of [['text', text], ['cluster', cluster]]) {
      input.addEventListener('input', edit(name, input));
      input.addEventListener('change', settle);
    }
    type.addEventListener('change', () => go(addressOf({ ...this.#filters, type: type.value })));
    sort.addEventListener('change', () => go(addressOf({ ...this.#filters, sort: sort.value.replace('-', ''), reverse: sort.value.startsWith('-') })));
    text.addEventListener('keydown', (event) => {
      if (event.key !== 'ArrowDown' && event.key !== 'Enter') return;
      event.preventDefault();
      this.#parts.grid.focus();
    });
    const clear = h('button', { type: 'button', class: 'link', hidden: true, onclick: () => this.#clear() }, 'Clear filters');
    return { text, cluster, type, sort, clear, clusters: h('datalist', { id: 'clusters' }) };
  }

  #putFilters() {
    const { text, cluster, type, sort, clear } = this.#parts;
    const filters = this.#filters;
    for (const [input, value] of [[text, filters.text], [cluster, filters.cluster], [type, filters.type], [sort, sortName(filters)]]) {
      if (input.value.trim() !== value) input.value = value;
    }
    clear.hidden = !filtering(this.#filters);
  }

  #toggle(group, name) {
    const names = new Set(this.#filters[group]);
    if (!names.delete(name)) names.add(name);
    go(addressOf({ ...this.#filters, [group]: names }));
  }

  // The button disappears, so the focus moves to the rows. The search field would open the keyboard of a phone.
  #clear() {
    go(unfiltered(this.#filters));
    this.focus();
  }

  #sort(column) {
    const { sort, reverse } = this.#filters;
    go(addressOf({ ...this.#filters, sort: column, reverse: sort === column && !reverse }));
  }

  #fold({ clusterUID }) {
    if (!this.#unfolded.delete(clusterUID)) this.#unfolded.add(clusterUID);
    this.#draw(new Set());
  }

  #draw(keys) {
    const { body, clear, total, grid, chips } = this.#parts;
    clear.hidden = !filtering(this.#filters);
    const other = this.#placeholder();
    if (other) {
      total.textContent = '';
      chips.show({ statuses: [], only: [] }, this.#filters);
      if (body.firstElementChild?.dataset.state !== other.dataset.state || !other.dataset.state) fill(body, other);
      return;
    }
    if (grid.element.parentNode !== body) fill(body, grid.element);
    this.#drawRows(keys);
  }

  #drawRows(keys) {
    const { total, grid, chips, note, clusters } = this.#parts;
    const all = [...this.#workloads.rows.values()];
    const candidates = all.filter(predicate(this.#filters));
    const { status, only } = chosen(this.#filters);
    chips.show({ statuses: candidates.filter(only), only: candidates.filter(status) }, this.#filters);
    const rows = candidates.filter((row) => status(row) && only(row)).sort(order(this.#filters));
    this.#shown = rows.length;
    const folds = this.#filters.sort === 'worst' && !filtering(this.#filters);
    grid.show(folds ? foldOffline(rows, this.#unfolded) : rows, this.#filters, keys);
    const { beyond, loading, problem } = this.#workloads;
    fill(total, filtering(this.#filters) ? `${count(rows.length)} of ${count(this.#workloads.total)}` : count(this.#workloads.total),
      (loading || problem || beyond > 0) && unseen(' so far'));
    this.#note(note);
    putClusters(clusters, all);
    if (!keys.size) this.#announceCount();
  }

  #note(note) {
    const { beyond, loading, problem, rows, total } = this.#workloads;
    let text = '';
    if (problem) {
      const shown = rows.size < total ? `Showing ${count(rows.size)} of ${many(total, 'workload')}` : 'These workloads may be out of date';
      text = `${shown}: ${problemText(problem)}`;
    } else if (beyond) {
      text = `Showing the worst ${many(rows.size, 'workload')}. ${many(beyond, 'more workload is', 'more workloads are')} in the API.`;
    } else if (loading && rows.size < total) {
      text = `Loading ${many(total, 'workload')}: ${count(rows.size)} loaded`;
    }
    note.hidden = text === '';
    if (note.textContent !== text) note.textContent = text;
  }

  // The view without rows.
  #placeholder() {
    const { rows, loading, problem } = this.#workloads;
    if (rows.size > 0) return null;
    if (problem) return problemState(problem, () => { this.#workloads.load(); reload(); });
    if (loading) return skeleton(12, 'Loading workloads');
    return state('empty', 'No workloads yet', [
      'A workload appears here when it is registered in the control plane and its agent reports it.',
      h('span', {}, 'In a cluster, install the agent with ', h('code', {}, 'make deploy'), ' and create a ', h('code', {}, 'ThreeportWorkload'), ' that lists the deployed objects.'),
    ]);
  }
}

function labelled(name, input, className = '') {
  return h('label', { class: `field ${className}`.trim(), for: input.id }, h('span', {}, name), input);
}

const MAX_SUGGESTIONS = 200;

// Names of clusters, for the browser's autocompletion.
function putClusters(list, rows) {
  const names = new Set();
  for (const row of rows) {
    if (row.clusterName) names.add(row.clusterName);
    if (names.size === MAX_SUGGESTIONS) break;
  }
  if (list.childElementCount === names.size) return;
  fill(list, [...names].sort().map((name) => h('option', { value: name })));
}
