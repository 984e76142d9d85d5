// Views without data: each says what happened and what to do.

import { h, s } from './dom.js';
import { listAddress } from './home.js';
import { isTemporary } from './retry.js';
import { isolated } from './text.js';

/** state is a drawing with a heading, texts and actions. */
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

/** loginLink leads to the log-in page, which leads back here. */
export function loginLink() {
  const next = encodeURIComponent(location.pathname + location.search);
  return h('a', { class: 'button primary', href: `/login?next=${next}`, 'data-login': '' }, 'Sign in');
}

/** listLink leads to the workload list. */
export function listLink() {
  return h('a', { class: 'button', href: listAddress() }, 'All workloads');
}

/** problemState is the view of a failed request. */
export function problemState(problem, retry) {
  switch (problem.kind) {
    case 'signedOut':
      return state('signed-out', 'Sign in to see this', ['You are not signed in, or your session has ended.'], loginLink());
    case 'forbidden':
      return state('forbidden', 'You do not have access',
        ['Your token may not read this page. Sign in with a token of the role viewer or admin.'], loginLink(), listLink());
    case 'missing':
      return state('missing', 'Workload not found',
        ['It was deleted, or the link is wrong.'], listLink());
    case 'unreachable':
      return state('unreachable', 'The control plane cannot be reached',
        ['The control plane or the network is down. This page retries automatically.'], retryButton(retry));
    case 'busy':
      return state('busy', 'The control plane is busy', [isolated(problem.message), 'This page retries automatically.'], retryButton(retry));
    default:
      return state('broken', 'The control plane failed to answer', [isolated(problem.message), isTemporary(problem) && 'This page retries automatically.'], retryButton(retry));
  }
}

/** skeleton is a placeholder for rows. */
export function skeleton(rows, label = 'Loading') {
  return h('div', { class: 'skeleton', role: 'status', 'aria-label': label },
    Array.from({ length: rows }, () => h('div', { class: 'bone' })));
}
