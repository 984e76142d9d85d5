// A tooltip with the exact time. It stays while the pointer is on it, and closes with Escape (WCAG 1.4.13). Without a pointer,
// the button UTC makes all times exact (time.js).

import { h } from './dom.js';
import { exactTime, isExact } from './time.js';

const tip = h('div', { class: 'tip', popover: 'manual', 'aria-hidden': 'true' });
let of = null; // the time under the pointer

/** showTips starts the tooltips. */
export function showTips() {
  document.body.append(tip);
  document.addEventListener('mouseover', ({ target }) => {
    const stamp = target.closest('.stamp');
    if (target === tip || stamp === of) return;
    of = stamp;
    if (of && !isExact()) show(); else hide();
  });
  document.addEventListener('keydown', ({ key }) => { if (key === 'Escape') hide(); });
  document.addEventListener('scroll', () => { of = null; hide(); }, { capture: true, passive: true });
}

// The tooltip touches the time, above it or below, and is completely in the window.
function show() {
  tip.textContent = exactTime(of.dateTime);
  tip.showPopover();
  const { left, top, bottom } = of.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(left, document.documentElement.clientWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${top > tip.offsetHeight ? top - tip.offsetHeight : bottom}px`;
}

function hide() { tip.hidePopover(); }
