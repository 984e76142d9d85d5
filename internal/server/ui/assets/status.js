// The words for a health, worst first, as the API ranks them.

import { h, icon } from './dom.js';
import { clock } from './time.js';

export const STATUSES = ['Down', 'Error', 'Unhealthy', 'Unknown', 'Reconciling', 'Healthy'];

const RANKS = new Map(STATUSES.map((status, rank) => [status, rank]));

/** known maps a word to one that has a shape and a colour; any other is Unknown, and never Healthy. */
export function known(status) {
  return RANKS.has(status) ? status : 'Unknown';
}

/** rank is 0 for the worst. */
export function rank(status) {
  return RANKS.get(known(status));
}

/** badge is a health by shape, colour and word. */
export function badge(status, className = '') {
  const word = known(status);
  return h('span', { class: `badge ${className}`.trim(), 'data-status': word }, icon(word), h('span', { class: 'word' }, word));
}

/** silence says what is known of a workload whose agent is not heard. */
export function silence(workload) {
  const said = workload.said ? `last said ${known(workload.said)}${workload.saidAt ? ` at ${clock(workload.saidAt)}` : ''}` : 'it never said how it is';
  return workload.heardAt ? `${said}, nothing heard since ${clock(workload.heardAt)}` : `${said}, and nothing is heard`;
}

/** sinceOf is since when a workload has its status; that of one whose agent is not heard is Unknown since it was. */
export function sinceOf({ silent, heardAt, since }) {
  return silent ? heardAt : since;
}

/** unexplained is what can be said of a workload without a cause. */
export function unexplained({ status, reason, since, clusterUID }) {
  return known(status) === 'Unknown' && !since && !clusterUID ? 'No agent has reported of it yet.' : reason;
}

/** causes are what is wrong with a workload, and then why, from a listed object to the one at fault; see docs/health.md. */
export function causes({ cause }) {
  return (cause ?? '').split(' ← ');
}

/** typeName is how people call a type of workload. */
export function typeName(type) {
  return type === 'HelmWorkloadInstance' ? 'Helm workload' : 'Workload';
}

/** keyOf names a workload among all. */
export function keyOf({ type, id }) {
  return `${type}/${id}`;
}

/** pathOf is a workload's address. */
export function pathOf({ type, id }) {
  return `/workloads/${encodeURIComponent(type)}/${encodeURIComponent(id)}`;
}
