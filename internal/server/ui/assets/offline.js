// Clusters whose agent is offline: in the list of workloads, each is one line that unfolds.

import { STATUSES, known } from './status.js';
import { many } from './text.js';
import { clock } from './time.js';

/**
 * foldOffline replaces the sorted rows of each offline cluster with several workloads by one item, at the place of the first. The
 * item looks like a row, with `folds`, its rows. `open` has the UIDs of unfolded clusters, whose rows follow the item.
 */
export function foldOffline(rows, open) {
  const clusters = Map.groupBy(rows.filter((row) => row.silent && row.clusterUID), (row) => row.clusterUID);
  return rows.flatMap((row) => {
    const folds = row.silent ? clusters.get(row.clusterUID) : null;
    if (!folds || folds.length < 2) return [row];
    if (row !== folds[0]) return [];
    const { clusterUID, clusterName, heardAt, status } = row;
    const unfolded = open.has(clusterUID);
    const item = { type: 'cluster', id: clusterUID, name: clusterName || clusterUID, clusterUID, clusterName, silent: true, heardAt, status, folds, unfolded };
    return unfolded ? [item, ...folds] : [item];
  });
}

/** foldText describes the workloads of an item of foldOffline. */
export function foldText({ folds, heardAt }) {
  const counts = STATUSES.map((status) => [folds.filter(({ said }) => known(said) === status).length, status]);
  const last = counts.filter(([n]) => n > 0).map((each) => each.join(' ')).join(', ');
  return `Agent offline${heardAt ? ` since ${clock(heardAt)}` : ''}: ${many(folds.length, 'workload')}, last ${last}`;
}
