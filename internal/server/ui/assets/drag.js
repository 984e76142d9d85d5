// Dragging and pinching.

const CLICK_SLOP = 3; // a shorter movement is a click, in pixels

/** Drag calls moved(pixels), pinched(factor, x), and released() when the last pointer goes up. */
export class Drag {
  #frame;
  #calls;
  #pointers = new Map();
  #start = 0;
  #dragging = false;

  constructor(frame, calls) {
    this.#frame = frame;
    this.#calls = calls;
    frame.addEventListener('pointerdown', (event) => this.#down(event));
    frame.addEventListener('pointermove', (event) => this.#move(event));
    for (const end of ['pointerup', 'pointercancel', 'pointerleave']) frame.addEventListener(end, (event) => this.#up(event));
  }

  /** held is true while a pointer is down. */
  get held() { return this.#pointers.size > 0; }

  /** pressed is true while the gesture may become a click, whose target must not move. */
  get pressed() { return this.held && !this.#dragging; }

  #middle() { return [...this.#pointers.values()].reduce((sum, x) => sum + x, 0) / this.#pointers.size; }

  #distance() { return Math.max(...this.#pointers.values()) - Math.min(...this.#pointers.values()); }

  #down(event) {
    if (event.button !== 0) return;
    this.#pointers.set(event.pointerId, event.clientX);
    this.#start = this.#middle();
  }

  #move(event) {
    if (!this.#pointers.has(event.pointerId)) return;
    if (event.buttons === 0) { // released outside the window
      this.#up(event);
      return;
    }
    const [x, distance] = [this.#middle(), this.#distance()];
    this.#pointers.set(event.pointerId, event.clientX);
    if (!this.#dragging && this.#pointers.size === 1 && Math.abs(this.#middle() - this.#start) <= CLICK_SLOP) return;
    this.#dragging = true;
    if (!this.#frame.hasPointerCapture(event.pointerId)) this.#frame.setPointerCapture(event.pointerId);
    if (this.#middle() !== x) this.#calls.moved(x - this.#middle());
    if (this.#pointers.size > 1 && this.#distance() > 10) this.#calls.pinched(distance / this.#distance(), this.#middle() - this.#frame.getBoundingClientRect().left);
  }

  #up(event) {
    if (!this.#pointers.delete(event.pointerId) || this.held) return;
    this.#dragging = false;
    this.#calls.released();
  }
}
