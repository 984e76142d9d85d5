// The statuses of the API, worst first.

import { h, icon } from './dom.js';
import { clock } from './time.js';

export const STATUSES = ['Down', 'Error', 'Unhealthy', 'Unknown', 'Reconciling', 'Healthy'];

/** MEANINGS of the statuses, in short; see docs/health.md. Only other reporters than the agent report Error. */
export const MEANINGS = {
  Down: 'Nothing of it works',
  Error: 'The reporter could not read the status',
  Unhealthy: 'It works in part, or something is wrong',
  Unknown: 'No signal, not watched, or the agent is offline',
  Reconciling: 'It is in progress, or inactive on request',
  Healthy: 'It runs as declared',
};

const RANKS = new Map(STATUSES.map((status, rank) => [status, rank]));

/** known maps an unknown status to Unknown. */
export function known(status) {
  return RANKS.has(status) ? status : 'Unknown';
}

/** rank is 0 for the worst. */
export function rank(status) {
  return RANKS.get(known(status));
}

/** badge shows a status by shape, colour and word; a past one, of an offline agent, without colour. */
export function badge(status, { past = false } = {}) {
  const word = known(status);
  return h('span', { class: past ? 'badge past' : 'badge', 'data-status': word }, icon(word), h('span', { class: 'word' }, past ? `was ${word}` : word));
}

/** offlineText describes a workload whose agent has stopped reporting. */
export function offlineText({ said, heardAt }) {
  return `No report${heardAt ? ` since ${clock(heardAt)}` : ''} (last status: ${said ? known(said) : 'none'})`;
}

/** isPast reports whether the objects of a workload are the last known ones: its agent is offline, or no longer watches it. */
export function isPast({ silent, reason }) {
  return Boolean(silent) || reason === 'NotWatched';
}

/** lastStatus is the last reported status, which is the current one unless the agent is offline. */
export function lastStatus({ silent, said, status }) {
  return silent ? said : status;
}

/** sinceOf is when a workload got its status. With an offline agent it is Unknown since the last report. */
export function sinceOf({ silent, heardAt, since }) {
  return silent ? heardAt : since;
}

/** fallbackCause is the text for a workload without a cause. */
export function fallbackCause({ status, reason, since, clusterUID }) {
  return known(status) === 'Unknown' && !since && !clusterUID ? 'No agent has reported this workload yet.' : reason;
}

/**
 * causes is the chain of causes, from the object at fault to a listed object; see docs/health.md. Agents report the object at fault
 * first, and earlier ones reported it last.
 */
export function causes({ cause }) {
  const text = String(cause ?? '');
  return text.includes(' ← ') ? text.split(' ← ').reverse() : text.split(' → ');
}

/** typeName is the name of a type of workload for people. */
export function typeName(type) {
  return type === 'HelmWorkloadInstance' ? 'Helm workload' : 'Workload';
}

/** keyOf identifies a workload. */
export function keyOf({ type, id }) {
  return `${type}/${id}`;
}

/** pathOf is a workload's address. */
export function pathOf({ type, id }) {
  return `/workloads/${encodeURIComponent(type)}/${encodeURIComponent(id)}`;
}
