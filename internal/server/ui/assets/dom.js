// Elements are made here, of text and attributes only: nothing that a cluster says is ever read as HTML.

const SVG = 'http://www.w3.org/2000/svg';

/**
 * h makes an element. Of props, `class` and the like are attributes, `onclick` and the like are listeners, `--name` is a
 * variable of its style, and what is null, undefined or false is left out. Children are nodes, texts, or lists of them.
 */
export function h(tag, props, ...children) {
  return build(document.createElement(tag), props, children);
}

/** s makes an element of a picture. */
export function s(tag, props, ...children) {
  return build(document.createElementNS(SVG, tag), props, children);
}

const made = new WeakMap(); // the props that an element was given last

function build(element, props, children) {
  dress(element, props ?? {});
  append(element, children);
  return element;
}

// dress gives an element other props. What else was done to it, such as opened by the reader, stays.
function dress(element, props) {
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

/** fill replaces what is in an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/**
 * patch replaces what is in an element as fill does, but what was there and is there again stays: an element of the same
 * tag and name (its id, data-key or first class) is given the props and children of the new one. With it stay the focus, a
 * selection, and what the reader has scrolled or opened. A listener goes over with the props: it must find its elements by
 * its event. The children are made for this call, by h and s.
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
    if (kept.nodeType === Node.TEXT_NODE) retell(kept, node.data);
    else {
      dress(kept, made.get(node) ?? {});
      adopt(kept, node);
    }
    return kept;
  });
  for (const rest of spare.values()) for (const node of rest) node.remove();
  place(element, nodes);
}

// place brings the nodes into their order. What has the focus is not moved, since it would lose it: the others are.
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

// Of a text only what differs is replaced: what is selected before and after it stays selected.
function retell(node, text) {
  const old = node.data;
  if (old === text) return;
  const most = Math.min(old.length, text.length);
  let start = 0;
  while (start < most && old[start] === text[start]) start++;
  let end = 0;
  while (end < most - start && old.at(-1 - end) === text.at(-1 - end)) end++;
  node.replaceData(start, old.length - start - end, text.slice(start, text.length - end));
}

/** icon is a symbol of the document; what it means is always also said in words beside it. */
export function icon(name, className = '') {
  return s('svg', { class: `icon ${className}`.trim(), 'aria-hidden': 'true' }, s('use', { href: `#i-${name}` }));
}

/** unseen is for those who hear the page. */
export function unseen(...children) {
  return h('span', { class: 'unseen' }, ...children);
}

/** announce says something to those who hear the page. What is said at once replaces what was. */
export function announce(text) {
  document.getElementById('announce').textContent = text;
}

/** later calls back once it has not been called for a while. */
export function later(milliseconds, callback) {
  let timer;
  const call = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => callback(...args), milliseconds);
  };
  call.cancel = () => clearTimeout(timer);
  return call;
}
