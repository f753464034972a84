// What happens next: a binary heap by (time, order of entry), in flat arrays, so that equal times keep their order and a run is repeatable.
// An event is a kind and up to three whole numbers below 2³¹; there are no closures.

const FIRST_ROOM = 256;
const FIELDS = 4;

export class EventHeap {
  #times = new Float64Array(FIRST_ROOM);
  #orders = new Float64Array(FIRST_ROOM);
  /** By place in the heap: where the event's fields stand. */
  #places = new Int32Array(FIRST_ROOM);
  #fields = new Int32Array(FIRST_ROOM * FIELDS);
  /** Places of fields that are free: those behind `#size`. */
  #size = 0;
  #order = 0;
  // The event that was taken last.
  time = 0;
  kind = 0;
  a = 0;
  b = 0;
  c = 0;

  constructor() {
    for (let i = 0; i < FIRST_ROOM; i++) this.#places[i] = i;
  }

  get size(): number {
    return this.#size;
  }

  put(time: number, kind: number, a = 0, b = 0, c = 0): void {
    if (this.#size === this.#times.length) this.#grow();
    let at = this.#size++;
    const place = this.#places[at]!;
    const order = this.#order++;
    this.#fields[place * FIELDS] = kind;
    this.#fields[place * FIELDS + 1] = a;
    this.#fields[place * FIELDS + 2] = b;
    this.#fields[place * FIELDS + 3] = c;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      // A new event is the latest of its time, so it never passes an equal one.
      if (this.#times[parent]! <= time) break;
      this.#move(parent, at);
      at = parent;
    }
    this.#times[at] = time;
    this.#orders[at] = order;
    this.#places[at] = place;
  }

  /** Takes the next event out, into the fields; false when there is none. */
  take(): boolean {
    if (this.#size === 0) return false;
    const place = this.#places[0]!;
    this.time = this.#times[0]!;
    this.kind = this.#fields[place * FIELDS]!;
    this.a = this.#fields[place * FIELDS + 1]!;
    this.b = this.#fields[place * FIELDS + 2]!;
    this.c = this.#fields[place * FIELDS + 3]!;
    const last = --this.#size;
    const time = this.#times[last]!;
    const order = this.#orders[last]!;
    const lastPlace = this.#places[last]!;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= last) break;
      if (child + 1 < last && this.#isBefore(child + 1, this.#times[child]!, this.#orders[child]!)) child++;
      if (!this.#isBefore(child, time, order)) break;
      this.#move(child, at);
      at = child;
    }
    this.#times[at] = time;
    this.#orders[at] = order;
    this.#places[at] = lastPlace;
    this.#places[last] = place;
    return true;
  }

  #isBefore(at: number, time: number, order: number): boolean {
    return this.#times[at]! < time || (this.#times[at] === time && this.#orders[at]! < order);
  }

  #move(from: number, to: number): void {
    this.#times[to] = this.#times[from]!;
    this.#orders[to] = this.#orders[from]!;
    this.#places[to] = this.#places[from]!;
  }

  #grow(): void {
    const room = this.#times.length * 2;
    const grown = <T extends Float64Array | Int32Array>(to: T, from: T): T => {
      to.set(from);
      return to;
    };
    this.#times = grown(new Float64Array(room), this.#times);
    this.#orders = grown(new Float64Array(room), this.#orders);
    this.#places = grown(new Int32Array(room), this.#places);
    this.#fields = grown(new Int32Array(room * FIELDS), this.#fields);
    for (let i = room / 2; i < room; i++) this.#places[i] = i;
  }
}
