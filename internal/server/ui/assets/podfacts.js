// The facts of a Pod: its node and the states of its containers.

import { h } from './dom.js';
import { count, isolated, long } from './text.js';
import { sinceStamp } from './time.js';

/** podFacts shows the facts of a Pod. `past` is true for the last known facts, of an offline agent or a deleted Pod. */
export function podFacts({ node, containers = [] }, past) {
  return h('div', { class: 'pod-facts' },
    h('p', { class: 'pod-node' }, node ? [past ? 'Was on node ' : 'On node ', h('span', { class: 'mono' }, isolated(node))] : past ? 'Had no node' : 'No node yet'),
    containers.length ? table(containers, past) : h('p', { class: 'pod-node' }, 'The kubelet has not reported any containers.'));
}

function table(containers, past) {
  const head = ['Container', past ? 'Last state' : 'State', 'Restarts', 'Last exit'];
  return h('div', { class: 'containers' }, h('table', {},
    h('caption', { class: 'unseen' }, 'Containers'),
    h('thead', {}, h('tr', {}, head.map((title) => h('th', { scope: 'col' }, title)))),
    h('tbody', {}, containers.map(row))));
}

function row({ name, type, image, state, reason, ready, restarts = 0, lastExit }) {
  return h('tr', { 'data-key': `${type ?? ''} ${name}` },
    h('th', { scope: 'row' }, isolated(name), ' ', type && h('span', { class: 'tag' }, isolated(type)), image && h('div', { class: 'image mono' }, long(image, 200))),
    h('td', {}, isolated(state), reason && [' ', isolated(reason)], state === 'Running' && !ready && type !== 'ephemeral' && ', not ready'),
    h('td', { class: 'number' }, count(restarts)),
    h('td', {}, lastExit ? exitText(lastExit) : 'none'));
}

function exitText({ code, reason, time }) {
  return [`exit ${code}`, reason && [' ', isolated(reason)], time && [', ', sinceStamp(time, ' ago')]];
}
