// What breaks a request off, once and for one reason: its client has gone, or its time is over. Plain callbacks, for every request has some; the
// web's signal is made for those who want one.

export class Breaker {
  #reason: Error | null = null;
  #callbacks: ((reason: Error) => void)[] = [];
  #controller: AbortController | null = null;

  /** Why it was broken off; null while it was not. */
  get reason(): Error | null {
    return this.#reason;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason !== null) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  /** Calls it when it is broken off, unless what it returns was called before. */
  on(callback: (reason: Error) => void): () => void {
    this.#callbacks.push(callback);
    return () => {
      const at = this.#callbacks.indexOf(callback);
      if (at >= 0) this.#callbacks.splice(at, 1);
    };
  }

  /** Breaks it off. The first reason counts. */
  break(reason: Error): void {
    if (this.#reason !== null) return;
    this.#reason = reason;
    this.#controller?.abort(reason);
    const callbacks = this.#callbacks;
    this.#callbacks = [];
    for (const callback of callbacks) callback(reason);
  }

  /** @throws the reason */
  throwIfBroken(): void {
    if (this.#reason !== null) throw this.#reason;
  }
}
