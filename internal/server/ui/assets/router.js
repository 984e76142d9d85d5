// Addresses and their views. A view has show(main, match, params), which may set the focus, and leave(). It may have
// update(params) for another query at the same path.

let routes = [];
let shown = null; // {view, path}
let last = '';

/** route starts the router with a list of [pattern, view]. The last view is for all other addresses. */
export function route(list) {
  routes = list;
  history.scrollRestoration = 'manual';
  addEventListener('popstate', render);
  document.addEventListener('click', followLink);
  render();
}

/** go shows another address. With `replace` the back button skips the current one. */
export function go(address, { replace = false } = {}) {
  if (address !== location.pathname + location.search) {
    history[replace ? 'replaceState' : 'pushState'](null, '', address);
  }
  render();
}

/** setParams changes parameters of the address in place. It removes empty ones. */
export function setParams(changes) {
  const params = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) params.set(name, value);
    else params.delete(name);
  }
  go(params.size ? `${location.pathname}?${params}` : location.pathname, { replace: true });
}

/** reload shows the current address again. */
export function reload() {
  shown?.view.leave?.();
  shown = null;
  last = '';
  render();
}

function followLink(event) {
  const link = event.target.closest?.('a[href]');
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const url = new URL(link.href);
  if (url.origin !== location.origin || url.hash || !find(url.pathname)[2]) return;
  event.preventDefault();
  go(url.pathname + url.search);
}

// The third is false if no pattern matches.
function find(path) {
  for (const [pattern, view] of routes) {
    const match = pattern?.exec(path);
    if (match) return [view, match, true];
  }
  return [routes.at(-1)[1], [path], false];
}

function render() {
  const address = location.pathname + location.search;
  if (address === last) return; // a link within the document
  last = address;
  const params = new URLSearchParams(location.search);
  const [view, match] = find(location.pathname);
  if (shown?.view === view && shown.path === location.pathname && view.update) {
    view.update(params);
    return;
  }
  const main = document.getElementById('main');
  const first = shown === null;
  shown?.view.leave?.();
  main.replaceChildren();
  scrollTo(0, 0);
  shown = { view, path: location.pathname };
  view.show(main, match, params);
  if (!first && !main.contains(document.activeElement)) main.focus({ preventScroll: true }); // where a screen reader continues
}
