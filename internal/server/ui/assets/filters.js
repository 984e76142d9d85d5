// The filters and the order of the workload list. They are in the address, so a link leads to the same view.

import { STATUSES, keyOf, known, lastStatus, rank, sinceOf } from './status.js';

/** LATE is the delay of reports that is highlighted, in seconds. */
const LATE = 60;

/** isLate is true for a row whose agent reports, but with a delay. */
export function isLate(row) {
  return !row.silent && row.delaySeconds >= LATE;
}

/** ONLY are the delivery problems of a row: name in the address, label, meaning, and test. */
export const ONLY = [
  ['silent', 'Agent offline', 'The agent of the cluster has stopped reporting', (row) => Boolean(row.silent)],
  ['rejected', 'Rejected reports', 'The control plane has rejected reports of the workload', (row) => row.rejected > 0],
  ['late', 'Delayed', `Reports of the cluster take ${LATE / 60} min or longer`, isLate],
];

const TYPES = ['WorkloadInstance', 'HelmWorkloadInstance'];

/** readFilters reads the filters of an address, and ignores unknown ones. */
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

/** addressOf is the address of the workload list with filters. */
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

/** unfiltered is the address of the workload list with all rows, in the same order. */
export function unfiltered({ sort, reverse }) {
  return addressOf({ ...readFilters(new URLSearchParams()), sort, reverse });
}

/** filtering is true if a filter is set. */
export function filtering({ statuses, only, cluster, type, text }) {
  return statuses.size > 0 || only.size > 0 || cluster !== '' || type !== '' || text !== '';
}

// The searchable text of each row, made once per version.
const searchTexts = new WeakMap();

function searchText(row) {
  let text = searchTexts.get(row);
  if (text === undefined) {
    text = [row.name, known(row.status), row.silent ? 'offline silent' : '', row.cause, row.reason, ...(row.namespaces ?? []), row.clusterName, row.clusterUID, row.id].join('\n').toLowerCase();
    searchTexts.set(row, text);
  }
  return text;
}

/** predicate tests a row for all filters but the chips. */
export function predicate({ cluster, type, text }) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = cluster.toLowerCase();
  return (row) => (type === '' || row.type === type) &&
    (wanted === '' || (row.clusterName ?? '').toLowerCase().includes(wanted) || row.clusterUID === cluster) &&
    words.every((word) => searchText(row).includes(word));
}

/** chosen has a test for each group of chips: a row passes if one of the pressed chips fits. */
export function chosen({ statuses, only }) {
  const tests = ONLY.filter(([name]) => only.has(name)).map(([, , , test]) => test);
  return {
    status: (row) => statuses.size === 0 || statuses.has(known(row.status)),
    only: (row) => tests.length === 0 || tests.some((test) => test(row)),
  };
}

const compare = (a, b) => (a < b ? -1 : Number(a > b));
const lower = (text) => (text ?? '').toLowerCase();
const newer = (a, b) => compare(sinceOf(b) ?? '', sinceOf(a) ?? '');
const byName = (a, b) => compare(lower(a.name), lower(b.name)) || compare(keyOf(a), keyOf(b));

const byCluster = (a, b) => compare(lower(a.clusterName), lower(b.clusterName)) || compare(a.clusterUID ?? '', b.clusterUID ?? '');

// With an offline agent all workloads are Unknown: the last status decides.
const byStatus = (a, b) => rank(a.status) - rank(b.status) || rank(lastStatus(a)) - rank(lastStatus(b));

const ORDERS = {
  worst: (a, b) => byStatus(a, b) || newer(a, b) || byName(a, b),
  name: byName,
  cluster: (a, b) => byCluster(a, b) || byStatus(a, b) || byName(a, b),
  since: (a, b) => newer(a, b) || byName(a, b),
  delay: (a, b) => delayOf(b) - delayOf(a) || byName(a, b),
};

/** delayOf orders by delay: an offline agent counts as the longest. */
function delayOf(row) {
  return row.silent ? Infinity : row.delaySeconds;
}

// Rows without a value in these columns come last in both directions.
const MISSING = {
  since: (row) => !sinceOf(row),
  delay: (row) => !row.silent && !row.heardAt,
};

/** order sorts rows. */
export function order({ sort, reverse }) {
  if (sort === 'cluster' && reverse) return (a, b) => byCluster(b, a) || ORDERS.cluster(a, b); // worst first in each
  const by = reverse ? (a, b) => ORDERS[sort](b, a) : ORDERS[sort];
  const missing = MISSING[sort];
  return missing ? (a, b) => missing(a) - missing(b) || by(a, b) : by;
}

/** direction is the direction of the displayed values, for screen readers. */
export function direction({ sort, reverse }) {
  const descends = sort === 'worst' || sort === 'delay';
  return descends === reverse ? 'ascending' : 'descending';
}

/** SORTS are all orders: name in the address, and label. */
export const SORTS = [
  ['worst', 'Worst first'], ['-worst', 'Healthiest first'], ['name', 'Name, A to Z'], ['-name', 'Name, Z to A'],
  ['cluster', 'Cluster, A to Z'], ['-cluster', 'Cluster, Z to A'], ['since', 'Latest change first'], ['-since', 'Oldest change first'],
  ['delay', 'Longest delay first'], ['-delay', 'Shortest delay first'],
];

/** sortName is the name of an order in the address. */
export function sortName({ sort, reverse }) {
  return (reverse ? '-' : '') + sort;
}
