// Light or dark: what the user chose here, else what the system has. This runs before anything is drawn, so that
// nothing flashes; hence it is no module.
'use strict';

(() => {
  const KEY = 'theme';
  const root = document.documentElement;

  // Storage may be forbidden, and then the choice holds for this page only.
  const stored = () => {
    try { return localStorage.getItem(KEY); } catch { return null; }
  };
  const store = (theme) => {
    try {
      if (theme) localStorage.setItem(KEY, theme); else localStorage.removeItem(KEY);
    } catch { /* see above */ }
  };

  const apply = (theme) => {
    if (theme === 'light' || theme === 'dark') root.dataset.theme = theme; else delete root.dataset.theme;
  };

  apply(stored());

  // next goes from the system's choice to its opposite, to the other one, and back to the system's.
  globalThis.theme = {
    get now() { return root.dataset.theme ?? 'system'; },
    next() {
      const dark = matchMedia('(prefers-color-scheme: dark)').matches;
      const order = ['system', dark ? 'light' : 'dark', dark ? 'dark' : 'light'];
      const theme = order[(order.indexOf(this.now) + 1) % order.length];
      apply(theme);
      store(theme === 'system' ? null : theme);
    },
  };
})();
