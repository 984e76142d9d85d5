// What a cluster says, made fit to be shown. Names and messages may hold anything: what cannot be seen, or turns the
// direction of the text around, is shown by its code point instead.

import { h } from './dom.js';

// Characters of control, of format (zero width, direction, tags), for private use, unassigned, and fillers; a joiner is
// let through where it joins emoji.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\u2028\u2029\u115f\u1160\u3164\uffa0]/u;
const PIECES = new RegExp(`(?<=\\p{Extended_Pictographic}\\ufe0f?)\\u200d(?=\\p{Extended_Pictographic})|${HIDDEN.source}`, 'gu');

const JOINER = '\u200d';

/** code names a character that cannot be seen. */
function code(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** plain is a text as an attribute may hold it. */
export function plain(text) {
  const all = String(text ?? '');
  if (!HIDDEN.test(all)) return all;
  return all.replace(PIECES, (c, at) => {
    if (c === '\n' || c === '\t') return ' ';
    return joins(all, c, at) ? c : `[${code(c)}]`;
  });
}

// A joiner that stands alone matches as a hidden character too: it joins if emoji are on both sides.
function joins(all, c, at) {
  return c === JOINER && /\p{Extended_Pictographic}\ufe0f?$/u.test(all.slice(Math.max(0, at - 4), at)) &&
    /^\p{Extended_Pictographic}/u.test(all.slice(at + 1, at + 3));
}

/** pieces are the nodes of a text; `lines` keeps its line breaks. */
export function pieces(text, { lines = false } = {}) {
  const all = String(text ?? '');
  if (!HIDDEN.test(all)) return [all];
  const out = [];
  let from = 0;
  for (const match of all.matchAll(PIECES)) {
    const c = match[0];
    if (joins(all, c, match.index) || (lines && (c === '\n' || c === '\t'))) continue;
    out.push(all.slice(from, match.index));
    if (c === '\n' || c === '\t') out.push(' ');
    else out.push(h('span', { class: 'hidden-character', title: 'A character that cannot be seen' }, code(c)));
    from = match.index + c.length;
  }
  out.push(all.slice(from));
  return out;
}

/** said is a text by itself: whatever its direction, it leaves its surroundings alone. */
export function said(text, options) {
  return h('bdi', {}, pieces(text, options));
}

/** setSaid puts a text into an element that is used again; a very long one is cut there, and is in full elsewhere. */
export function setSaid(element, text, most = 300) {
  const short = clip(text, most);
  if (HIDDEN.test(short)) element.replaceChildren(...pieces(short));
  else if (element.textContent !== short) element.textContent = short;
}

/** sentence is a text that begins as a sentence does. */
export function sentence(text) {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

/** clip cuts a text, between characters. */
export function clip(text, most) {
  const all = String(text ?? '');
  if (all.length <= most) return all;
  const end = /[\ud800-\udbff]/.test(all[most - 1]) ? most - 1 : most;
  return `${all.slice(0, end)}…`;
}

const TAIL = 6; // letters that stay at the end of a name: those of a pod differ only there

/** middle is a name that is cut in its middle where there is no room for it. */
export function middle(name) {
  const all = clip(name, 200);
  const letters = [...all];
  if (letters.length < 2 * TAIL || HIDDEN.test(all)) return h('span', { class: 'middle' }, h('bdi', { class: 'head' }, pieces(all)));
  return h('bdi', { class: 'middle' }, h('span', { class: 'head' }, letters.slice(0, -TAIL).join('')), h('span', {}, letters.slice(-TAIL).join('')));
}

/** long is a text of which the beginning is shown, and the rest at the press of a button. */
export function long(text, most = 600) {
  const all = String(text ?? '');
  if (all.length <= most) return h('span', { class: 'long' }, said(all, { lines: true }));
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

/** count writes a number with its thousands apart. */
export function count(n) {
  return NUMBER.format(n);
}

/** many writes a number with its noun. */
export function many(n, one, more = `${one}s`) {
  return `${count(n)} ${Number(n) === 1 ? one : more}`;
}
