// What the board shows, and in what order: it is all in the address, so that a link leads to the same view.

import { STATUSES, keyOf, known, rank, sinceOf } from './status.js';

/** LATE is a delay of delivery that is worth a colour, in seconds. */
const LATE = 60;

/** isLate is true for a row whose cluster's agent is heard, but late. */
export function isLate(row) {
  return !row.silent && row.delaySeconds >= LATE;
}

/** ONLY is what may be wrong with how a row came here: a name in the address, one for people, what it means, and its test. */
export const ONLY = [
  ['silent', 'Silent cluster', 'Nothing is heard of the cluster’s agent', (row) => Boolean(row.silent)],
  ['rejected', 'Dead letters', 'Reports of it were refused for good', (row) => row.rejected > 0],
  ['late', 'Late', `Its cluster’s reports take ${LATE / 60} min or longer`, isLate],
];

const TYPES = ['WorkloadInstance', 'HelmWorkloadInstance'];

/** readFilters reads them from an address; what it does not know it ignores. */
export function readFilters(params) {
  const sort = params.get('sort') ?? '';
  const column = sort.replace(/^-/, '');
  return {
    statuses: new Set(params.getAll('status').filter((status) => STATUSES.includes(status))),
    only: new Set(params.getAll('only').filter((name) => ONLY.some(([one]) => one === name))),
    cluster: params.get('cluster') ?? '',
    type: TYPES.includes(params.get('type')) ? params.get('type') : '',
    text: params.get('text') ?? '',
    sort: Object.hasOwn(ORDERS, column) ? column : 'worst',
    reverse: sort.startsWith('-') && Object.hasOwn(ORDERS, column),
  };
}

/** addressOf is the board with filters. */
export function addressOf({ statuses, only, cluster, type, text, sort, reverse }) {
  const params = new URLSearchParams();
  for (const status of STATUSES) if (statuses.has(status)) params.append('status', status);
  for (const [name] of ONLY) if (only.has(name)) params.append('only', name);
  if (cluster) params.set('cluster', cluster);
  if (type) params.set('type', type);
  if (text) params.set('text', text);
  if (sort !== 'worst' || reverse) params.set('sort', sortName({ sort, reverse }));
  return params.size ? `/?${params}` : '/';
}

/** unfiltered is the board with all rows, in the same order. */
export function unfiltered({ sort, reverse }) {
  return addressOf({ ...readFilters(new URLSearchParams()), sort, reverse });
}

/** filtering is true if rows may be left out. */
export function filtering({ statuses, only, cluster, type, text }) {
  return statuses.size > 0 || only.size > 0 || cluster !== '' || type !== '' || text !== '';
}

// What is searched in a row, made once a version of it.
const haystacks = new WeakMap();

function haystack(row) {
  let text = haystacks.get(row);
  if (text === undefined) {
    text = [row.name, known(row.status), row.silent ? 'silent' : '', row.cause, row.reason, row.clusterName, row.clusterUID, row.id].join('\n').toLowerCase();
    haystacks.set(row, text);
  }
  return text;
}

/** predicate is what a row has to fulfil beside what has chips. */
export function predicate({ cluster, type, text }) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = cluster.toLowerCase();
  return (row) => (type === '' || row.type === type) &&
    (wanted === '' || (row.clusterName ?? '').toLowerCase().includes(wanted) || row.clusterUID === cluster) &&
    words.every((word) => haystack(row).includes(word));
}

/** chosen is what a row has to fulfil of each group of chips: one of those that are pressed. */
export function chosen({ statuses, only }) {
  const tests = ONLY.filter(([name]) => only.has(name)).map(([, , , test]) => test);
  return {
    status: (row) => statuses.size === 0 || statuses.has(known(row.status)),
    only: (row) => tests.length === 0 || tests.some((test) => test(row)),
  };
}

const compare = (a, b) => (a < b ? -1 : Number(a > b));
const lower = (text) => (text ?? '').toLowerCase();
const NEVER = '9999';
const sooner = (a, b) => compare(sinceOf(a) ?? NEVER, sinceOf(b) ?? NEVER);
const byName = (a, b) => compare(lower(a.name), lower(b.name)) || compare(keyOf(a), keyOf(b));

const byCluster = (a, b) => compare(lower(a.clusterName), lower(b.clusterName)) || compare(a.clusterUID ?? '', b.clusterUID ?? '');

const ORDERS = {
  worst: (a, b) => rank(a.status) - rank(b.status) || sooner(a, b) || byName(a, b),
  name: byName,
  cluster: (a, b) => byCluster(a, b) || rank(a.status) - rank(b.status) || byName(a, b),
  since: (a, b) => sooner(b, a) || byName(a, b),
  delay: (a, b) => delayOf(b) - delayOf(a) || byName(a, b),
};

/** delayOf orders by delay: what is silent is the furthest behind. */
function delayOf(row) {
  return row.silent ? Infinity : row.delaySeconds;
}

// Of these columns a row may say nothing. It comes last then, whatever the direction.
const UNSAID = {
  since: (row) => !sinceOf(row),
  delay: (row) => !row.silent && !row.heardAt,
};

/** order sorts rows. */
export function order({ sort, reverse }) {
  if (sort === 'cluster' && reverse) return (a, b) => byCluster(b, a) || ORDERS.cluster(a, b); // worst first in each
  const by = reverse ? (a, b) => ORDERS[sort](b, a) : ORDERS[sort];
  const unsaid = UNSAID[sort];
  return unsaid ? (a, b) => unsaid(a) - unsaid(b) || by(a, b) : by;
}

/** direction is that of what is shown: of ages, of delays, of how bad it is, and of the letters of names. */
export function direction({ sort, reverse }) {
  const falls = sort === 'worst' || sort === 'delay';
  return falls === reverse ? 'ascending' : 'descending';
}

/** SORTS are all orders, as they are in the address and for people. */
export const SORTS = [
  ['worst', 'Worst first'], ['-worst', 'Healthiest first'], ['name', 'Name, A to Z'], ['-name', 'Name, Z to A'],
  ['cluster', 'Cluster, A to Z'], ['-cluster', 'Cluster, Z to A'], ['since', 'Latest change first'], ['-since', 'Oldest change first'],
  ['delay', 'Longest delay first'], ['-delay', 'Shortest delay first'],
];

/** sortName is the order as it is in the address. */
export function sortName({ sort, reverse }) {
  return (reverse ? '-' : '') + sort;
}
