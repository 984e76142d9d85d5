// Single-key shortcuts. Users of speech input can turn them off (WCAG 2.1.4).

const KEY = 'single-keys';

/** listenForKeys calls actions[key], unless the user is typing. */
export function listenForKeys(actions) {
  const box = document.getElementById('single-keys');
  try { box.checked = localStorage.getItem(KEY) !== 'off'; } catch { /* storage is forbidden: shortcuts are on */ }
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
