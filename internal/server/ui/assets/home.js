// The address of the workload list with its last filters. All links to the list lead there.

const KEY = 'board';

let address = '/';
try { address = sessionStorage.getItem(KEY) ?? '/'; } catch { /* storage is forbidden: the address is kept until the page is reloaded */ }

/** boardAddress is the last address of the workload list. */
export function boardAddress() {
  return address;
}

/** setBoardAddress remembers the address of the workload list. */
export function setBoardAddress(now) {
  address = now;
  try { sessionStorage.setItem(KEY, now); } catch { /* see above */ }
  document.querySelector('.brand').href = now;
}
