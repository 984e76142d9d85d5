// Where the page begins: what is live, the two views, and what is around them.

import { watchConnection } from './banner.js';
import { Board } from './board.js';
import { fill } from './dom.js';
import { boardAddress, boardIsAt } from './home.js';
import { listenForKeys } from './keys.js';
import { Live } from './live.js';
import { askAgain } from './retry.js';
import { go, route } from './router.js';
import { boardLink, state } from './states.js';
import { showTips } from './tip.js';
import { WorkloadPage } from './workload.js';
import { Workloads } from './workloads.js';

const live = new Live();
const workloads = new Workloads(live);
const board = new Board(workloads, live);
const workload = new WorkloadPage(live, workloads.rows);
let view = null;

const nowhere = {
  show(main) {
    document.title = 'Nothing here';
    fill(main, state('missing', 'There is nothing here', ['The link is wrong, or what it led to is gone.'], boardLink()));
  },
};

// seen notes which view is shown, and empties what the one before it left in the bar.
function seen(of) {
  return {
    show(...args) {
      view = of;
      fill(document.getElementById('crumbs'));
      of.show(...args);
    },
    leave: () => of.leave?.(),
    update: of.update && ((params) => of.update(params)),
  };
}

function sayTheme() {
  const label = `Colours: ${{ system: 'as the system has them', light: 'light', dark: 'dark' }[globalThis.theme.now]}`;
  const button = document.getElementById('theme');
  button.setAttribute('aria-label', label);
  button.title = label;
}

function nextTheme() {
  globalThis.theme.next();
  sayTheme();
}

function showBoard() {
  if (view === board) board.focus();
  else go(boardAddress());
}

function showKeys() {
  const dialog = document.getElementById('keys');
  if (!dialog.open) dialog.showModal();
}

// Where there is TLS there may be a session; its cookie is not for scripts to see. The form is sent by fetch, since a page
// without referrer would send it without its origin too, which the server asks for.
const leave = document.getElementById('leave');
live.addEventListener('state', () => { leave.hidden = location.protocol !== 'https:' || live.signedOut; });
leave.addEventListener('submit', async (event) => {
  event.preventDefault();
  await fetch('/logout', { method: 'POST' }).catch(() => {}); // if it failed, the log-in page shows that one is still in
  location.assign('/login');
});

document.getElementById('theme').addEventListener('click', nextTheme);
document.getElementById('help').addEventListener('click', showKeys);
addEventListener('online', askAgain);
listenForKeys({ '/': () => view?.search?.(), '?': showKeys, t: nextTheme, b: showBoard });
sayTheme();
boardIsAt(boardAddress());
watchConnection(live);
showTips();
route([
  [/^\/$/, seen(board)],
  [/^\/workloads\/(WorkloadInstance|HelmWorkloadInstance)\/(\d+)$/, seen(workload)],
  [null, seen(nowhere)],
]);
