// What the board shows, and in what order: it is all in the address, so that a link leads to the same view.

import { STATUSES, keyOf, known, rank } from './status.js';

const TYPES = ['WorkloadInstance', 'HelmWorkloadInstance'];

/** readFilters reads them from an address; what it does not know it ignores. */
export function readFilters(params) {
  const sort = params.get('sort') ?? '';
  const column = sort.replace(/^-/, '');
  return {
    statuses: new Set(params.getAll('status').filter((status) => STATUSES.includes(status))),
    cluster: params.get('cluster') ?? '',
    type: TYPES.includes(params.get('type')) ? params.get('type') : '',
    text: params.get('text') ?? '',
    sort: Object.hasOwn(ORDERS, column) ? column : 'worst',
    reverse: sort.startsWith('-') && Object.hasOwn(ORDERS, column),
  };
}

/** addressOf is the board with filters. */
export function addressOf({ statuses, cluster, type, text, sort, reverse }) {
  const params = new URLSearchParams();
  for (const status of STATUSES) if (statuses.has(status)) params.append('status', status);
  if (cluster) params.set('cluster', cluster);
  if (type) params.set('type', type);
  if (text) params.set('text', text);
  if (sort !== 'worst' || reverse) params.set('sort', (reverse ? '-' : '') + sort);
  return params.size ? `/?${params}` : '/';
}

/** unfiltered is the board with all rows, in the same order. */
export function unfiltered({ sort, reverse }) {
  return addressOf({ ...readFilters(new URLSearchParams()), sort, reverse });
}

/** filtering is true if rows may be left out. */
export function filtering({ statuses, cluster, type, text }) {
  return statuses.size > 0 || cluster !== '' || type !== '' || text !== '';
}

// What is searched in a row, made once a version of it.
const haystacks = new WeakMap();

function haystack(row) {
  let text = haystacks.get(row);
  if (text === undefined) {
    text = [row.name, row.cause, row.reason, row.clusterName, row.clusterUID, row.id].join('\n').toLowerCase();
    haystacks.set(row, text);
  }
  return text;
}

/** predicate is what a row has to fulfil; `statuses` may be left out of it, for the counts. */
export function predicate({ statuses, cluster, type, text }, { anyStatus = false } = {}) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = cluster.toLowerCase();
  return (row) => (anyStatus || statuses.size === 0 || statuses.has(known(row.status))) &&
    (type === '' || row.type === type) &&
    (wanted === '' || (row.clusterName ?? '').toLowerCase().includes(wanted) || row.clusterUID === cluster) &&
    words.every((word) => haystack(row).includes(word));
}

const compare = (a, b) => (a < b ? -1 : Number(a > b));
const lower = (text) => (text ?? '').toLowerCase();
const NEVER = '9999';
const sooner = (a, b) => compare(a.since ?? NEVER, b.since ?? NEVER); // of what is not known, last
const byName = (a, b) => compare(lower(a.name), lower(b.name)) || compare(keyOf(a), keyOf(b));

const ORDERS = {
  worst: (a, b) => rank(a.status) - rank(b.status) || sooner(a, b) || byName(a, b),
  name: byName,
  cluster: (a, b) => compare(lower(a.clusterName), lower(b.clusterName)) || rank(a.status) - rank(b.status) || byName(a, b),
  since: (a, b) => sooner(b, a) || byName(a, b),
  delay: (a, b) => delayOf(b) - delayOf(a) || byName(a, b),
};

/** delayOf orders by delay: what is silent is the furthest behind. */
function delayOf(row) {
  return row.silent ? Infinity : row.delaySeconds;
}

/** order sorts rows. */
export function order({ sort, reverse }) {
  return reverse ? (a, b) => ORDERS[sort](b, a) : ORDERS[sort];
}
