// A list of which only what is in sight has elements: tens of thousands of rows, all of one height.

const OVERSCAN = 5; // rows above and below what is in sight, so that scrolling has something to show at once

/**
 * Windowed draws items into a list.
 *
 * `scroller` scrolls and `list` is what it holds. `make` makes an empty row, and `fill` puts an item into one: a row is
 * used again for another item once its own is out of sight, unless it has the focus. `key` tells items apart. `height` is
 * of a row, in pixels. `drawn` is called after each drawing.
 */
export class Windowed {
  items = [];

  /** sight is the items that were wholly in sight when it was drawn last: from `first` on, and before `end`. */
  sight = { first: 0, end: 0 };

  #options;
  #rows = new Map(); // by key
  #frame = 0;
  #sizes;

  constructor(options) {
    this.#options = options;
    options.scroller.addEventListener('scroll', () => this.#soon(), { passive: true });
    this.#sizes = new ResizeObserver(() => this.#soon());
    this.#sizes.observe(options.scroller);
  }

  /** set shows other items. */
  set(items) {
    this.items = items;
    this.draw();
  }

  /** row is the element of an item, if it has one. */
  row(key) {
    return this.#rows.get(key);
  }

  /** reveal scrolls until an item is in sight. */
  reveal(index) {
    const { scroller, list, height } = this.#options;
    const above = list.offsetTop; // what scrolls along, such as a heading that sticks
    const top = index * height();
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + height() > scroller.scrollTop + scroller.clientHeight - above) {
      scroller.scrollTop = top + height() - scroller.clientHeight + above;
    }
    this.draw();
  }

  /** pageSize is how many rows are in sight. */
  get pageSize() {
    const { scroller, height } = this.#options;
    return Math.max(1, Math.floor(scroller.clientHeight / height()) - 2);
  }

  /** stop lets go of everything. */
  stop() {
    cancelAnimationFrame(this.#frame);
    this.#sizes.disconnect();
  }

  #soon() {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.draw();
    });
  }

  /** draw makes what is in sight true. */
  draw() {
    const { scroller, list, height, key, drawn } = this.#options;
    const rowHeight = height();
    this.#look(rowHeight);
    list.style.height = `${this.items.length * rowHeight}px`;
    const first = Math.max(0, Math.floor(scroller.scrollTop / rowHeight) - OVERSCAN);
    const end = Math.min(this.items.length, Math.ceil((scroller.scrollTop + scroller.clientHeight) / rowHeight) + OVERSCAN);

    const wanted = [];
    const kept = this.#focused();
    if (kept >= 0 && kept < first) wanted.push(kept);
    for (let i = first; i < end; i++) wanted.push(i);
    if (kept >= end) wanted.push(kept);

    const keys = new Set(wanted.map((i) => key(this.items[i])));
    const spare = [];
    for (const row of [...list.children]) {
      if (keys.has(row.windowedKey)) continue;
      this.#rows.delete(row.windowedKey);
      row.remove();
      spare.push(row);
    }
    this.#place(wanted, rowHeight, spare);
    drawn?.();
  }

  // What is below a heading that sticks is not in sight.
  #look(rowHeight) {
    const { scroller, list } = this.#options;
    const top = scroller.scrollTop;
    this.sight = { first: Math.ceil(top / rowHeight), end: Math.floor((top + scroller.clientHeight - list.offsetTop) / rowHeight) };
  }

  // The elements stay in the order of the items: a screen reader reads them in the document's. Those that stay in sight do
  // not move among themselves, unless the items do: an element that moves loses the focus.
  #place(wanted, rowHeight, spare) {
    const { list, make, fill, key } = this.#options;
    let previous = null;
    for (const i of wanted) {
      const item = this.items[i];
      const k = key(item);
      let row = this.#rows.get(k);
      if (!row) {
        row = spare.shift() ?? make();
        row.windowedKey = k;
        this.#rows.set(k, row);
      }
      fill(row, item, i);
      const top = `translateY(${i * rowHeight}px)`;
      if (row.style.transform !== top) row.style.transform = top;
      let next = previous ? previous.nextSibling : list.firstChild;
      while (spare.includes(next)) next = next.nextSibling; // rather than move a row that may have the focus
      if (next !== row) list.insertBefore(row, next);
      previous = row;
    }
  }

  // The item whose row has the focus; -1 if none has.
  #focused() {
    const { list, key } = this.#options;
    const row = list.contains(document.activeElement) && [...list.children].find((child) => child.contains(document.activeElement));
    return row ? this.items.findIndex((item) => key(item) === row.windowedKey) : -1;
  }
}
