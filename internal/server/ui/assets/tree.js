// The tree of a workload's objects. Screen readers get the same tree, with the same order and levels.

import { fill, h, icon, patch, s } from './dom.js';
import { NODE, across, down, edge } from './layout.js';
import { GROUP_PAGE, buildTree, goneWord, groupSiblings, kindsOf, size } from './objects.js';
import { known } from './status.js';
import { clip, count, many, middle, plain, isolated } from './text.js';

const NARROW = 620; // below this width a tree from left to right does not fit, in pixels

/** Tree draws objects. A click calls select(object). */
export class Tree {
  #select;
  #objects = [];
  #past = false;
  #folded = new Set();
  #opened = new Map();
  #active = null;
  #selected = null;
  #nodes = []; // from top to bottom
  #edges = s('svg', { class: 'edges', 'aria-hidden': 'true' });
  #items = h('div', { class: 'nodes', role: 'tree', 'aria-label': 'Objects' });
  #sizes;

  constructor({ select }) {
    this.#select = select;
    this.#items.addEventListener('keydown', (event) => this.#key(event));
    this.#items.addEventListener('click', (event) => this.#click(event));
    this.element = h('div', { class: 'tree' }, h('div', { class: 'tree-canvas' }, this.#edges, this.#items));
    let width = 0;
    this.#sizes = new ResizeObserver(([{ contentRect }]) => {
      if (contentRect.width === width) return;
      width = contentRect.width;
      this.draw();
    });
    this.#sizes.observe(this.element);
  }

  stop() { this.#sizes.disconnect(); }

  /** focus moves to the selected object. */
  focus() {
    if (this.#nodes.some((node) => node.key === this.#selected)) this.#active = this.#selected;
    this.#focus({ preventScroll: true });
    document.activeElement.scrollIntoView({ block: 'center' });
  }

  /** show draws objects. `selected` is the key of one. `past` is true for the last known objects of an offline agent. */
  show(objects, selected, past) {
    this.#objects = objects;
    this.#selected = selected;
    this.#past = past;
    this.element.classList.toggle('past', past);
    this.draw();
  }

  draw() {
    const focused = this.#items.contains(document.activeElement);
    const roots = this.#visible(buildTree(this.#objects), '');
    const available = this.#availableWidth();
    const narrow = available > 0 && available < NARROW;
    const { width, height } = narrow ? down(roots, available) : across(roots, available);
    this.#nodes = [];
    this.#list(roots, 1);
    if (!this.#nodes.some((node) => node.key === this.#active)) {
      this.#active = (this.#nodes.find((node) => node.key === this.#selected) ?? this.#nodes[0])?.key ?? null;
    }
    this.element.classList.toggle('narrow', narrow);
    const canvas = this.#items.parentNode;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    patch(this.#items, this.#nodes.map((node) => this.#item(node)));
    this.#updateTabStop();
    this.#edges.setAttribute('viewBox', `0 0 ${Math.max(1, width)} ${Math.max(1, height)}`);
    this.#edges.setAttribute('width', String(width));
    this.#edges.setAttribute('height', String(height));
    fill(this.#edges, this.#nodes.flatMap((node) => node.visible.map((child) => s('path', {
      d: edge(node, child, narrow), 'data-status': statusOf(child),
    }))));
    if (focused && !this.#items.contains(document.activeElement)) this.#focus({ preventScroll: true }); // the focused object disappeared
  }

  #availableWidth() {
    const { paddingLeft, paddingRight } = getComputedStyle(this.element);
    return this.element.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight);
  }

  // The nodes to draw: with groups, and without the children of folded nodes.
  #visible(siblings, parentKey) {
    const shown = groupSiblings(siblings, parentKey, this.#opened);
    for (const node of shown) {
      node.height = heightOf(node, this.#past);
      if (node.group) {
        node.visible = node.children;
        for (const child of node.visible) Object.assign(child, { visible: [], height: heightOf(child, this.#past) });
      } else {
        node.visible = this.#folded.has(node.key) ? [] : this.#visible(node.children, node.key);
      }
    }
    return shown;
  }

  #list(nodes, level, parent = null) {
    for (const [i, node] of nodes.entries()) {
      Object.assign(node, { level, position: i + 1, siblings: nodes.length, above: parent });
      this.#nodes.push(node);
      this.#list(node.visible, level + 1, node);
    }
  }

  #item(node) {
    const { class: more, content, ...props } = drawing(node, this.#past);
    return h('div', {
      role: 'treeitem', class: `node ${more}`.trim(), 'data-key': node.key,
      'aria-level': node.level, 'aria-posinset': node.position, 'aria-setsize': node.siblings,
      'aria-expanded': this.#foldable(node) ? String(this.#isOpen(node)) : null,
      'aria-selected': node.object ? String(node.key === this.#selected) : null,
      '--x': `${node.x}px`, '--y': `${node.y}px`, '--width': `${node.width}px`, '--height': `${node.height}px`, ...props,
    }, content, this.#foldable(node) && h('span', { class: 'twist', 'aria-hidden': 'true' }, icon('fold')));
  }

  #foldable(node) {
    return Boolean(node.group) || (node.object && node.children.length > 0);
  }

  #isOpen(node) {
    return node.group ? this.#opened.has(node.key) : !this.#folded.has(node.key);
  }

  #setOpen(node, open) {
    if (node.group) {
      if (open) this.#opened.set(node.key, 1); else this.#opened.delete(node.key);
    } else if (open) this.#folded.delete(node.key);
    else this.#folded.add(node.key);
    this.draw();
    if (this.#items.contains(document.activeElement)) document.activeElement.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  #choose(node) {
    this.#active = node.key;
    if (node.more) {
      this.#opened.set(node.of, (this.#opened.get(node.of) ?? 1) + 1);
      this.draw();
    } else if (node.group) this.#setOpen(node, !this.#isOpen(node));
    else this.#select(node.object);
  }

  #nodeOf(target) {
    const key = target.closest('.node')?.dataset.key;
    return this.#nodes.find((node) => node.key === key);
  }

  #click(event) {
    const node = this.#nodeOf(event.target);
    if (!node) return;
    this.#active = node.key;
    if (event.target.closest('.twist')) this.#setOpen(node, !this.#isOpen(node));
    else this.#choose(node);
    this.#focus({ preventScroll: true }); // it is visible: the user clicked it
  }

  // The keys of a tree as of the ARIA Authoring Practices.
  #key(event) {
    const at = this.#nodes.findIndex((node) => node.key === this.#active);
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const node = this.#nodes[at];
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.#nodes.length - 1 };
    if (event.key in moves) this.#goTo(this.#nodes[moves[event.key]]);
    else if (event.key === 'ArrowRight') this.#right(node);
    else if (event.key === 'ArrowLeft') this.#left(node);
    else if (event.key === 'Enter' || event.key === ' ') this.#choose(node);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #right(node) {
    if (!this.#foldable(node)) return;
    if (this.#isOpen(node)) this.#goTo(node.visible[0]); else this.#setOpen(node, true);
  }

  #left(node) {
    if (this.#foldable(node) && this.#isOpen(node)) this.#setOpen(node, false);
    else this.#goTo(node.above);
  }

  #goTo(node) {
    if (!node) return;
    this.#active = node.key;
    this.#focus();
  }

  // The Tab key stops at one node only.
  #updateTabStop() {
    for (const element of this.#items.children) element.tabIndex = element.dataset.key === this.#active ? 0 : -1;
  }

  #focus(options) {
    this.#updateTabStop();
    this.#items.querySelector('[tabindex="0"]')?.focus(options);
  }
}

// drawing is the props and the content of a node.
function drawing(node, past) {
  if (node.object) return drawObject(node, past);
  return node.group ? drawGroup(node, past) : drawMore(node);
}

function drawObject({ object: o, children }, past) {
  const health = statusOf({ object: o });
  const verdict = verdictOf(o, past);
  const state = stateOf(o, past);
  const why = o.cause || o.reason;
  const cause = past && why ? `Last reported cause: ${why}` : why;
  return {
    class: o.listed ? 'listed' : '', 'data-status': health,
    'aria-label': plain([
      `${clip(o.object.kind, 60)} ${clip(o.object.name, 200)}`, state, o.listed && 'listed', !o.gone && state !== verdict && verdict,
      !o.gone && clip(cause, 200), children.length > 0 && `${many(size({ children }) - 1, 'object')} below`,
    ].filter(Boolean).join(', ')),
    title: plain(`${o.object.kind} ${o.object.namespace ? `${o.object.namespace}/` : ''}${o.object.name}${o.cause ? `\n${cause}` : ''}`.slice(0, 1000)),
    content: [icon(health), h('span', { class: 'what' },
      h('span', { class: 'kind' }, isolated(clip(o.object.kind, 60))), ' ', h('span', { class: 'name' }, middle(o.object.name)), ' ',
      state && h('em', {}, state), ' ', o.listed && h('span', { class: 'pin' }, 'listed'))],
  };
}

// statusOf is the status that a node and its line show.
function statusOf({ object, gone, health }) {
  if (!object) return gone ? 'Gone' : health;
  return object.gone ? 'Gone' : known(object.health);
}

const IDLE = { Completed: '', ScaledToZero: 'scaled to 0', NoNodeSelected: 'selects no node' }; // by the reason of a Healthy object

// stateOf is the text in the third line of a node: what its icon does not say.
function stateOf(object, past) {
  const { gone, state, health, reason } = object;
  if (gone) return goneWord(object);
  if (state && state !== 'Present') return stateWord(object, past);
  if (past) return verdictOf(object, past);
  if (health !== 'Healthy' || !reason) return '';
  return Object.hasOwn(IDLE, reason) ? IDLE[reason] : clip(reason.toLowerCase(), 30);
}

function verdictOf(object, past) {
  const health = statusOf({ object });
  return past ? `was ${health}` : health;
}

// heightOf is the height of a node. A group has one text of several lines, and an object a line for its state.
function heightOf({ object, group }, past) {
  return group || (object && stateOf(object, past)) ? NODE.tall : NODE.height;
}

function drawGroup({ group, health, gone, kind, children }, past) {
  const label = kindsOf(group.length, gone ? goneWord(group[0].object) : health, plain(clip(kind, 60)), past && !gone);
  const how = children.length ? '(expanded)' : '(grouped)';
  return {
    class: 'group', 'data-status': gone ? 'Gone' : health, 'aria-label': `${label} ${how}`, title: `${label} ${how}`,
    content: [icon(gone ? 'Gone' : health), h('span', { class: 'what' },
      h('span', { class: 'name' }, `${label} ${how}`))],
  };
}

function drawMore({ more }) {
  const show = `show the next ${Math.min(more, GROUP_PAGE)}`;
  return {
    class: 'more', 'aria-label': `${count(more)} more, ${show}`,
    content: h('span', { class: 'what' }, h('span', { class: 'name' }, `${count(more)} more`), ' ', h('span', { class: 'kind' }, show)),
  };
}

const STATE_WORDS = {
  Absent: ['does not exist', 'did not exist'], KindNotInstalled: ['kind not installed', 'kind was not installed'],
  Forbidden: ['no permission to read', 'had no permission to read'], Unavailable: ['cannot be read', 'could not be read'],
  Pending: ['being looked up', 'was being looked up'],
};

/** stateWord describes why an object is not present, or was not. */
export function stateWord({ state, absentSince }, past) {
  if (absentSince) return past ? 'was deleted' : 'deleted';
  return STATE_WORDS[state]?.[Number(past)] ?? plain(clip(state, 60));
}
