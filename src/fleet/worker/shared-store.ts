// What an engine needs of the shared store: whether an object can be had, and putting it. A simulated master gives this; so does any stand-in of
// a test.

/** What a simulated worker asks of the store: `storeOf` gives that of simulated masters. */
export interface SharedStore {
  /**
   * Whether the object can be read now. It is a client's question, as vLLM's connector asks it before it loads and before it puts, and a real
   * store takes it for a use: the object has a lease from then on.
   */
  has(key: string): boolean;
  /** The object is put into memory; false when the store did not take it. */
  put(key: string, bytes: number): boolean;
}
