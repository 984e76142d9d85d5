// The address of the board with its last filters: all links to the board lead there.

const KEY = 'board';

let address = '/';
try { address = sessionStorage.getItem(KEY) ?? '/'; } catch { /* storage is forbidden: the address is kept until the page is reloaded */ }

/** boardAddress is the last address of the board. */
export function boardAddress() {
  return address;
}

/** setBoardAddress remembers the address of the board. */
export function setBoardAddress(now) {
  address = now;
  try { sessionStorage.setItem(KEY, now); } catch { /* see above */ }
  document.querySelector('.brand').href = now;
}
