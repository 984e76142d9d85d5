// Whether what is seen is as things are now: the word in the bar, and the banner once it is not.

import { announce, fill, h } from './dom.js';
import { loginLink } from './states.js';
import { clock, lasting } from './time.js';

const PATIENCE = 1500; // a connection that heals within it is not worth a banner, in milliseconds

const WORDS = { connecting: 'Connecting', live: 'Live', lost: 'Not live', paused: 'Paused', refused: 'No access' };

/** watchConnection shows the state of what is live, for as long as the page is open. */
export function watchConnection(live) {
  const banner = document.getElementById('banner');
  const pill = document.getElementById('live');
  let timer = 0;
  let lostAt = 0;

  const draw = () => {
    const since = live.heardAt ? `What you see is of ${clock(live.heardAt, { seconds: true })}, ${lasting((Date.now() - live.heardAt) / 1000)} ago.` : 'Nothing has been heard yet.';
    if (live.state === 'refused') {
      fill(banner, h('span', {}, h('b', {}, live.signedOut ? 'You are signed out. ' : 'You may not see this. '), since), loginLink());
    } else {
      const wait = live.retryAt ? Math.ceil((live.retryAt - Date.now()) / 1000) : 0;
      const next = wait > 0 ? ` Trying again in ${wait} s.` : ' Trying now.';
      // Only the first sentence is for the ear: the rest changes every second.
      fill(banner, h('span', {}, h('b', {}, 'Connection lost. '), h('span', { 'aria-hidden': 'true' }, since, next)),
        h('button', { type: 'button', onclick: () => live.retry() }, 'Try now'));
    }
    banner.hidden = false;
    document.body.classList.add('stale');
  };

  live.addEventListener('state', () => {
    pill.dataset.state = live.state;
    pill.querySelector('.word').textContent = live.signedOut ? 'Signed out' : WORDS[live.state];
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
    timer = setInterval(() => { if (live.state !== 'paused' && Date.now() - lostAt >= PATIENCE) draw(); }, 500);
  });
}
