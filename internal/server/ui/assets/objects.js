// The objects of a workload as a tree of owners, with similar siblings grouped.

import { rank, known } from './status.js';
import { many } from './text.js';

const MIN_GROUP_HEALTHY = 4; // similar siblings that become one node
const MIN_GROUP_GONE = 2;
const MIN_GROUP = 8;
const MAX_DEPTH = 50; // owners above an object; real ones have five
const RETURN_TIME = 15_000; // milliseconds around the end of a silence
export const GROUP_PAGE = 100; // objects that an opened group shows at a time

/** objectKey identifies an object. An object that does not exist has no UID. */
export function objectKey(o) {
  return o.object.uid || nameKey(o);
}

function nameKey({ object: { group, kind, namespace, name } }) {
  return [group, kind, namespace, name].join('/');
}

/**
 * goneWord says what happened to an object that is gone. Trees have no derived ReplicaSets without Pods, whether they exist or not.
 */
export function goneWord({ object: { group, kind }, listed }) {
  return group === 'apps' && kind === 'ReplicaSet' && !listed ? 'unused' : 'deleted';
}

/**
 * isFirstSeenAfterSilence reports whether the health of an object may have begun before its `since`: the agent saw it first when it returned after
 * a silence. The agent starts seconds before its first report.
 */
export function isFirstSeenAfterSilence({ since }, silences) {
  return silences.some(({ to }) => Math.abs(Date.parse(since) - Date.parse(to)) < RETURN_TIME);
}

/**
 * withLastObjects has each listed resource once. A listed resource that does not exist has no UID, and its deleted object is
 * another item. The latest such object gives its UID, definition and times, so links to it stay valid. Earlier objects of the same
 * name remain items. A resource that did not exist, and does now, was no object.
 */
export function withLastObjects(objects) {
  const latest = new Map();
  for (const o of objects) {
    if (!o.gone || !o.listed || !o.object.uid) continue;
    const name = nameKey(o);
    if (!(Date.parse(latest.get(name)?.gone) >= Date.parse(o.gone))) latest.set(name, o);
  }
  const merged = new Set();
  const out = objects.map((o) => {
    const last = o.listed && !o.gone && !o.object.uid && latest.get(nameKey(o));
    if (!last) return o;
    merged.add(last);
    const { created, deleted, gone, defined } = last;
    return { ...o, object: last.object, created, deleted, defined, ...(o.state === 'Absent' && { absentSince: o.since ?? deleted ?? gone }) };
  });
  return out.filter((o) => !merged.has(o) && (o.object.uid || !o.gone));
}

/** kindsOf writes a number of objects of a kind, such as 2 deleted Pods; `past`: 2 Pods were Healthy. */
export function kindsOf(n, adjective, kind, past) {
  const plural = kind === 'Endpoints' ? kind : /(s|x|ch|sh)$/i.test(kind) ? `${kind}es` : /[^aeiou]y$/i.test(kind) ? `${kind.slice(0, -1)}ies` : `${kind}s`;
  return past ? many(n, `${kind} was ${adjective}`, `${plural} were ${adjective}`) : many(n, `${adjective} ${kind}`, `${adjective} ${plural}`);
}

/**
 * buildTree makes nodes of objects: {key, object, children}. An owner that is missing, or that would close a cycle, is ignored.
 * Siblings are sorted worst first. No node is deeper than MAX_DEPTH: the functions that walk a tree call themselves.
 */
export function buildTree(objects) {
  const nodes = new Map(objects.map((o) => [objectKey(o), { key: objectKey(o), object: o, children: [], parent: null }]));
  for (const node of nodes.values()) setParents(node, nodes);
  const roots = [];
  for (const node of nodes.values()) (node.parent?.children ?? roots).push(node);
  for (const node of nodes.values()) node.children.sort(bySeverity);
  return roots.sort(bySeverity);
}

// setParents sets the parents of a node and of its owners. It visits each node once. A node at MAX_DEPTH gets no children: they become
// its siblings.
function setParents(node, nodes) {
  const path = [];
  let owner = node;
  while (owner && owner.depth === undefined) {
    owner.depth = Infinity; // it stays so in a cycle and below
    path.push(owner);
    owner = nodes.get(owner.object.owner);
  }
  for (const owned of path.reverse()) {
    const depth = owner ? owner.depth + 1 : 0;
    if (depth < Infinity) {
      owned.depth = Math.min(depth, MAX_DEPTH);
      owned.parent = depth > MAX_DEPTH ? owner.parent : owner ?? null;
    }
    owner = owned;
  }
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
 * groupSiblings groups similar siblings without children: {key, group: nodes}. `opened` has the number of pages of each opened
 * group; {key, more: n} stands for the rest.
 */
export function groupSiblings(siblings, parentKey, opened) {
  const groups = new Map();
  for (const node of siblings) {
    const { object } = node;
    const similarity = node.children.length ? node.key
      : [object.object.group, object.object.kind, known(object.health), object.health === 'Healthy' ? '' : object.reason, object.gone ? goneWord(object) : ''].join('\n');
    if (!groups.has(similarity)) groups.set(similarity, []);
    groups.get(similarity).push(node);
  }
  return [...groups].flatMap(([similarity, nodes]) => {
    const { object } = nodes[0];
    const least = object.gone ? MIN_GROUP_GONE : known(object.health) === 'Healthy' ? MIN_GROUP_HEALTHY : MIN_GROUP;
    if (nodes.length < least) return nodes;
    const key = `${parentKey}\n${similarity}`;
    const group = { key, group: nodes, health: known(object.health), gone: Boolean(object.gone), children: [], kind: object.object.kind };
    const pages = opened.get(key) ?? 0;
    if (!pages) return [group];
    const shown = nodes.slice(0, pages * GROUP_PAGE);
    group.children = shown;
    if (shown.length < nodes.length) group.children = [...shown, { key: `${key}\nmore`, more: nodes.length - shown.length, of: key, children: [] }];
    return [group];
  });
}

/** size counts an object and all its descendants. */
export function size(node) {
  return node.children.reduce((sum, child) => sum + size(child), 1);
}
