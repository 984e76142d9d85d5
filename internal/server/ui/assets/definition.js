// One object: its facts, its definition, and the latest change of it.

import { exact, get } from './api.js';
import { fill, h, patch } from './dom.js';
import { commandList } from './commands.js';
import { diffList } from './difflist.js';
import { Folded } from './folded.js';
import { goneWord, isFirstSeenAfterSilence, objectKey } from './objects.js';
import { podFacts } from './podfacts.js';
import { retryNow, problemText, retry } from './retry.js';
import { retryButton, skeleton } from './states.js';
import { badge } from './status.js';
import { long, isolated } from './text.js';
import { sinceStamp, stamp } from './time.js';
import { stateWord } from './tree.js';
import { yamlLines } from './yaml.js';

/** TABS are the tabs by their names in the address, with their titles. */
export const TABS = { definition: 'Definition', changes: 'Changes' };

/** ObjectPanel shows an object. It calls choose(tab) for another tab, and back() to return to the tree. */
export class ObjectPanel {
  #back;
  #object = null;
  #past = false;
  #live = false;
  #of = null; // {key, path, stop, loading, again, definition, problem} of the current object
  #folded = null;
  #drawn = {}; // the definition that each tab shows
  #facts = h('div', { class: 'object-facts' });
  #commands = h('div', {});
  #note = h('div', {});
  #version = h('p', { class: 'version' });
  #tabs = {};
  #panels = {};
  #frame;

  constructor({ choose, back }) {
    this.#back = back;
    for (const [name, title] of Object.entries(TABS)) {
      this.#tabs[name] = h('button', { type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': `panel-${name}`, onclick: () => choose(name) }, title);
      this.#panels[name] = h('div', { role: 'tabpanel', id: `panel-${name}`, 'aria-labelledby': `tab-${name}` });
    }
    this.#frame = h('div', { class: 'object-body' },
      h('div', { class: 'tab-row' },
        h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Versions', onkeydown: ({ key }) => {
          if (key !== 'ArrowLeft' && key !== 'ArrowRight') return;
          const other = this.#tabs.definition.tabIndex === 0 ? 'changes' : 'definition';
          choose(other);
          this.#tabs[other].focus();
        } }, Object.values(this.#tabs)),
        this.#version),
      Object.values(this.#panels));
    this.element = h('section', { class: 'panel object', 'aria-labelledby': 'object-title' }, this.#facts, this.#commands, this.#note, this.#frame);
  }

  stop() {
    this.#of?.stop.abort();
    this.#of = null;
    this.#folded?.stop();
  }

  /**
   * show draws an object, or null, and reloads its definition if it may have changed. `past` is true for the last known object of
   * an offline agent, `live` for a current one. `silences` are the earlier silences of the agent.
   */
  show(object, { clusterUID, past, live, tab, silences = [] }) {
    this.#past = past;
    this.#live = live;
    const news = object !== this.#object;
    this.#object = object;
    const key = object && objectKey(object);
    if (!this.#of || key !== this.#of.key) this.#begin(key);
    const defined = object?.defined && object.object.uid && clusterUID;
    this.#of.path = defined ? `/v0/clusters/${encodeURIComponent(clusterUID)}/objects/${encodeURIComponent(object.object.uid)}` : '';
    for (const [name, button] of Object.entries(this.#tabs)) {
      button.setAttribute('aria-selected', String(name === tab));
      button.tabIndex = name === tab ? 0 : -1;
      this.#panels[name].hidden = name !== tab;
    }
    const back = h('button', { type: 'button', class: 'link to-objects', onclick: () => this.#back() }, 'Back to the objects');
    patch(this.#facts, object ? [back, facts(object, past, silences)] : h('h2', { id: 'object-title' }, 'Object'));
    if (news && defined) this.#load(this.#of);
    this.#draw();
  }

  // Drops everything of the previous object.
  #begin(key) {
    this.stop();
    this.#of = { key, path: '', stop: new AbortController(), loading: false, again: false, definition: null, problem: null };
    this.#folded = null;
    this.#drawn = {};
    for (const panel of Object.values(this.#panels)) fill(panel);
  }

  // Changes during a request cause one more request, not one each.
  async #load(of) {
    of.again = of.loading;
    if (of.loading) return;
    of.loading = true;
    try {
      const { signal } = of.stop;
      const definition = await retry(() => get(of.path, {}, { signal, reviver: exact }), { signal, failed: (problem) => { of.problem = problem; this.#draw(); } });
      if (definition.version !== of.definition?.version) of.definition = definition;
      of.problem = null;
    } catch (problem) {
      of.problem = problem;
      if (problem.kind === 'missing') of.definition = null;
    }
    of.loading = false;
    if (of !== this.#of) return;
    this.#draw();
    if (of.again && of.path) this.#load(of);
  }

  #draw() {
    const definition = this.#of.path ? this.#of.definition : null;
    patch(this.#commands, this.#object && commandList(this.#object, definition, this.#live && !this.#of.problem));
    patch(this.#note, this.#noteOf(definition));
    this.#frame.hidden = !definition;
    if (!definition) return;
    patch(this.#version, versionText(definition));
    this.#frame.dataset.version = definition.version;
    const name = this.#panels.definition.hidden ? 'changes' : 'definition';
    if (this.#drawn[name] === definition) return; // keeps the scroll position and the folds
    this.#drawn[name] = definition;
    if (name === 'changes') patch(this.#panels.changes, changes(definition));
    else this.#drawDefinition(definition);
  }

  // Of a deleted object, the last definition is shown.
  #drawDefinition({ current, previous }) {
    const panel = this.#panels.definition;
    if (!this.#folded) {
      const { kind, namespace, name } = this.#object.object;
      this.#folded = new Folded([kind, namespace, name].filter(Boolean).join('-'));
      fill(panel, this.#folded.element);
    }
    this.#folded.show(yamlLines(current ?? previous ?? null));
  }

  #noteOf(definition) {
    const { path, problem } = this.#of;
    const note = (...text) => h('p', { class: 'code-note' }, ...text);
    if (!this.#object) return note('Select an object to see its definition.');
    if (!path) return note(whyUndefined(this.#object, this.#past));
    if (problem?.kind === 'missing') return note('The definition of this object was removed after its retention time.');
    if (problem) {
      return h('div', { class: 'code-note', role: 'status' },
        h('p', {}, definition && 'This may be an old version. ', problemText(problem)), retryButton(() => { retryNow(); this.#load(this.#of); }));
    }
    return definition ? null : skeleton(8, 'Loading definition');
  }
}

function changes({ previous, current, changedAt }) {
  if (previous) return diffList(previous, current ?? {});
  return h('p', { class: 'code-note' }, changedAt ? ['The spec has not changed since the first report, ', stamp(changedAt), '.'] : 'No change of the spec is known.');
}

// versionText says when the change of the spec was received, which is unknown if that was an earlier release. The cluster does not
// record when the spec changed.
function versionText({ operation, at, changedAt, previousAt }) {
  if (operation === 'DELETED') return ['Deletion reported ', stamp(at), ' · Last definition'];
  const changed = previousAt && ['Spec change reported ', changedAt ? stamp(changedAt) : ['after ', stamp(previousAt)], ' · '];
  return [changed, 'Definition reported ', stamp(at)];
}

function facts(o, past, silences) {
  const { group, version, kind, namespace, name } = o.object;
  const was = past && !o.gone;
  return [
    h('h2', { id: 'object-title' }, h('span', { class: 'kind' }, isolated(kind)), ' ', isolated(name)),
    h('div', { class: 'object-health' }, badge(o.health, { past: past || Boolean(o.gone) }), o.gone ? h('span', {}, goneWord(o) === 'deleted' ? 'deleted ' : `${goneWord(o)} since `, stamp(o.deleted ?? o.gone)) : o.since && h('span', {}, was ? ['since ', stamp(o.since)] : [isFirstSeenAfterSilence(o, silences) ? 'for at least ' : 'for ', sinceStamp(o.since)]),
      o.state && o.state !== 'Present' && h('span', { class: 'tag' }, stateWord(o, past), o.absentSince && [' ', stamp(o.absentSince)])),
    (o.cause || o.reason) && h('p', { class: 'object-cause' }, was && 'Last reported cause: ', long(o.cause || o.reason, 400)),
    h('p', { class: 'object-where mono' }, version && [isolated([group, version].filter(Boolean).join('/')), ' · '], namespace && [isolated(namespace), ' · '], o.listed ? 'listed' : 'derived'),
    o.pod && podFacts(o.pod, past || Boolean(o.gone)),
  ];
}

const MISSING = {
  Absent: ['the object does not exist', 'the object did not exist'], KindNotInstalled: ['its kind is not installed', 'its kind was not installed'],
  Forbidden: ['the agent has no permission to read it', 'the agent had no permission to read it'],
};

function whyUndefined(o, past) {
  if (o.gone && goneWord(o) !== 'deleted') return 'The ReplicaSet has no Pods. It may still exist.';
  if (o.gone || o.absentSince) return 'The object is deleted. Its definition was removed after its retention time.';
  if (!o.listed) return `Created by a controller. Only its health${o.pod ? ', its node and its containers are' : ' is'} reported.`;
  if (o.state && o.state !== 'Present') return `No definition: ${(MISSING[o.state] ?? ['the object cannot be read', 'the object could not be read'])[Number(past)]}.`;
  return 'The definition has not been reported yet.';
}
