// Copying a text to the clipboard, and saving it as a file.

import { h } from './dom.js';

/** copyText copies a text to the clipboard, and returns whether it succeeded. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text); // undefined without TLS
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

/** saveText saves a text as a file, under a name that every system allows. */
export function saveText(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/yaml' }));
  h('a', { href: url, download: name.replace(/[^\w.-]+/g, '-').slice(-200) }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser may ask the user for a folder
}
