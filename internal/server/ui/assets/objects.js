// The objects of a workload as a tree: who owns whom, and what is alike put together.

import { rank, known } from './status.js';
import { many } from './text.js';

const ALIKE_HEALTHY = 4; // so many alike siblings become one node
const ALIKE = 8;
const GROUP_PAGE = 100; // of an opened group so many are drawn

/** objectKey names an object; one that does not exist has no UID. */
export function objectKey({ object }) {
  return object.uid || [object.group, object.kind, object.namespace, object.name].join('/');
}

/** kindsOf writes a number of objects of a kind. */
export function kindsOf(n, kind) {
  return many(n, kind, /(s|x|ch|sh)$/i.test(kind) ? `${kind}es` : kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : `${kind}s`);
}

/**
 * grow makes nodes of objects: {key, object, children}. An owner that is not there, or that would close a circle, counts
 * as none. Siblings are worst first.
 */
export function grow(objects) {
  const nodes = new Map(objects.map((o) => [objectKey(o), { key: objectKey(o), object: o, children: [], parent: null }]));
  const roots = [];
  for (const node of nodes.values()) {
    const owner = nodes.get(node.object.owner);
    if (!owner || inCircle(node, nodes)) roots.push(node);
    else {
      node.parent = owner;
      owner.children.push(node);
    }
  }
  for (const node of nodes.values()) node.children.sort(bySeverity);
  return roots.sort(bySeverity);
}

function inCircle(node, nodes) {
  const seen = new Set();
  for (let up = node; up; up = nodes.get(up.object.owner)) {
    if (seen.has(up)) return up === node || seen.has(node);
    seen.add(up);
  }
  return false;
}

function bySeverity(a, b) {
  const [x, y] = [a.object, b.object];
  return Number(Boolean(x.gone)) - Number(Boolean(y.gone)) || rank(x.health) - rank(y.health) ||
    b.children.length - a.children.length || compare(x.object.kind, y.object.kind) || compare(x.object.name, y.object.name);
}

function compare(a, b) {
  return a < b ? -1 : Number(a > b);
}

/**
 * gather puts siblings together that are alike and have nothing below: {key, group: nodes, label}. `opened` are the keys
 * of groups that are shown in full, as far as a page goes; {key, more: n} stands for the rest.
 */
export function gather(siblings, parentKey, opened) {
  const groups = new Map();
  for (const node of siblings) {
    const { object } = node;
    const alike = node.children.length ? node.key
      : [object.object.group, object.object.kind, known(object.health), object.health === 'Healthy' ? '' : object.reason, Boolean(object.gone)].join('\n');
    groups.set(alike, [...(groups.get(alike) ?? []), node]);
  }
  return [...groups].flatMap(([alike, nodes]) => {
    const { object } = nodes[0];
    const least = object.gone ? 2 : known(object.health) === 'Healthy' ? ALIKE_HEALTHY : ALIKE;
    if (nodes.length < least) return nodes;
    const key = `${parentKey}\n${alike}`;
    const group = { key, group: nodes, health: known(object.health), gone: Boolean(object.gone), children: [], kind: object.object.kind };
    const pages = opened.get(key) ?? 0;
    if (!pages) return [group];
    const shown = nodes.slice(0, pages * GROUP_PAGE);
    group.children = shown;
    if (shown.length < nodes.length) group.children = [...shown, { key: `${key}\nmore`, more: nodes.length - shown.length, of: key, children: [] }];
    return [group];
  });
}

/** size counts an object and all below it. */
export function size(node) {
  return node.children.reduce((sum, child) => sum + size(child), 1);
}
