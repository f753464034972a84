// Batches on their way into a log that confirms each: many at a time, in order, and in order still when some fail. A pure state machine.
//
// After a failure nothing new is sent until all that is under way is settled; then those that failed are sent again from the first on. Had
// a later batch of the same subject been stored meanwhile, an earlier one would come behind it: it counts as lost, and readers see its ids missing.

/** Batches under way at a time, and their bytes; one larger goes alone. */
export const WINDOW_BATCHES = 256;
export const WINDOW_BYTES = 8 << 20;

export interface WindowEntry {
  readonly subject: string;
  readonly payload: Uint8Array;
  /** The same at every attempt. */
  readonly id: string;
}

interface Entry extends WindowEntry {
  readonly number: number;
  state: 'waiting' | 'under-way' | 'failed' | 'done';
  settle(stored: boolean): void;
}

export class SendWindow {
  readonly #send: (entry: WindowEntry) => void;
  /** Those not done, in order; among them some that are done, until they are first. */
  #entries: Entry[] = [];
  readonly #byId = new Map<string, Entry>();
  /** Highest number stored, by subject, while batches of it are not done. */
  readonly #stored = new Map<string, number>();
  #next = 0;
  #number = 0;
  #underWay = 0;
  #underWayBytes = 0;
  #pendingBytes = 0;
  /** Nothing may be sent: no connection, or a failure is being settled. */
  #held = true;
  #whenLanded: (() => void)[] = [];
  #whenEmpty: (() => void)[] = [];

  /** `send` starts an attempt, whose end `stored`, `failed` or `refused` brings. */
  constructor(send: (entry: WindowEntry) => void) {
    this.#send = send;
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }
  get held(): boolean {
    return this.#held;
  }

  /** Resolves with whether it was stored. */
  add(entry: WindowEntry): Promise<boolean> {
    return new Promise((resolve) => {
      const whole: Entry = { ...entry, number: this.#number++, state: 'waiting', settle: resolve };
      this.#entries.push(whole);
      this.#byId.set(whole.id, whole);
      this.#pendingBytes += whole.payload.length;
      this.#pump();
    });
  }

  stored(id: string): void {
    const entry = this.#land(id);
    if (entry === null) return;
    this.#stored.set(entry.subject, Math.max(entry.number, this.#stored.get(entry.subject) ?? -1));
    this.#finish(entry, true);
    this.#sweep();
    this.#pump();
  }

  /** It was not confirmed, and is sent again after `release`. */
  failed(id: string): void {
    const entry = this.#land(id);
    if (entry === null) return;
    entry.state = 'failed';
    this.hold();
  }

  /** It never will be stored. */
  refused(id: string): void {
    const entry = this.#land(id);
    if (entry === null) return;
    this.#finish(entry, false);
    this.#sweep();
    this.#pump();
  }

  /** Nothing is sent until `release`. */
  hold(): void {
    this.#held = true;
  }

  /** Resolves when nothing is under way. */
  landed(): Promise<void> {
    return this.#underWay === 0 ? Promise.resolve() : new Promise((resolve) => this.#whenLanded.push(resolve));
  }

  /** Resolves when every batch is done. */
  emptied(): Promise<void> {
    return this.#byId.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#whenEmpty.push(resolve));
  }

  /** Sends again what failed, and what waits. To be called when nothing is under way. */
  release(): void {
    for (const entry of this.#entries) {
      if (entry.state !== 'failed') continue;
      if (entry.number < (this.#stored.get(entry.subject) ?? -1)) this.#finish(entry, false);
      else entry.state = 'waiting';
    }
    this.#next = 0;
    this.#held = false;
    this.#sweep();
    this.#pump();
  }

  /** Gives up everything. */
  drop(): void {
    this.#held = true;
    for (const entry of this.#entries) if (entry.state !== 'done') this.#finish(entry, false);
    this.#underWay = 0;
    this.#underWayBytes = 0;
    this.#sweep();
    this.#landed();
  }

  #pump(): void {
    while (!this.#held && this.#underWay < WINDOW_BATCHES) {
      const entry = this.#entries[this.#next];
      if (entry === undefined) return;
      if (entry.state !== 'waiting') {
        this.#next++;
        continue;
      }
      if (this.#underWay > 0 && this.#underWayBytes + entry.payload.length > WINDOW_BYTES) return;
      this.#next++;
      entry.state = 'under-way';
      this.#underWay++;
      this.#underWayBytes += entry.payload.length;
      this.#send(entry);
    }
  }

  /** One that is under way no more; null for one of which nobody waits to hear. */
  #land(id: string): Entry | null {
    const entry = this.#byId.get(id);
    if (entry?.state !== 'under-way') return null;
    this.#underWay--;
    this.#underWayBytes -= entry.payload.length;
    if (this.#underWay === 0) this.#landed();
    return entry;
  }

  #landed(): void {
    const waiting = this.#whenLanded;
    this.#whenLanded = [];
    for (const resolve of waiting) resolve();
  }

  #finish(entry: Entry, stored: boolean): void {
    entry.state = 'done';
    this.#byId.delete(entry.id);
    this.#pendingBytes -= entry.payload.length;
    entry.settle(stored);
    if (this.#byId.size > 0) return;
    const waiting = this.#whenEmpty;
    this.#whenEmpty = [];
    for (const resolve of waiting) resolve();
  }

  /** Drops what is done at the front, when it is no less than what is left. */
  #sweep(): void {
    let done = 0;
    while (this.#entries[done]?.state === 'done') done++;
    if (done * 2 < this.#entries.length || done === 0) return;
    this.#entries.splice(0, done);
    this.#next = Math.max(0, this.#next - done);
    if (this.#entries.length === 0) this.#stored.clear();
  }
}
