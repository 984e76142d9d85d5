// The state of the connection to the control plane: a word in the bar, and a banner while the data is old.

import { announce, fill, h } from './dom.js';
import { loginLink } from './states.js';
import { clock, durationText, zoneSwitch } from './time.js';

const GRACE = 1500; // a shorter interruption shows no banner, in milliseconds

// The word for each state, and its meaning.
const WORDS = {
  connecting: ['Connecting', 'This page is connecting to the control plane'],
  live: ['Connected', 'This page is connected to the control plane'],
  lost: ['Not connected', 'This page is not connected to the control plane'],
  paused: ['Paused', 'This page is not connected to the control plane while it is hidden'],
  refused: ['No access', 'The control plane refuses this page'],
};
const SIGNED_OUT = ['Signed out', WORDS.refused[1]];

/** watchConnection shows the state of a Live for as long as the page is open. */
export function watchConnection(live) {
  const banner = document.getElementById('banner');
  const pill = document.getElementById('live');
  let timer = 0;
  let lostAt = 0;

  const draw = () => {
    const age = live.receivedAt ? `Showing data from ${clock(live.receivedAt, { seconds: true })} (${durationText((Date.now() - live.receivedAt) / 1000)} old).` : 'No data has been received yet.';
    if (live.state === 'refused') {
      fill(banner, h('span', {}, h('b', {}, live.signedOut ? 'You are signed out. ' : 'You do not have access. '), age), loginLink());
    } else {
      const wait = live.retryAt ? Math.ceil((live.retryAt - Date.now()) / 1000) : 0;
      const next = wait > 0 ? ` Retrying in ${wait} s.` : ' Retrying now.';
      // Screen readers get the first sentence only, because the rest changes every second.
      fill(banner, h('span', {}, h('b', {}, 'Connection lost. '), h('span', { 'aria-hidden': 'true' }, age, next)),
        h('button', { type: 'button', onclick: () => live.retry() }, 'Try now'));
    }
    banner.hidden = false;
    document.body.classList.add('stale');
  };

  zoneSwitch.addEventListener('change', () => { if (!banner.hidden) draw(); });
  live.addEventListener('state', () => {
    pill.dataset.state = live.state;
    const [word, meaning] = live.signedOut ? SIGNED_OUT : WORDS[live.state];
    pill.querySelector('.word').textContent = word;
    pill.title = meaning;
    pill.ariaLabel = `${word}. ${meaning}`;
    if (live.state === 'live' || live.state === 'paused') {
      if (!banner.hidden) announce('Connected again');
      clearInterval(timer);
      timer = lostAt = 0;
      banner.hidden = true;
      document.body.classList.remove('stale');
      return;
    }
    if (live.state === 'refused') draw();
    if (live.state !== 'lost' || timer) return;
    lostAt = Date.now();
    timer = setInterval(() => { if (live.state !== 'paused' && Date.now() - lostAt >= GRACE) draw(); }, 500);
  });
}
