// The page of a workload: its status and cause, its objects, and its Events.

import { get } from './api.js';
import { announce, fill, h, patch } from './dom.js';
import { ObjectPanel, TABS } from './definition.js';
import { EventList } from './eventlist.js';
import { EventFilter } from './eventfilter.js';
import { Events, changeOf, notHealthySince } from './events.js';
import { listAddress } from './home.js';
import { Lifecycle } from './lifecycle.js';
import { ObjectFilter } from './objectfilter.js';
import { objectKey, withLastObjects } from './objects.js';
import { retryNow, problemText, isTemporary, retry } from './retry.js';
import { setParams, reload } from './router.js';
import { problemState, skeleton } from './states.js';
import { isPast, keyOf, known, rank } from './status.js';
import { count, many, plain, isolated } from './text.js';
import { stamp, tick, zoneSwitch } from './time.js';
import { Timeline } from './timeline.js';
import { Tree } from './tree.js';
import { verdict } from './verdict.js';

/** isCurrent is true while the page gets changes: its connection is open, or has just been requested. */
const isCurrent = ({ state }) => state === 'live' || state === 'connecting';

const EVENT_INTERVAL = 5000; // between polls for new Events, which the watch does not send, in milliseconds

/** WorkloadPage is the view at /workloads/{type}/{id}. */
export class WorkloadPage {
  #live;
  #rows;
  #shown = null;

  /** rows are the workloads of the workload list by key. */
  constructor(live, rows) {
    this.#live = live;
    this.#rows = rows;
  }

  show(main, [, type, id], params) {
    const path = `/v0/workloads/${type}/${id}`;
    const stop = new AbortController();
    document.title = 'Workload';
    const shown = this.#shown = {
      main, type, id, path, stop, detail: null, looking: null, object: '', used: '',
      tree: new Tree({ select: (object) => this.#choose(object) }),
      panel: new ObjectPanel({ choose: (tab) => setParams({ object: shown.object, tab }), back: () => shown.tree.focus() }), events: new Events(`${path}/events`), lifecycle: new Lifecycle(),
    };
    // The panel stays on an object that the user works with, although another one becomes worse.
    for (const use of ['pointerdown', 'focusin', 'wheel']) shown.panel.element.addEventListener(use, () => { shown.used = shown.object; }, { passive: true });
    this.#read(params);
    this.#placeholder(skeleton(6, 'Loading workload'));
    this.#follow(shown, stop.signal);
    this.#live.watchOne({ type, id });
    this.#load();
  }

  leave() {
    const { stop, tree, panel, events, timeline, filter } = this.#shown;
    stop.abort();
    tree.stop();
    panel.stop();
    events.stop();
    timeline?.stop();
    filter?.stop();
    this.#shown = null;
  }

  update(params) {
    const { detail, filter, timeline } = this.#shown;
    this.#read(params);
    timeline?.read(params);
    const filtered = filter?.read(params);
    if (detail) this.#drawObjects();
    if (filtered || this.#filterByObject()) this.#drawEvents();
  }

  #read(params) {
    this.#shown.chosen = params.get('object') ?? '';
    this.#shown.allEvents = params.get('events') === 'all';
    this.#shown.tab = Object.hasOwn(TABS, params.get('tab')) ? params.get('tab') : 'definition';
  }

  /** search moves the cursor to the search field of the Events. */
  search() {
    this.#shown?.filter?.focus();
  }

  #follow(shown, signal) {
    this.#live.addEventListener('workload', ({ detail }) => {
      if (keyOf(detail) === keyOf(shown)) this.#load();
    }, { signal });
    this.#live.addEventListener('reset', () => this.#load(), { signal });
    this.#live.addEventListener('state', () => { if (shown.detail && !shown.failed) { this.#setTitle(); this.#drawObjects(); } }, { signal });
    this.#live.addEventListener('open', () => { retryNow(); this.#load(); }, { signal });
    zoneSwitch.addEventListener('change', () => this.#redraw(), { signal });
    const polling = setInterval(() => {
      if (!document.hidden && shown.detail && this.#live.state === 'live') shown.events.refresh();
    }, EVENT_INTERVAL);
    const ticking = setInterval(() => {
      if (!isCurrent(this.#live)) return; // a duration that grows would say that the status still holds
      tick(shown.main);
      shown.timeline?.tick();
    }, 1000);
    signal.addEventListener('abort', () => { clearInterval(polling); clearInterval(ticking); });
  }

  // Changes during a request cause one more request, not one each.
  async #load() {
    const shown = this.#shown;
    if (shown.looking) {
      shown.again = true;
      return;
    }
    shown.looking = true;
    const { signal } = shown.stop;
    try {
      const detail = await retry(() => get(shown.path, {}, { signal }), { signal, failed: (problem) => this.#fail(problem) });
      if (!signal.aborted) this.#take(detail);
    } catch (problem) {
      if (signal.aborted) return;
      if (!problem.kind) throw problem;
      this.#fail(problem);
    } finally {
      shown.looking = false;
    }
    if (!shown.again) return;
    shown.again = false;
    this.#load();
  }

  // A tab in the background shows only its title.
  #setTitle() {
    const { name, status } = this.#shown.detail.workload;
    document.title = plain(isCurrent(this.#live) ? `${known(status)}: ${name}` : `Not connected: ${name}, was ${known(status)}`);
  }

  #take(detail) {
    const shown = this.#shown;
    const before = shown.detail?.workload.status;
    const first = !shown.detail || shown.failed;
    shown.detail = { ...detail, objects: withLastObjects(detail.objects ?? []) };
    shown.failed = false;
    shown.at = new Date().toISOString();
    if (first) this.#build();
    shown.note.hidden = true;
    this.#setTitle();
    patch(document.getElementById('crumbs'), h('a', { href: listAddress() }, 'Workloads'), h('span', { 'aria-hidden': 'true' }, '/'), h('span', { 'aria-current': 'page', title: plain(detail.workload.name) }, isolated(detail.workload.name)));
    this.#drawVerdict();
    if (before && before !== detail.workload.status) announce(`The workload is ${known(detail.workload.status)}`);
    this.#drawObjects();
    this.#drawEvents();
    shown.events.load();
    if (!first) shown.events.refresh();
  }

  // The last data stays, marked as old, while a retry may succeed.
  #fail(problem) {
    const shown = this.#shown;
    if (shown.detail && !shown.failed && isTemporary(problem)) {
      shown.note.hidden = false;
      fill(shown.note, 'Showing data from ', stamp(shown.at), `. The current state could not be read: ${problemText(problem)}`);
      this.#drawObjects();
      return;
    }
    shown.failed = true;
    this.#placeholder(problemState(problem, () => reload()));
  }

  // The view without details: the workload's row of the workload list, if there is one, and a state.
  #placeholder(state) {
    const { main } = this.#shown;
    const row = state.dataset.state === 'missing' ? null : this.#rows.get(keyOf(this.#shown));
    fill(main, h('div', { class: 'workload' }, row && h('div', { class: 'top' }, verdict(row)), state));
  }

  #build() {
    const shown = this.#shown;
    for (const part of [shown.filter, shown.timeline]) part?.stop();
    shown.list = new EventList();
    shown.objectFilter = new ObjectFilter(() => {
      setParams({ events: 'all' });
      shown.timeline.focus();
    });
    shown.filteredBy = null;
    shown.filter = new EventFilter(() => { setParams(shown.filter.params); this.#drawEvents(); });
    shown.timeline = new Timeline({ show: (events, total) => shown.list.show(events, total), pick: (events) => shown.list.pick(events), write: setParams });
    for (const part of [shown.filter, shown.timeline]) part.read(new URLSearchParams(location.search));
    shown.events.addEventListener('change', () => { this.#drawVerdict(); this.#drawEvents(); });
    shown.note = h('p', { class: 'note', hidden: true, role: 'status' });
    shown.top = h('div', { class: 'top' });
    shown.treeNote = h('p', { class: 'section-note' });
    shown.eventNote = h('p', { class: 'code-note', hidden: true, role: 'status' });
    fill(shown.main, h('div', { class: 'workload' }, shown.note, shown.top,
      h('div', { class: 'columns' },
        h('section', { class: 'panel', 'aria-labelledby': 'objects-title' }, h('div', { class: 'panel-head' }, h('h2', { id: 'objects-title' }, 'Objects'), shown.treeNote), shown.tree.element),
        shown.panel.element,
        h('section', { class: 'panel happened', 'aria-labelledby': 'timeline-title' },
          h('div', { class: 'panel-head' }, h('h2', { id: 'timeline-title' }, 'Timeline'), shown.filter.element),
          shown.objectFilter.element, shown.timeline.element, shown.eventNote, shown.list.element))));
  }

  // On a narrow page the panel is below the objects and may be invisible.
  #choose(object) {
    setParams({ object: objectKey(object), events: '' });
    const { panel, tree } = this.#shown;
    announce(`${plain(`${object.object.kind} ${object.object.name}`)} is shown`);
    if (panel.element.getBoundingClientRect().top < tree.element.getBoundingClientRect().bottom) return; // the panel is beside the tree
    panel.element.scrollIntoView();
  }

  #redraw() {
    if (!this.#shown.detail) return;
    this.#drawVerdict();
    this.#drawObjects();
    this.#shown.timeline.redraw();
  }

  #drawVerdict() {
    const { detail: { workload }, events, top } = this.#shown;
    patch(top, verdict(workload, notHealthySince(events, workload.status)));
  }

  #drawObjects() {
    const { detail: { objects, workload, silences }, tree, panel, treeNote, chosen, used, tab } = this.#shown;
    const find = (key) => objects.find((o) => objectKey(o) === key);
    const object = find(chosen) ?? find(used) ?? worstObject(objects);
    this.#shown.object = object ? objectKey(object) : '';
    const past = isPast(workload);
    tree.show(objects, this.#shown.object, past);
    panel.show(object, { clusterUID: workload.clusterUID, past, live: this.#live.state === 'live' && !past && this.#shown.note.hidden, tab, silences });
    const present = objects.filter((o) => !o.gone);
    const listed = present.filter((o) => o.listed).length;
    const filtered = workload.filtered ? `; a filter of the agent leaves out ${many(workload.filtered, 'derived object')}` : '';
    treeNote.textContent = present.length ? `${count(listed)} listed, ${count(present.length - listed)} derived${filtered}` : 'No objects have been reported yet.';
  }

  // Filters the Events by the object in the address, and returns whether the filter has changed. The object that the page shows by
  // itself is no filter.
  #filterByObject() {
    const shown = this.#shown;
    const { detail, chosen, allEvents, objectFilter } = shown;
    if (!detail || !objectFilter) return false;
    const object = allEvents ? null : detail.objects.find((o) => objectKey(o) === chosen) ?? null;
    if (shown.filteredBy === object) return false;
    shown.filteredBy = object;
    objectFilter.show(object, detail.objects);
    return true;
  }

  #drawEvents() {
    const { events, lifecycle, filter, objectFilter, timeline, detail, eventNote } = this.#shown;
    const all = lifecycle.addTo(events.items, detail.objects);
    filter.offer(all);
    this.#filterByObject();
    const [matches, isOfObject] = [filter.predicate(), objectFilter.predicate()];
    timeline.show({
      events: all.filter((event) => isOfObject(event) && matches(event)), workload: detail.workload, silences: detail.silences,
      changes: all.filter((event) => changeOf(event)), gaps: all.filter((event) => event.gap),
    });
    eventNote.textContent = missing(events);
    eventNote.hidden = eventNote.textContent === '';
  }
}

// missing describes the Events that are not shown; empty if all are.
function missing({ items, complete, cut, newerProblem, olderProblem }) {
  if (olderProblem) return `${items.length ? 'Older Events' : 'The Events'} could not be read: ${problemText(olderProblem)}`;
  if (newerProblem) return `Newer Events could not be read: ${problemText(newerProblem)}`;
  if (cut) return `Showing the newest ${many(items.length, 'Event')}. Older ones are in the API.`;
  return complete && !items.length ? 'No Events have been reported yet.' : '';
}

// worstObject is the object to show first: the worst listed one.
function worstObject(objects) {
  return objects.filter((o) => o.listed && !o.gone).sort((a, b) =>
    rank(a.health) - rank(b.health) || Number(b.defined ?? false) - Number(a.defined ?? false) || weight(b) - weight(a))[0] ?? null;
}

// Among equally bad objects, one that runs pods comes first.
function weight({ object }) {
  return /Deployment|StatefulSet|DaemonSet|Job$/.test(object.kind) ? 1 : 0;
}
