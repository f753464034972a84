// Requests under way: counted from the moment that they are let in until their last byte, so that a server can end when they have. Once it drains,
// nobody is let in any more.

/** Counts requests, and drains. */
export class Activity {
  #active = 0;
  #draining = false;
  #waiting: (() => void)[] = [];

  /** Requests under way. */
  get active(): number {
    return this.#active;
  }

  /** Whether new requests are refused. */
  get draining(): boolean {
    return this.#draining;
  }

  /** Lets a request in; what it returns must be called at its end, and counts once. Null when nobody is let in any more. */
  begin(): (() => void) | null {
    if (this.#draining) return null;
    this.#active++;
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      this.#active--;
      if (this.#active === 0) this.#tell();
    };
  }

  /** Lets nobody in from now on. Resolves when all have ended, or after `ms` milliseconds. */
  async drain(ms: number): Promise<void> {
    this.#draining = true;
    if (this.#active === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #tell(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
