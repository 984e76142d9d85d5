// Creations, changes of the spec, and deletions of listed objects. The time of a change or a deletion is that of its report.
// The timeline and the list of Events show them like Events.

import { objectKey } from './objects.js';

const CHANGES = [['created', 'Created', 'The object was created.'], ['specChanged', 'SpecChanged', 'A change of the spec was reported.'], ['deleted', 'Deleted', 'The deletion of the object was reported.']];

/** Lifecycle makes Events of the times of objects. They have `lifecycle`, the name of the time. */
export class Lifecycle {
  #made = new Map(); // unchanged Events keep their identity, so nothing is drawn again

  /** addTo adds the Events of listed objects to others. All are sorted, newest first. */
  addTo(events, objects) {
    const own = objects.filter(({ listed }) => listed).flatMap((object) =>
      CHANGES.filter(([name]) => object[name]).map((change) => this.#event(object, change)));
    return own.length ? [...events, ...own].sort((a, b) => b.at - a.at) : events;
  }

  #event(object, [name, reason, message]) {
    const id = `${name} ${objectKey(object)}`;
    const time = object[name];
    let event = this.#made.get(id);
    if (event?.time !== time) {
      const at = Date.parse(time);
      event = { id, lifecycle: name, type: 'Normal', reason, message, involved: object.object, count: 1, time, at, from: at };
      this.#made.set(id, event);
    }
    return event;
  }
}
