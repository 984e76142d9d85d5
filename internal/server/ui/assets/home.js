// The address of the workload list with its last filters. All links to the list lead there.

const KEY = 'board';

let address = '/';
try { address = sessionStorage.getItem(KEY) ?? '/'; } catch { /* storage is forbidden: the address is kept until the page is reloaded */ }

/** listAddress is the last address of the workload list. */
export function listAddress() {
  return address;
}

/** setListAddress remembers the address of the workload list. */
export function setListAddress(now) {
  address = now;
  try { sessionStorage.setItem(KEY, now); } catch { /* see above */ }
  document.querySelector('.brand').href = now;
}
