// Light or dark: the user's choice, else the system's. It runs before the first paint to avoid a flash, so it is no module.
'use strict';

(() => {
  const KEY = 'theme';
  const root = document.documentElement;

  // If storage is forbidden, the choice is kept until the page is reloaded.
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

  // next cycles from the system's choice to its opposite, the other one, and back.
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
