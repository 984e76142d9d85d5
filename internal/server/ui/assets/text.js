// Untrusted text from a cluster, made safe to show. Invisible characters and those that change the direction of text are
// replaced by their code points.

import { h } from './dom.js';

// Control and format characters (zero width, direction, tags), private use, unassigned, and fillers. A joiner between emoji
// stays.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\u2028\u2029\u115f\u1160\u3164\uffa0]/u;
const PIECES = new RegExp(`(?<=\\p{Extended_Pictographic}\\ufe0f?)\\u200d(?=\\p{Extended_Pictographic})|${HIDDEN.source}`, 'gu');

const JOINER = '\u200d';

/** code is the code point of an invisible character. */
function code(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** plain makes a text safe for an attribute. */
export function plain(text) {
  const all = String(text ?? '');
  if (!HIDDEN.test(all)) return all;
  return all.replace(PIECES, (c, at) => {
    if (c === '\n' || c === '\t') return ' ';
    return isJoiner(all, c, at) ? c : `[${code(c)}]`;
  });
}

// HIDDEN also matches joiners. A joiner between two emoji stays.
function isJoiner(all, c, at) {
  return c === JOINER && /\p{Extended_Pictographic}\ufe0f?$/u.test(all.slice(Math.max(0, at - 4), at)) &&
    /^\p{Extended_Pictographic}/u.test(all.slice(at + 1, at + 3));
}

/** pieces makes nodes of a text. `lines` keeps its line breaks. */
export function pieces(text, { lines = false } = {}) {
  const all = String(text ?? '');
  if (!HIDDEN.test(all)) return [all];
  const out = [];
  let from = 0;
  for (const match of all.matchAll(PIECES)) {
    const c = match[0];
    if (isJoiner(all, c, match.index) || (lines && (c === '\n' || c === '\t'))) continue;
    out.push(all.slice(from, match.index));
    if (c === '\n' || c === '\t') out.push(' ');
    else out.push(h('span', { class: 'hidden-character', title: 'Invisible character' }, code(c)));
    from = match.index + c.length;
  }
  out.push(all.slice(from));
  return out;
}

/** isolated makes an element of a text, whose direction does not affect its surroundings. */
export function isolated(text, options) {
  return h('bdi', {}, pieces(text, options));
}

/** setIsolated sets the text of an element that is reused. It cuts a very long text. */
export function setIsolated(element, text, most = 300) {
  const short = clip(text, most);
  if (HIDDEN.test(short)) element.replaceChildren(...pieces(short));
  else if (element.textContent !== short) element.textContent = short;
}

/** sentence is a text with a capital first letter. */
export function sentence(text) {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

/** clip cuts a text between characters. */
export function clip(text, most) {
  const all = String(text ?? '');
  if (all.length <= most) return all;
  const end = /[\ud800-\udbff]/.test(all[most - 1]) ? most - 1 : most;
  return `${all.slice(0, end)}…`;
}

const TAIL = 6; // characters that stay at the end of a name, where those of pods differ

/** middle is a name that is cut in its middle if it is too long for its element. */
export function middle(name) {
  const all = clip(name, 200);
  const letters = [...all];
  if (letters.length < 2 * TAIL || HIDDEN.test(all)) return h('span', { class: 'middle' }, h('bdi', { class: 'head' }, pieces(all)));
  return h('bdi', { class: 'middle' }, h('span', { class: 'head' }, letters.slice(0, -TAIL).join('')), h('span', {}, letters.slice(-TAIL).join('')));
}

/** long is a text that is cut, with a button to show the rest. */
export function long(text, most = 600) {
  const all = String(text ?? '');
  if (all.length <= most) return h('span', { class: 'long' }, isolated(all, { lines: true }));
  const head = clip(all, most).slice(0, -1);
  return h('span', { class: 'long' },
    h('bdi', {}, pieces(head, { lines: true }), h('span', { class: 'turn' }, '…'), h('span', { class: 'turn', hidden: true }, pieces(all.slice(head.length), { lines: true }))), ' ',
    h('button', { type: 'button', class: 'link', 'aria-expanded': 'false', onclick: turn },
      h('span', { class: 'turn' }, `Show all ${count(all.length)} characters`), h('span', { class: 'turn', hidden: true }, 'Show less')));
}

function turn({ currentTarget: button }) {
  button.setAttribute('aria-expanded', String(button.getAttribute('aria-expanded') === 'false'));
  for (const part of button.parentNode.querySelectorAll('.turn')) part.hidden = !part.hidden;
}

const NUMBER = new Intl.NumberFormat('en');

/** count writes a number with thousands separators. */
export function count(n) {
  return NUMBER.format(n);
}

/** many writes a number with its noun in the singular or plural. */
export function many(n, one, more = `${one}s`) {
  return `${count(n)} ${Number(n) === 1 ? one : more}`;
}
