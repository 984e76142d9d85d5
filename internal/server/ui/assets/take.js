// A text that the reader takes along: into the clipboard, or as a file.

import { h } from './dom.js';

/** copyText puts a text into the clipboard; it says whether it could. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text); // there is no such thing where there is no TLS
    return true;
  } catch {
    return copySelected(text);
  }
}

function copySelected(text) {
  const focused = document.activeElement;
  const area = h('textarea', { class: 'unseen', 'aria-hidden': 'true', readonly: true });
  area.value = text;
  document.body.append(area);
  area.focus({ preventScroll: true });
  area.select();
  try {
    return document.execCommand('copy');
  } finally {
    area.remove();
    focused?.focus({ preventScroll: true });
  }
}

/** saveText offers a text as a file. Its name is made of what any system allows. */
export function saveText(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/yaml' }));
  h('a', { href: url, download: name.replace(/[^\w.-]+/g, '-').slice(-200) }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser may ask the reader where to
}
