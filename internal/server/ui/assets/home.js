// Where the board is, with the filters that it was left with: whatever leads back to it leads there.

const KEY = 'board';

let address = '/';
try { address = sessionStorage.getItem(KEY) ?? '/'; } catch { /* forbidden: it is known until the page is loaded anew */ }

/** boardAddress is where the board was last. */
export function boardAddress() {
  return address;
}

/** boardIsAt notes where it is. */
export function boardIsAt(now) {
  address = now;
  try { sessionStorage.setItem(KEY, now); } catch { /* see above */ }
  document.querySelector('.brand').href = now;
}
