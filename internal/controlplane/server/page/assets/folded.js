// A definition as text that can be folded and searched.

import { fill, h, icon } from './dom.js';
import { clip, count, many, pieces } from './text.js';
import { lineText } from './yaml.js';
import { Windowed } from './windowed.js';

const LINE = 20; // as .line in definition.css, in pixels
const LONG = 2000; // of a longer line only the beginning is drawn, until it is pressed
const MANY = 400; // a definition of more lines begins folded from FOLD_DEPTH on
const FOLD_DEPTH = 6;
const MOST_MATCHES = 9999;

/** Folded shows lines of YAML. */
export class Folded {
  #lines;
  #texts;
  #folded = new Set();
  #matches = []; // {line, from, to}
  #current = -1;
  #whole = new Set(); // long lines that are shown in full
  #windowed;
  #visible = [];
  #found = h('span', { class: 'found', role: 'status' });
  #input = h('input', { type: 'search', id: 'find', placeholder: 'Search', autocomplete: 'off', spellcheck: 'false', 'aria-label': 'Search in the definition' });

  constructor(lines) {
    this.#lines = lines;
    this.#texts = lines.map((line) => lineText(line));
    if (lines.length > MANY) lines.forEach((line, i) => { if (line.end && line.indent >= FOLD_DEPTH) this.#folded.add(i); });
    const list = h('div', { class: 'lines' });
    const scroller = h('div', { class: 'code', tabindex: '0', role: 'region', 'aria-label': 'Definition' }, list);
    scroller.style.setProperty('--lines', String(Math.min(lines.length, 36)));
    this.element = h('div', { class: 'folded' }, this.#tools(), scroller);
    list.addEventListener('click', (event) => this.#click(event));
    this.#windowed = new Windowed({
      scroller, list, height: () => LINE, key: (i) => i,
      make: () => h('div', { class: 'line' }), fill: (row, i) => this.#draw(row, i),
    });
    this.#refresh();
  }

  stop() { this.#windowed.stop(); }

  #tools() {
    const step = (text, label, by) => h('button', { type: 'button', class: 'quiet', 'aria-label': label, onclick: () => this.#step(by) }, text);
    this.#input.addEventListener('input', () => this.#search());
    this.#input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.#step(event.shiftKey ? -1 : 1);
    });
    return h('div', { class: 'code-tools', role: 'search' }, this.#input, this.#found,
      step('↑', 'Previous match', -1), step('↓', 'Next match', 1),
      h('button', { type: 'button', class: 'quiet', onclick: () => this.#foldAll() }, 'Fold'),
      h('button', { type: 'button', class: 'quiet', onclick: () => { this.#folded.clear(); this.#refresh(); } }, 'Unfold'));
  }

  #foldAll() {
    this.#lines.forEach((line, i) => { if (line.end && line.indent > 0) this.#folded.add(i); });
    this.#refresh();
  }

  #refresh() {
    this.#visible = [];
    for (let i = 0; i < this.#lines.length; i++) {
      this.#visible.push(i);
      if (this.#folded.has(i)) i = this.#lines[i].end - 1;
    }
    this.#windowed.set(this.#visible);
  }

  #search() {
    const wanted = this.#input.value.toLowerCase();
    this.#matches = [];
    for (let i = 0; wanted && i < this.#texts.length && this.#matches.length < MOST_MATCHES; i++) {
      const text = this.#texts[i].toLowerCase();
      for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) this.#matches.push({ line: i, from: at, to: at + wanted.length });
    }
    this.#current = this.#matches.length ? 0 : -1;
    this.#reveal();
  }

  #step(by) {
    if (!this.#matches.length) return;
    this.#current = (this.#current + by + this.#matches.length) % this.#matches.length;
    this.#reveal();
  }

  #reveal() {
    const match = this.#matches[this.#current];
    if (match) for (const i of [...this.#folded]) if (i < match.line && match.line < this.#lines[i].end) this.#folded.delete(i);
    const most = this.#matches.length === MOST_MATCHES ? ' or more' : '';
    this.#found.textContent = !this.#input.value ? '' : match ? `${count(this.#current + 1)} of ${count(this.#matches.length)}${most}` : 'No match';
    this.#refresh();
    if (match) this.#windowed.reveal(this.#visible.indexOf(match.line));
  }

  #click({ target }) {
    const row = target.closest('.line');
    if (!row) return;
    if (target.closest('.fold')) {
      if (!this.#folded.delete(row.line)) this.#folded.add(row.line);
      this.#refresh();
    } else if (target.closest('.rest')) {
      this.#whole.add(row.line);
      this.#refresh();
    }
  }

  #draw(row, i) {
    const line = this.#lines[i];
    const folded = this.#folded.has(i);
    row.line = i;
    const focused = row.contains(document.activeElement) && row.firstChild.classList?.contains('fold');
    fill(row,
      line.end ? h('button', { type: 'button', class: 'fold', 'aria-expanded': String(!folded), 'aria-label': clip(line.key || 'item', 80) }, icon('fold')) : h('span', { class: 'gutter' }),
      this.#content(line, i),
      folded && h('span', { class: 'folded-note' }, ` … ${many(line.end - i - 1, 'line')}`));
    if (focused) row.firstChild.focus();
  }

  // A line with its matches is cut into pieces: each is of one sort, and in a match or not.
  #content(line, i) {
    const text = this.#texts[i];
    const shown = text.length > LONG && !this.#whole.has(i) ? LONG : text.length;
    const keyFrom = line.indent + line.marker.length;
    const keyTo = keyFrom + line.key.length;
    const cuts = new Set([0, keyFrom, keyTo, line.key ? keyTo + 1 : keyTo, shown]);
    const matches = this.#matches.length ? this.#matches.filter((m) => m.line === i && m.from < shown) : [];
    for (const { from, to } of matches) cuts.add(from).add(Math.min(to, shown));
    const at = [...cuts].filter((cut) => cut <= shown).sort((a, b) => a - b);
    const out = at.slice(1).map((to, n) => {
      const from = at[n];
      const kind = from >= keyFrom && to <= keyTo && line.key ? 'key' : from > keyTo || !line.key ? line.kind : 'sign';
      const match = matches.find((m) => m.from <= from && to <= m.to);
      return h(match ? 'mark' : 'span', { class: `y-${kind}${match && match === this.#matches[this.#current] ? ' current' : ''}` }, pieces(text.slice(from, to)));
    });
    if (shown < text.length) out.push(h('button', { type: 'button', class: 'link rest' }, `… ${many(text.length - shown, 'more character')}`));
    return h('bdi', { dir: 'ltr' }, out);
  }
}
