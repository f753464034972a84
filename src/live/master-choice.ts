// Which of several masters is followed. In a high-availability pair one leads and publishes; the others answer 503 and bind no socket
// (spec/mooncake-events.md 5). Pure: what each last said, in, and which to follow, out.

/** What is known of a master. */
export type MasterState = 'unknown' | 'serving' | 'standby' | 'events-off' | 'unreachable';

/** Remembers what each master said, and chooses. */
export class MasterChoice {
  readonly #states: MasterState[];
  #followed: number | null;

  constructor(masters: number) {
    this.#states = Array.from({ length: masters }, () => 'unknown');
    // A single one is followed whatever it says: its socket may be well where its HTTP is not.
    this.#followed = masters === 1 ? 0 : null;
  }

  /** Index of the master to follow; null until one of several is known to serve. */
  get followed(): number | null {
    return this.#followed;
  }
  get states(): readonly MasterState[] {
    return this.#states;
  }

  /** A master was asked. Whether another one is to be followed from now on. */
  said(index: number, state: MasterState): boolean {
    this.#states[index] = state;
    const now = this.#followed;
    if (now !== null && this.#states[now] === 'serving') return false;
    const serving = this.#states.indexOf('serving');
    if (serving < 0 || serving === now) return false;
    this.#followed = serving;
    return true;
  }
}
