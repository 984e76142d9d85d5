// JSON as lines of YAML, as kubectl shows it. Pure: no document.

import { RawNumber } from './api.js';

const TOP = ['apiVersion', 'kind', 'metadata', 'spec', 'data', 'status'];
const FIRST = ['name', 'namespace'];
const MAX_INDENT = 200; // objects and lists that are deeper are left out; the functions call themselves

// Texts that YAML 1.1 or 1.2 would not parse as a string.
const AMBIGUOUS = /^(?:true|false|null|yes|no|on|off|y|n|~|-?\.(?:inf|nan)|[-+]?[\d._]+(?:e[-+]?\d+)?|0[xob][\da-f_]+|\d[\d:_-]*(?:[t ].*)?)$/i;
const PLAIN = /^[A-Za-z0-9_/.$(][A-Za-z0-9_/.$()@%+=, ;:*<>~-]*$/;

// Characters that YAML does not allow in a block: such a text needs quotes although it has several lines.
const NOT_IN_BLOCK = /[^\P{Cc}\t\n]|[\u2028\u2029\ufeff]/u;

/**
 * yamlLines writes a value as lines: {indent, marker, key, text, kind, end}. `marker` is "- " at the start of a list item.
 * `kind` is string, number, boolean, null, block (a line of a text block) or open; an open line contains the lines up to `end`.
 */
export function yamlLines(value) {
  const lines = [];
  if (isObject(value)) object(lines, 0, '', value, TOP);
  else if (Array.isArray(value)) value.forEach((item) => listItem(lines, 0, item));
  else lines.push({ indent: 0, marker: '', key: '', ...scalar(value) });
  return lines;
}

/** lineText is a line as text. */
export function lineText({ indent, marker, key, text }) {
  return ' '.repeat(indent) + marker + (key ? `${key}:${text ? ' ' : ''}` : '') + text;
}

/**
 * linePaths identifies each line by its keys and items, to find it in another version. An item is identified by its name, or by
 * its index; a line of a text block by its index.
 */
export function linePaths(lines) {
  const above = [{ level: -1, path: '', items: 0, names: new Set() }]; // a list item is deeper than a key of the same indent
  const down = (level, name) => {
    while (above.at(-1).level >= level) above.pop();
    const { path } = above.at(-1);
    above.push({ level, path: `${path}\n${name(above.at(-1))}`, items: 0, names: new Set() });
  };
  const item = (list, key, text) => {
    list.items++;
    if (key !== 'name' || list.names.has(text)) return list.items;
    list.names.add(text);
    return `- ${text}`;
  };
  return lines.map(({ indent, marker, key, text, kind }) => {
    if (kind === 'block') return `${above.at(-1).path}\n${above.at(-1).items++}`;
    if (marker) down(2 * indent + 1, (list) => item(list, key, text));
    if (key) down(2 * (indent + marker.length), () => `.${key}`);
    return above.at(-1).path;
  });
}

function isObject(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value) && !(value instanceof RawNumber);
}

function object(lines, indent, marker, value, first = FIRST) {
  const place = (key) => { const at = first.indexOf(key); return at < 0 ? first.length : at; };
  const keys = Object.keys(value).sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));
  keys.forEach((key, i) => entry(lines, i || !marker ? indent + marker.length : indent, i ? '' : marker, key, value[key]));
}

function entry(lines, indent, marker, key, value) {
  const name = word(key);
  const inner = indent + marker.length;
  if (isObject(value) && Object.keys(value).length) {
    nested(lines, { indent, marker, key: name }, () => object(lines, inner + 2, '', value));
  } else if (Array.isArray(value) && value.length) {
    nested(lines, { indent, marker, key: name }, () => value.forEach((item) => listItem(lines, inner, item)));
  } else if (isBlock(value)) {
    block(lines, { indent, marker, key: name }, inner + 2, value);
  } else lines.push({ indent, marker, key: name, ...scalar(value) });
}

function listItem(lines, indent, value) {
  if (isObject(value) && Object.keys(value).length) object(lines, indent, '- ', value);
  else if (Array.isArray(value) && value.length) {
    nested(lines, { indent, marker: '- ', key: '' }, () => value.forEach((item) => listItem(lines, indent + 2, item)));
  } else if (isBlock(value)) block(lines, { indent, marker: '- ', key: '' }, indent + 2, value);
  else lines.push({ indent, marker: '- ', key: '', ...scalar(value) });
}

function nested(lines, line, children) {
  if (line.indent < MAX_INDENT) open(lines, { ...line, text: '' }, children);
  else lines.push({ ...line, text: `null # not shown: deeper than ${MAX_INDENT / 2} levels`, kind: 'null' });
}

function open(lines, line, children) {
  const opened = { ...line, kind: 'open', end: 0 };
  lines.push(opened);
  children();
  opened.end = lines.length;
}

function isBlock(value) {
  return typeof value === 'string' && value.includes('\n') && !NOT_IN_BLOCK.test(value) && /[^\n]/.test(value);
}

function block(lines, line, indent, value) {
  const end = /\n*$/.exec(value)[0].length;
  const all = (end ? value.slice(0, -1) : value).split('\n');
  const indented = /^\n*[ \t]/.test(value) ? '2' : ''; // else YAML would take its indent as the block's
  open(lines, { ...line, text: `|${indented}${['-', ''][end] ?? '+'}` }, () => {
    for (const text of all) lines.push({ indent: text ? indent : 0, marker: '', key: '', text, kind: 'block' });
  });
}

function scalar(value) {
  if (value === null || value === undefined) return { text: 'null', kind: 'null' };
  if (typeof value === 'number' || value instanceof RawNumber) return { text: String(value), kind: 'number' };
  if (typeof value === 'boolean') return { text: String(value), kind: 'boolean' };
  if (typeof value === 'object') return { text: Array.isArray(value) ? '[]' : '{}', kind: 'null' };
  return { text: word(value), kind: 'string' };
}

// word writes a text without quotes if YAML parses it as the same string.
function word(text) {
  if (PLAIN.test(text) && !AMBIGUOUS.test(text) && !/: |:$| $/.test(text)) return text;
  return JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029\ufeff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
