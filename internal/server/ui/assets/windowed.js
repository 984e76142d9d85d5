// A virtual list: only visible rows have elements. It holds tens of thousands of rows of the same height.

const OVERSCAN = 5; // rows drawn above and below the visible ones, for scrolling

/**
 * Windowed draws items into a list.
 *
 * `scroller` scrolls and contains `list`. `make` makes an empty row, and `fill` puts an item into a row: rows that are no
 * longer visible are reused, except the focused one. `key` identifies an item. `height` is the height of a row in pixels.
 * `drawn` is called after each draw.
 */
export class Windowed {
  items = [];

  /** visible is the range of items that were completely visible at the last draw: from `first` to before `end`. */
  visible = { first: 0, end: 0 };

  #options;
  #rows = new Map(); // by key
  #frame = 0;
  #sizes;

  constructor(options) {
    this.#options = options;
    options.scroller.addEventListener('scroll', () => this.#scheduleDraw(), { passive: true });
    this.#sizes = new ResizeObserver(() => this.#scheduleDraw());
    this.#sizes.observe(options.scroller);
  }

  /** set replaces the items. */
  set(items) {
    this.items = items;
    this.draw();
  }

  /** row is the element of an item, if it has one. */
  row(key) {
    return this.#rows.get(key);
  }

  /** reveal scrolls to an item. */
  reveal(index) {
    const { scroller, list, height } = this.#options;
    const above = list.offsetTop; // elements that scroll along, such as a sticky heading
    const top = index * height();
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + height() > scroller.scrollTop + scroller.clientHeight - above) {
      scroller.scrollTop = top + height() - scroller.clientHeight + above;
    }
    this.draw();
  }

  /** pageSize is the number of visible rows. */
  get pageSize() {
    const { scroller, height } = this.#options;
    return Math.max(1, Math.floor(scroller.clientHeight / height()) - 2);
  }

  /** stop removes all listeners. */
  stop() {
    cancelAnimationFrame(this.#frame);
    this.#sizes.disconnect();
  }

  #scheduleDraw() {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.draw();
    });
  }

  /** draw updates the visible rows. */
  draw() {
    const { scroller, list, height, key, drawn } = this.#options;
    const rowHeight = height();
    this.#updateVisible(rowHeight);
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

  // Rows under a sticky heading are not visible.
  #updateVisible(rowHeight) {
    const { scroller, list } = this.#options;
    const top = scroller.scrollTop;
    this.visible = { first: Math.ceil(top / rowHeight), end: Math.floor((top + scroller.clientHeight - list.offsetTop) / rowHeight) };
  }

  // The elements have the order of the items, in which a screen reader reads them. An element moves only if its item does,
  // because it would lose the focus.
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
      while (spare.includes(next)) next = next.nextSibling; // do not move a row that may have the focus
      if (next !== row) list.insertBefore(row, next);
      previous = row;
    }
  }

  // The index of the focused item, or -1.
  #focused() {
    const { list, key } = this.#options;
    const row = list.contains(document.activeElement) && [...list.children].find((child) => child.contains(document.activeElement));
    return row ? this.items.findIndex((item) => key(item) === row.windowedKey) : -1;
  }
}
