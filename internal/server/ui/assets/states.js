// What is shown where there is nothing else to show: each state says what is, and what to do.

import { h, s } from './dom.js';
import { boardAddress } from './home.js';
import { passes } from './retry.js';
import { said } from './text.js';

/** state is a picture, a heading, what is to be said, and what can be done. */
export function state(name, title, texts, ...actions) {
  return h('section', { class: 'state', 'data-state': name },
    s('svg', { class: 'drawing', viewBox: '0 0 96 64', 'aria-hidden': 'true' }, s('use', { href: '#i-empty' })),
    h('h1', {}, title),
    texts.filter(Boolean).map((text) => h('p', {}, text)),
    actions.length > 0 && h('p', { class: 'actions' }, ...actions));
}

/** retryButton tries again. */
export function retryButton(retry) {
  return h('button', { type: 'button', class: 'primary', onclick: retry }, 'Try again');
}

/** loginLink leads to the login, and back here. */
export function loginLink() {
  const next = encodeURIComponent(location.pathname + location.search);
  return h('a', { class: 'button primary', href: `/login?next=${next}`, 'data-login': '' }, 'Sign in');
}

/** boardLink leads back. */
export function boardLink() {
  return h('a', { class: 'button', href: boardAddress() }, 'All workloads');
}

/** problemState shows why there is no answer. */
export function problemState(problem, retry) {
  switch (problem.kind) {
    case 'signedOut':
      return state('signed-out', 'Sign in to see this', ['You are not signed in, or your session has ended.'], loginLink());
    case 'forbidden':
      return state('forbidden', 'You may not see this',
        ['Your token has no right to look here. One of the role viewer or admin has.'], loginLink(), boardLink());
    case 'missing':
      return state('missing', 'There is no such workload',
        ['It may have been deleted a while ago, or the link is wrong.'], boardLink());
    case 'unreachable':
      return state('unreachable', 'The control plane cannot be reached',
        ['It is down, or the network is. This page tries again by itself.'], retryButton(retry));
    case 'busy':
      return state('busy', 'The control plane is busy', [said(problem.message), 'This page tries again by itself.'], retryButton(retry));
    default:
      return state('broken', 'The control plane failed to answer', [said(problem.message), passes(problem) && 'This page tries again by itself.'], retryButton(retry));
  }
}

/** skeleton stands where rows will be. */
export function skeleton(rows, label = 'Loading') {
  return h('div', { class: 'skeleton', role: 'status', 'aria-label': label },
    Array.from({ length: rows }, () => h('div', { class: 'bone' })));
}
