// The filter of Events by the object that the user has chosen in the tree.

import { h, patch } from './dom.js';
import { involvedKey } from './eventlist.js';
import { objectKey } from './objects.js';
import { isolated } from './text.js';

/** ObjectFilter says which Events are shown, and calls `clear` when the user wants all. */
export class ObjectFilter {
  #clear;
  #keys = null; // of the chosen object and all below it; null for no filter

  constructor(clear) {
    this.#clear = clear;
    this.element = h('p', { class: 'event-scope', role: 'status', hidden: true });
  }

  /** show filters by an object; null for none. */
  show(object, objects) {
    this.#keys = object && keysBelow(object, objects);
    this.element.hidden = !object;
    if (!object) {
      patch(this.element);
      return;
    }
    const { kind, name } = object.object;
    const others = objects.some((o) => o !== object && o.owner && o.owner === object.object.uid);
    patch(this.element, h('span', {}, 'Only Events of ', h('span', { class: 'kind' }, isolated(kind)), ' ', isolated(name), others && ' and the objects below it'),
      h('button', { type: 'button', class: 'link', onclick: () => this.#clear() }, 'Show all Events'));
  }

  /** predicate is the filter as a function of an Event. */
  predicate() {
    const keys = this.#keys;
    return keys ? (event) => keys.has(involvedKey(event)) : () => true;
  }
}

// keysBelow has the keys of an object and its descendants. An Event without the UID of its object is found by the name.
function keysBelow(object, objects) {
  const children = new Map();
  for (const o of objects) {
    if (!children.has(o.owner)) children.set(o.owner, []);
    children.get(o.owner).push(o);
  }
  const keys = new Set();
  const open = [object];
  while (open.length) {
    const o = open.pop();
    if (keys.has(objectKey(o))) continue;
    const { group, kind, namespace, name, uid } = o.object;
    keys.add(objectKey(o)).add([group, kind, namespace, name].join('/'));
    if (uid) open.push(...(children.get(uid) ?? []));
  }
  return keys;
}
