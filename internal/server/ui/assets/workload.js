// The page of a workload: why it is as it is, its objects, and what happened.

import { get } from './api.js';
import { announce, fill, h, patch } from './dom.js';
import { ObjectPanel, TABS } from './definition.js';
import { EventList } from './eventlist.js';
import { EventFilter } from './eventfilter.js';
import { Events, changeOf } from './events.js';
import { boardAddress } from './home.js';
import { objectKey } from './objects.js';
import { askAgain, inWords, passes, untilAnswered } from './retry.js';
import { amend, reload } from './router.js';
import { problemState, skeleton } from './states.js';
import { keyOf, known, rank } from './status.js';
import { count, many, plain, said } from './text.js';
import { clock, tick } from './time.js';
import { Timeline } from './timeline.js';
import { Tree } from './tree.js';
import { verdict } from './verdict.js';

const LOOK = 5000; // how often to look for new Events, in milliseconds: the watch tells of workloads only

/** WorkloadPage is the view at /workloads/{type}/{id}. */
export class WorkloadPage {
  #live;
  #rows;
  #shown = null;

  /** rows has what the board knows of workloads, by their keys. */
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
      panel: new ObjectPanel({ choose: (tab) => amend({ object: shown.object, tab }), back: () => shown.tree.focus() }), events: new Events(`${path}/events`),
    };
    // Whoever looks at an object goes on to, although another one becomes worse.
    for (const use of ['pointerdown', 'focusin', 'wheel']) shown.panel.element.addEventListener(use, () => { shown.used = shown.object; }, { passive: true });
    this.#read(params);
    this.#instead(skeleton(6, 'Loading the workload'));
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
    if (filter?.read(params)) this.#drawEvents();
    if (detail) this.#drawObjects();
  }

  #read(params) {
    this.#shown.chosen = params.get('object') ?? '';
    this.#shown.tab = Object.hasOwn(TABS, params.get('tab')) ? params.get('tab') : 'definition';
  }

  /** search puts the cursor where Events are searched. */
  search() {
    this.#shown?.filter?.focus();
  }

  #follow(shown, signal) {
    this.#live.addEventListener('workload', ({ detail }) => {
      if (keyOf(detail) === keyOf(shown)) this.#load();
    }, { signal });
    this.#live.addEventListener('reset', () => this.#load(), { signal });
    this.#live.addEventListener('open', () => { askAgain(); this.#load(); }, { signal });
    const look = setInterval(() => {
      if (!document.hidden && shown.detail && this.#live.state === 'live') shown.events.refresh();
    }, LOOK);
    const ticking = setInterval(() => { tick(shown.main); shown.timeline?.tick(); }, 1000);
    signal.addEventListener('abort', () => { clearInterval(look); clearInterval(ticking); });
  }

  // Changes that come while an answer is under way make one more question, not one each.
  async #load() {
    const shown = this.#shown;
    if (shown.looking) {
      shown.again = true;
      return;
    }
    shown.looking = true;
    const { signal } = shown.stop;
    try {
      const detail = await untilAnswered(() => get(shown.path, {}, { signal }), { signal, failed: (problem) => this.#fail(problem) });
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

  #take(detail) {
    const shown = this.#shown;
    const before = shown.detail?.workload.status;
    const first = !shown.detail || shown.failed;
    shown.detail = { ...detail, objects: detail.objects ?? [] };
    shown.failed = false;
    shown.at = Date.now();
    if (first) this.#build();
    shown.note.hidden = true;
    document.title = plain(`${known(detail.workload.status)}: ${detail.workload.name}`);
    patch(document.getElementById('crumbs'), h('a', { href: boardAddress() }, 'Workloads'), h('span', { 'aria-hidden': 'true' }, '/'), h('span', { 'aria-current': 'page' }, said(detail.workload.name)));
    patch(shown.top, verdict(detail.workload));
    if (before && before !== detail.workload.status) announce(`The workload is ${known(detail.workload.status)}`);
    this.#drawObjects();
    this.#drawEvents();
    shown.events.load();
    if (!first) shown.events.refresh();
  }

  // What is there stays, marked as old, for as long as an answer may still come.
  #fail(problem) {
    const shown = this.#shown;
    if (shown.detail && !shown.failed && passes(problem)) {
      shown.note.hidden = false;
      shown.note.textContent = `This is of ${clock(shown.at, { seconds: true })}. How it is by now could not be read: ${inWords(problem)}`;
      return;
    }
    shown.failed = true;
    this.#instead(problemState(problem, () => reload()));
  }

  // What is to be seen while nothing is known but what the board says, if it has the workload.
  #instead(state) {
    const { main } = this.#shown;
    const row = state.dataset.state === 'missing' ? null : this.#rows.get(keyOf(this.#shown));
    fill(main, h('div', { class: 'workload' }, row && h('div', { class: 'top' }, verdict(row)), state));
  }

  #build() {
    const shown = this.#shown;
    for (const part of [shown.filter, shown.timeline]) part?.stop();
    shown.list = new EventList();
    shown.filter = new EventFilter(() => { amend(shown.filter.params); this.#drawEvents(); });
    shown.timeline = new Timeline({ look: (events, whole) => shown.list.show(events, whole), pick: (events) => shown.list.pick(events), write: amend });
    for (const part of [shown.filter, shown.timeline]) part.read(new URLSearchParams(location.search));
    shown.events.addEventListener('change', () => this.#drawEvents());
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
          shown.timeline.element, shown.eventNote, shown.list.element))));
  }

  // On a narrow page the definition is below the objects, out of sight.
  #choose(object) {
    amend({ object: objectKey(object) });
    const { panel, tree } = this.#shown;
    announce(`${plain(`${object.object.kind} ${object.object.name}`)} is shown`);
    if (panel.element.getBoundingClientRect().top < tree.element.getBoundingClientRect().bottom) return; // it is beside them
    panel.element.scrollIntoView();
  }

  #drawObjects() {
    const { detail: { objects, workload }, tree, panel, treeNote, chosen, used, tab } = this.#shown;
    const find = (key) => objects.find((o) => objectKey(o) === key);
    const object = find(chosen) ?? find(used) ?? culprit(objects);
    this.#shown.object = object ? objectKey(object) : '';
    tree.show(objects, this.#shown.object);
    panel.show(object, workload.clusterUID, tab);
    const present = objects.filter((o) => !o.gone);
    const listed = present.filter((o) => o.listed).length;
    treeNote.textContent = present.length ? `${many(listed, 'listed', 'listed')}, ${many(present.length - listed, 'derived', 'derived')}` : 'None has been reported yet.';
  }

  #drawEvents() {
    const { events, filter, timeline, detail, eventNote } = this.#shown;
    const all = events.items;
    filter.offer(all);
    timeline.show({
      events: all.filter(filter.predicate()), workload: detail.workload,
      changes: all.filter((event) => changeOf(event)), gaps: all.filter((event) => event.gap),
    });
    eventNote.textContent = missing(events);
    eventNote.hidden = eventNote.textContent === '';
  }
}

// missing says which Events are not among those that are shown; empty if none is missing.
function missing({ items, complete, cut, newerProblem, olderProblem }) {
  if (olderProblem) return `${items.length ? `Older Events than these ${count(items.length)}` : 'The Events'} could not be read: ${inWords(olderProblem)}`;
  if (newerProblem) return `What happened since could not be read: ${inWords(newerProblem)}`;
  if (cut) return `These are the newest ${count(items.length)} Events; the API has older ones.`;
  return complete && !items.length ? 'No Event has been reported yet.' : '';
}

// culprit is the object that one wants to see first: the worst listed one.
function culprit(objects) {
  return objects.filter((o) => o.listed && !o.gone).sort((a, b) =>
    rank(a.health) - rank(b.health) || Number(b.defined ?? false) - Number(a.defined ?? false) || weight(b) - weight(a))[0] ?? null;
}

// Among equals it is one that runs something.
function weight({ object }) {
  return /Deployment|StatefulSet|DaemonSet|Job$/.test(object.kind) ? 1 : 0;
}
