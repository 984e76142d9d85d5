// Elements are made of text and attributes only: text from a cluster is never parsed as HTML.

const SVG = 'http://www.w3.org/2000/svg';

/**
 * h makes an element. Props are attributes such as `class`, listeners such as `onclick`, or CSS variables such as `--name`;
 * null, undefined and false are skipped. Children are nodes, texts, or lists of them.
 */
export function h(tag, props, ...children) {
  return build(document.createElement(tag), props, children);
}

/** s makes an SVG element. */
export function s(tag, props, ...children) {
  return build(document.createElementNS(SVG, tag), props, children);
}

const made = new WeakMap(); // the last props of each element

function build(element, props, children) {
  setProps(element, props ?? {});
  append(element, children);
  return element;
}

// setProps replaces the props of an element. Other state, such as an opened detail, stays.
function setProps(element, props) {
  const before = made.get(element) ?? {};
  made.set(element, props);
  for (const name of new Set([...Object.keys(before), ...Object.keys(props)])) {
    const [old, value] = [before[name] ?? false, props[name] ?? false];
    if (old === value) continue;
    if (name.startsWith('on')) {
      if (old) element.removeEventListener(name.slice(2), old);
      if (value) element.addEventListener(name.slice(2), value);
    } else if (name.startsWith('--')) element.style.setProperty(name, value || '');
    else if (value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? '' : value);
  }
}

function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** fill replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/**
 * patch replaces the children of an element like fill, but reuses elements. An element with the same tag and name (its id,
 * data-key or first class) gets the props and children of the new one. So the focus, selections, scroll positions and opened details stay.
 * Listeners move with the props, so they must find elements by their event. The children must be new, made by h and s.
 */
export function patch(element, ...children) {
  const wanted = document.createDocumentFragment();
  append(wanted, children);
  adopt(element, wanted);
}

function adopt(element, wanted) {
  const spare = new Map();
  for (const node of element.childNodes) {
    const name = nameOf(node);
    if (spare.has(name)) spare.get(name).push(node); else spare.set(name, [node]);
  }
  const nodes = Array.from(wanted.childNodes, (node) => {
    const kept = spare.get(nameOf(node))?.shift();
    if (!kept) return node;
    if (kept.nodeType === Node.TEXT_NODE) updateText(kept, node.data);
    else {
      setProps(kept, made.get(node) ?? {});
      adopt(kept, node);
    }
    return kept;
  });
  for (const rest of spare.values()) for (const node of rest) node.remove();
  place(element, nodes);
}

// place reorders nodes. It moves the others around the focused element, which would lose the focus.
function place(element, nodes) {
  let still = nodes.findIndex((node) => node.contains(document.activeElement));
  if (still < 0 && nodes.length) {
    still = 0;
    if (nodes[0] !== element.firstChild) element.prepend(nodes[0]);
  }
  for (let i = still - 1; i >= 0; i--) if (nodes[i + 1].previousSibling !== nodes[i]) nodes[i + 1].before(nodes[i]);
  for (let i = still + 1; i < nodes.length; i++) if (nodes[i - 1].nextSibling !== nodes[i]) nodes[i - 1].after(nodes[i]);
}

function nameOf(node) {
  return node.nodeType === Node.TEXT_NODE ? '' : `${node.nodeName} ${node.id || node.dataset.key || node.classList[0]}`;
}

// Replaces only the part of a text that differs, so a selection around it stays.
function updateText(node, text) {
  const old = node.data;
  if (old === text) return;
  const most = Math.min(old.length, text.length);
  let start = 0;
  while (start < most && old[start] === text[start]) start++;
  let end = 0;
  while (end < most - start && old.at(-1 - end) === text.at(-1 - end)) end++;
  node.replaceData(start, old.length - start - end, text.slice(start, text.length - end));
}

/** icon is a symbol of the document. Its meaning is always in the text beside it. */
export function icon(name, className = '') {
  return s('svg', { class: `icon ${className}`.trim(), 'aria-hidden': 'true' }, s('use', { href: `#i-${name}` }));
}

/** unseen is text for screen readers only. */
export function unseen(...children) {
  return h('span', { class: 'unseen' }, ...children);
}

/** announce makes screen readers speak a text. */
export function announce(text) {
  document.getElementById('announce').textContent = text;
}

/** later debounces a function. */
export function later(milliseconds, callback) {
  let timer;
  const call = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => callback(...args), milliseconds);
  };
  call.cancel = () => clearTimeout(timer);
  return call;
}
