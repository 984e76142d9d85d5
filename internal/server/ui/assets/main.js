// The entry point: the live updates, the two views, and the bar around them.

import { watchConnection } from './banner.js';
import { WorkloadList } from './list.js';
import { fill } from './dom.js';
import { listAddress, setListAddress } from './home.js';
import { listenForKeys } from './keys.js';
import { Live } from './live.js';
import { retryNow } from './retry.js';
import { go, route } from './router.js';
import { listLink, state } from './states.js';
import { isExact, setExact } from './time.js';
import { showTips } from './tip.js';
import { WorkloadPage } from './workload.js';
import { Workloads } from './workloads.js';

const live = new Live();
const workloads = new Workloads(live);
const list = new WorkloadList(workloads, live);
const workload = new WorkloadPage(live, workloads.rows);
let view = null;

const notFound = {
  show(main) {
    document.title = 'Page not found';
    fill(main, state('missing', 'Page not found', ['The link is wrong, or its target was deleted.'], listLink()));
  },
};

// tracked remembers which view is shown, and clears the breadcrumbs of the previous view.
function tracked(of) {
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

function showTheme() {
  const label = `Colours: ${{ system: 'as the system', light: 'light', dark: 'dark' }[globalThis.theme.now]}`;
  const button = document.getElementById('theme');
  button.setAttribute('aria-label', label);
  button.title = label;
}

function nextTheme() {
  globalThis.theme.next();
  showTheme();
}

function showZone() {
  document.getElementById('utc').setAttribute('aria-pressed', String(isExact()));
}

function switchZone() {
  setExact(!isExact());
  showZone();
}

function showList() {
  if (view === list) list.focus();
  else go(listAddress());
}

function showKeys() {
  const dialog = document.getElementById('keys');
  if (!dialog.open) dialog.showModal();
}

// With TLS there may be a session, whose cookie scripts cannot read. fetch sends the form: because of the Referrer-Policy a
// browser would send it without the origin that the server requires.
const leave = document.getElementById('leave');
live.addEventListener('state', () => { leave.hidden = location.protocol !== 'https:' || live.signedOut; });
leave.addEventListener('submit', async (event) => {
  event.preventDefault();
  await fetch('/logout', { method: 'POST' }).catch(() => {}); // after a failure the log-in page shows that the session is still open
  location.assign('/login');
});

document.getElementById('theme').addEventListener('click', nextTheme);
document.getElementById('utc').addEventListener('click', switchZone);
document.getElementById('help').addEventListener('click', showKeys);
addEventListener('online', retryNow);
listenForKeys({ '/': () => view?.search?.(), '?': showKeys, t: nextTheme, b: showList });
showTheme();
showZone();
setListAddress(listAddress());
watchConnection(live);
showTips();
route([
  [/^\/$/, tracked(list)],
  [/^\/workloads\/(WorkloadInstance|HelmWorkloadInstance)\/(\d+)$/, tracked(workload)],
  [null, tracked(notFound)],
]);
