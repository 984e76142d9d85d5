// The difference between two versions of an object, also for screen readers.

import { h } from './dom.js';
import { diff, hunks } from './diff.js';
import { clip, many, pieces } from './text.js';
import { lineText, yamlLines } from './yaml.js';

const MAX_LINES = 3000; // to draw

// Fields that change with every change.
const VOLATILE_FIELDS = [['metadata', 'resourceVersion'], ['metadata', 'generation'], ['status', 'observedGeneration']];

/** diffList shows the difference of two versions. */
export function diffList(previous, current) {
  const left = VOLATILE_FIELDS.filter((path) => JSON.stringify(at(previous, path)) !== JSON.stringify(at(current, path))).map((path) => path.join('.'));
  const [before, after] = [previous, current].map((version) => yamlLines(VOLATILE_FIELDS.reduce(without, version)).map(lineText));
  const changes = diff(before, after);
  const [added, removed] = ['+', '-'].map((sign) => changes.filter((change) => change.sign === sign).length);
  if (added + removed === 0) return h('p', { class: 'code-note' }, left.length ? `The versions differ in ${left.join(', ')} only.` : 'The versions are equal.');
  const parts = hunks(changes);
  return h('div', { class: 'diff' },
    h('p', { class: 'code-note' }, h('span', { class: 'plus' }, `+ ${many(added, 'line')} added`), ' ', h('span', { class: 'minus' }, `− ${many(removed, 'line')} removed`), ' ',
      left.length > 0 && h('span', { class: 'left-out' }, `Not shown: ${left.join(', ')}`)),
    h('div', { class: 'code', tabindex: '0', role: 'region', 'aria-label': 'Changes' },
      h('div', { class: 'diff-lines' }, parts.slice(0, MAX_LINES).map(line), parts.length > MAX_LINES && h('p', { class: 'skipped' }, `… and ${many(parts.length - MAX_LINES, 'line')} more`))));
}

function at(value, path) {
  return path.reduce((inner, key) => inner?.[key], value);
}

// without is a value without the field at a path, and without parents that become empty.
function without(value, [key, ...rest]) {
  if (value?.[key] === undefined) return value;
  const { [key]: inner, ...others } = value;
  const less = rest.length ? without(inner, rest) : undefined;
  return less === undefined || (less !== inner && Object.keys(less).length === 0) ? others : { ...others, [key]: less };
}

function line({ sign, line: text, skipped }) {
  if (skipped) return h('div', { class: 'skipped' }, `⋯ ${many(skipped, 'unchanged line')}`);
  const tag = { '+': 'ins', '-': 'del' }[sign] ?? 'div';
  return h(tag, { class: 'diff-line' }, h('span', { class: 'sign' }, sign === '-' ? '−' : sign), h('bdi', { dir: 'ltr' }, pieces(clip(text, 4000))));
}
