// Keys of one letter. Who speaks to the computer, or types without wanting to, can turn them off (WCAG 2.1.4).

const KEY = 'single-keys';

/** listenForKeys calls actions[key], unless something is being typed. */
export function listenForKeys(actions) {
  const box = document.getElementById('single-keys');
  try { box.checked = localStorage.getItem(KEY) !== 'off'; } catch { /* then they are on */ }
  box.addEventListener('change', () => {
    try { localStorage.setItem(KEY, box.checked ? 'on' : 'off'); } catch { /* for this page only */ }
  });
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !box.checked) return;
    if (event.target.closest?.('input, select, textarea, dialog') || !Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });
}
