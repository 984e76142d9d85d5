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

function build(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name.startsWith('--')) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  append(element, children);
  return element;
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
