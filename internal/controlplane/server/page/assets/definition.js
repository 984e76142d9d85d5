// One object: what is to be said of it, its definition, and what changed in it.

import { exact, get } from './api.js';
import { fill, h } from './dom.js';
import { diffList } from './difflist.js';
import { Folded } from './folded.js';
import { objectKey } from './objects.js';
import { retryButton, skeleton } from './states.js';
import { badge } from './status.js';
import { long, said } from './text.js';
import { sinceStamp, stamp } from './time.js';
import { stateWord } from './tree.js';
import { yamlLines } from './yaml.js';

/** ObjectPanel shows an object of a cluster. */
export class ObjectPanel {
  #key = null;
  #version = '';
  #tab = 'definition';
  #folded = null;
  #stop = new AbortController();
  #facts = h('div', { class: 'object-facts' });
  #body = h('div', { class: 'object-body' });

  constructor() {
    this.element = h('section', { class: 'panel object', 'aria-labelledby': 'object-title' }, this.#facts, this.#body);
  }

  stop() {
    this.#stop.abort();
    this.#folded?.stop();
  }

  /** show brings an object, and asks for its definition if it is another one or may have changed. */
  show(object, clusterUID) {
    if (!object) {
      this.#key = null;
      fill(this.#facts, h('h2', { id: 'object-title' }, 'Object'));
      fill(this.#body, h('p', { class: 'code-note' }, 'Choose an object to see its definition.'));
      return;
    }
    fill(this.#facts, facts(object));
    const other = objectKey(object) !== this.#key;
    this.#key = objectKey(object);
    if (!object.defined || !object.object.uid || !clusterUID) {
      this.#stop.abort();
      fill(this.#body, h('p', { class: 'code-note' }, whyUndefined(object)));
      this.#version = '';
      return;
    }
    this.#load(`/v0/clusters/${encodeURIComponent(clusterUID)}/objects/${encodeURIComponent(object.object.uid)}`, other);
  }

  async #load(path, other) {
    this.#stop.abort();
    const { signal } = this.#stop = new AbortController();
    if (other) {
      this.#version = '';
      fill(this.#body, skeleton(8, 'Loading the definition'));
    }
    try {
      const definition = await get(path, {}, { signal, reviver: exact });
      if (definition.version === this.#version) return; // where one reads, and has folded, stays
      this.#version = definition.version;
      this.#draw(definition);
    } catch (problem) {
      if (signal.aborted) return;
      this.#version = '';
      fill(this.#body, problem.kind === 'missing' ? h('p', { class: 'code-note' }, 'No definition is kept of this object any more.')
        : h('div', { class: 'code-note' }, h('p', {}, said(problem.message)), retryButton(() => this.#load(path, true))));
    }
  }

  #draw(definition) {
    this.#folded?.stop();
    const deleted = definition.operation === 'DELETED';
    const current = definition.current ?? null;
    const panels = {
      definition: () => {
        if (deleted && !current) return h('p', { class: 'code-note' }, 'It was deleted ', stamp(definition.at), '. Its last definition is under Changes.');
        this.#folded = new Folded(yamlLines(current));
        return this.#folded.element;
      },
      changes: () => {
        if (!definition.previous) return h('p', { class: 'code-note' }, 'This is the first version that was seen: there is nothing to compare it with.');
        return diffList(definition.previous, current ?? {});
      },
    };
    const panel = h('div', { id: 'object-panel', role: 'tabpanel' });
    const tabs = ['definition', 'changes'].map((name) => h('button', {
      type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': 'object-panel', onclick: () => choose(name),
    }, name === 'definition' ? 'Definition' : 'Changes'));
    const choose = (name, focus) => {
      this.#tab = name;
      for (const tab of tabs) {
        const chosen = tab.id === `tab-${name}`;
        tab.setAttribute('aria-selected', String(chosen));
        tab.tabIndex = chosen ? 0 : -1;
        if (chosen && focus) tab.focus();
      }
      panel.setAttribute('aria-labelledby', `tab-${name}`);
      this.#folded?.stop();
      fill(panel, panels[name]());
    };
    fill(this.#body, h('div', { class: 'tab-row' },
      h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Versions', onkeydown: (event) => {
        if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') choose(this.#tab === 'changes' ? 'definition' : 'changes', true);
      } }, tabs),
      h('p', { class: 'version' }, operationWord(definition.operation), ' ', stamp(definition.at),
        definition.previousAt && h('span', {}, ', before it ', stamp(definition.previousAt)))), panel);
    choose(this.#tab);
  }
}

const OPERATIONS = { ADDED: 'Added', MODIFIED: 'Modified', DELETED: 'Deleted' };

function operationWord(operation) {
  return OPERATIONS[operation] ?? said(operation);
}

function facts(o) {
  const { group, version, kind, namespace, name } = o.object;
  return [
    h('h2', { id: 'object-title' }, h('span', { class: 'kind' }, said(kind)), ' ', said(name)),
    h('div', { class: 'object-health' }, badge(o.health), o.gone ? h('span', {}, 'gone since ', stamp(o.gone)) : o.since && h('span', {}, 'for ', sinceStamp(o.since)),
      o.state && o.state !== 'Present' && h('span', { class: 'tag' }, stateWord(o.state))),
    (o.cause || o.reason) && h('p', { class: 'object-cause' }, long(o.cause || o.reason, 400)),
    h('p', { class: 'object-where mono' }, said([group, version].filter(Boolean).join('/')), namespace && [' · ', said(namespace)], ' · ', o.listed ? 'listed' : 'derived'),
  ];
}

function whyUndefined(o) {
  if (o.gone) return 'It is gone, and its definition is not kept any more.';
  if (!o.listed) return 'Controllers made it of a listed object. Of such ones only the health is reported, not the definition.';
  if (o.state && o.state !== 'Present') return `There is no definition: it ${({ Absent: 'does not exist', KindNotInstalled: 'is of a kind that is not installed', Forbidden: 'may not be read by the agent' })[o.state] ?? 'is not there to be read'}.`;
  return 'Its definition has not been reported yet.';
}
