// The difference between two versions of an object's spec, also for screen readers.

import { h } from './dom.js';
import { diff, hunks } from './diff.js';
import { clip, many, pieces } from './text.js';
import { lineText, yamlLines } from './yaml.js';

const MAX_LINES = 3000; // to draw

// Prefixes of annotations that controllers write. spec_digest.go of package store has the same list.
const CONTROLLER_ANNOTATIONS = [
  'autoscaling.alpha.kubernetes.io/', 'control-plane.alpha.kubernetes.io/', 'deployment.kubernetes.io/',
  'deprecated.daemonset.template.generation', 'endpoints.kubernetes.io/', 'pv.kubernetes.io/', 'volume.kubernetes.io/',
];

/** diffList shows the difference of the specs of two versions, which the control plane found to be different. */
export function diffList(previous, current) {
  const [before, after] = [previous, current].map((version) => yamlLines(specOf(version)).map(lineText));
  const changes = diff(before, after);
  const [added, removed] = ['+', '-'].map((sign) => changes.filter((change) => change.sign === sign).length);
  if (added + removed === 0) return h('p', { class: 'code-note' }, 'The versions differ in redacted values only, or in more than 100 levels of nesting.');
  const parts = hunks(changes);
  return h('div', { class: 'diff' },
    h('p', { class: 'code-note' }, h('span', { class: 'plus' }, `+ ${many(added, 'line')} added`), ' ', h('span', { class: 'minus' }, `− ${many(removed, 'line')} removed`), ' ',
      h('span', { class: 'left-out' }, 'Not shown: the status, and metadata of controllers')),
    h('div', { class: 'code', tabindex: '0', role: 'region', 'aria-label': 'Changes' },
      h('div', { class: 'diff-lines' }, parts.slice(0, MAX_LINES).map(line), parts.length > MAX_LINES && h('p', { class: 'skipped' }, `… and ${many(parts.length - MAX_LINES, 'line')} more`))));
}

// specOf is a version without its status, and without the metadata that controllers write.
function specOf(version) {
  const { status, metadata, ...spec } = version;
  const { labels, annotations } = metadata ?? {};
  const kept = Object.entries(annotations ?? {}).filter(([name]) => !CONTROLLER_ANNOTATIONS.some((prefix) => name.startsWith(prefix)));
  const written = { ...(labels && { labels }), ...(kept.length > 0 && { annotations: Object.fromEntries(kept) }) };
  return Object.keys(written).length > 0 ? { ...spec, metadata: written } : spec;
}

function line({ sign, line: text, skipped }) {
  if (skipped) return h('div', { class: 'skipped' }, `⋯ ${many(skipped, 'unchanged line')}`);
  const tag = { '+': 'ins', '-': 'del' }[sign] ?? 'div';
  return h(tag, { class: 'diff-line' }, h('span', { class: 'sign' }, sign === '-' ? '−' : sign), h('bdi', { dir: 'ltr' }, pieces(clip(text, 4000))));
}
