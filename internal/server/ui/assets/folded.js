// A definition as YAML that can be folded, searched, copied and saved.

import { h, icon, later, patch } from './dom.js';
import { copyText, saveText } from './export.js';
import { clip, count, many, pieces } from './text.js';
import { Windowed } from './windowed.js';
import { lineText, linePaths } from './yaml.js';

const LINE = 20; // height of .line in definition.css, in pixels
const LONG = 2000; // a longer line is cut until the user expands it, in characters
const MANY = 400; // a definition with more lines starts folded from FOLD_DEPTH on
const FOLD_DEPTH = 6;
const MAX_MATCHES = 9999;
const MESSAGE_TIME = 4000; // a message about copying stays that long, in milliseconds

/** Folded shows lines of YAML. With a new version it keeps the search, the folds and the scroll position. */
export class Folded {
  #name;
  #lines = [];
  #texts = [];
  #paths = []; // identify lines across versions
  #folded = new Set(); // paths
  #expanded = new Set(); // paths of long lines that are shown in full
  #matches = []; // {line, from, to}
  #current = -1;
  #windowed;
  #visible = [];
  #list = h('div', { class: 'lines' });
  #scroller = h('div', { class: 'code', tabindex: '0', role: 'region', 'aria-label': 'Definition' }, this.#list);
  #matchCount = h('span', { class: 'found', role: 'status' });
  #message = h('span', { class: 'taken', role: 'status' });
  #input = h('input', { type: 'search', id: 'find', placeholder: 'Search', autocomplete: 'off', spellcheck: 'false', 'aria-label': 'Search in the definition' });
  #clearMessage = later(MESSAGE_TIME, () => { this.#message.textContent = ''; });

  /** `name` is the name of the file to save. */
  constructor(name) {
    this.#name = name;
    this.element = h('div', { class: 'folded' }, this.#tools(), this.#scroller);
    this.#list.addEventListener('click', (event) => this.#click(event));
    this.#windowed = new Windowed({
      scroller: this.#scroller, list: this.#list, height: () => LINE, key: (i) => this.#paths[i],
      make: () => h('div', { class: 'line' }), fill: (row, i) => this.#draw(row, i),
    });
  }

  stop() {
    this.#windowed.stop();
    this.#clearMessage.cancel();
  }

  /** show draws lines. */
  show(lines) {
    const first = !this.#lines.length;
    const match = this.#matches[this.#current];
    const found = { path: this.#paths[match?.line], from: match?.from };
    const top = this.#visible[Math.floor(this.#scroller.scrollTop / LINE)];
    const seen = this.#scroller.scrollTop > 0 && { path: this.#paths[top], below: this.#scroller.scrollTop % LINE };
    this.#lines = lines;
    this.#texts = lines.map((line) => lineText(line));
    this.#paths = linePaths(lines);
    if (first && lines.length > MANY) this.#fold((line) => line.indent >= FOLD_DEPTH);
    this.#scroller.style.setProperty('--lines', String(Math.min(lines.length, 36)));
    this.#match();
    const kept = this.#matches.findIndex(({ line, from }) => this.#paths[line] === found.path && from >= found.from);
    this.#current = kept < 0 ? Math.min(Math.max(this.#current, 0), this.#matches.length - 1) : kept;
    this.#showMatchCount();
    this.#refresh(seen);
  }

  #tools() {
    const button = (text, label, onclick) => h('button', { type: 'button', class: 'quiet', 'aria-label': label, onclick }, text);
    this.#input.addEventListener('input', () => this.#search());
    this.#input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.#step(event.shiftKey ? -1 : 1);
    });
    return h('div', { class: 'code-tools', role: 'search' }, this.#input, this.#matchCount,
      button('↑', 'Previous match', () => this.#step(-1)), button('↓', 'Next match', () => this.#step(1)),
      button('Fold', null, () => { this.#fold((line) => line.indent > 0); this.#refresh(); }),
      button('Unfold', null, () => { this.#folded.clear(); this.#refresh(); }),
      h('span', { class: 'takes' },
        button('Copy', 'Copy the YAML', async () => this.#showMessage(await copyText(this.#yaml()) ? 'Copied' : 'The browser does not allow copying')),
        button('Download', 'Download the YAML', () => saveText(`${this.#name}.yaml`, this.#yaml()))), this.#message);
  }

  #yaml() { return this.#texts.map((text) => `${text}\n`).join(''); }

  #showMessage(text) {
    this.#message.textContent = text;
    this.#clearMessage();
  }

  #fold(which) {
    this.#lines.forEach((line, i) => { if (line.end && which(line)) this.#folded.add(this.#paths[i]); });
  }

  #isFolded(i) { return Boolean(this.#lines[i].end) && this.#folded.has(this.#paths[i]); }

  // `seen` is the first visible line, {path, below}, and by how much it is scrolled out.
  #refresh(seen) {
    const focused = this.#list.contains(document.activeElement);
    this.#visible = [];
    let at = -1;
    for (let i = 0; i < this.#lines.length; i++) {
      if (seen && this.#paths[i] === seen.path) at = this.#visible.length;
      this.#visible.push(i);
      if (this.#isFolded(i)) i = this.#lines[i].end - 1;
    }
    if (at >= 0) {
      this.#list.style.height = `${this.#visible.length * LINE}px`;
      this.#scroller.scrollTop = at * LINE + seen.below;
    }
    this.#windowed.set(this.#visible);
    if (focused && !this.#list.contains(document.activeElement)) this.#scroller.focus({ preventScroll: true });
  }

  #search() {
    this.#match();
    this.#current = this.#matches.length ? 0 : -1;
    this.#reveal();
  }

  #match() {
    const wanted = this.#input.value.toLowerCase();
    this.#matches = [];
    for (let i = 0; wanted && i < this.#texts.length && this.#matches.length < MAX_MATCHES; i++) {
      const text = this.#texts[i].toLowerCase();
      for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) this.#matches.push({ line: i, from: at, to: at + wanted.length });
    }
  }

  #step(by) {
    if (!this.#matches.length) return;
    this.#current = (this.#current + by + this.#matches.length) % this.#matches.length;
    this.#reveal();
  }

  #reveal() {
    const match = this.#matches[this.#current];
    if (match) for (let i = 0; i < match.line; i++) if (match.line < this.#lines[i].end) this.#folded.delete(this.#paths[i]);
    this.#showMatchCount();
    this.#refresh();
    if (match) this.#windowed.reveal(this.#visible.indexOf(match.line));
  }

  #showMatchCount() {
    const most = this.#matches.length === MAX_MATCHES ? ' or more' : '';
    const text = this.#matches.length ? `${count(this.#current + 1)} of ${count(this.#matches.length)}${most}` : 'No match';
    patch(this.#matchCount, this.#input.value && text);
  }

  #click({ target }) {
    const row = target.closest('.line');
    if (!row) return;
    const path = this.#paths[row.line];
    if (target.closest('.fold')) {
      if (!this.#folded.delete(path)) this.#folded.add(path);
      this.#refresh();
    } else if (target.closest('.rest')) {
      this.#expanded.add(path);
      this.#refresh();
    }
  }

  #draw(row, i) {
    const line = this.#lines[i];
    const folded = this.#isFolded(i);
    row.line = i;
    const match = this.#matches[this.#current];
    const drawn = [line, folded, this.#expanded.has(this.#paths[i]), this.#matches, match?.line === i && match];
    if (row.drawn?.every((part, n) => part === drawn[n])) return; // scrolling draws all visible rows again
    row.drawn = drawn;
    patch(row,
      line.end ? h('button', { type: 'button', class: 'fold', 'aria-expanded': String(!folded), 'aria-label': clip(line.key || 'item', 80) }, icon('fold')) : h('span', { class: 'gutter' }),
      this.#content(line, i),
      folded && h('span', { class: 'folded-note' }, ` … ${many(line.end - i - 1, 'line')}`));
  }

  // Cuts a line into pieces: each has one kind, and is inside a match or outside.
  #content(line, i) {
    const text = this.#texts[i];
    const shown = text.length > LONG && !this.#expanded.has(this.#paths[i]) ? LONG : text.length;
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
