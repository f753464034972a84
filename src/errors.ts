// The typed errors of the whole project. One base with a stable `code`, so that callers branch on codes and never on texts.
// A message says what failed, where, the value seen and what to do, for the reader at 3 a.m. (design.md 8 and 10).

/** What every error of moonroute has: `code` is kebab-case and stable across versions, `message` is for people. */
export class MoonrouteError extends Error {
  override readonly name: string = 'MoonrouteError';
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A worker's contract, a rank's reply or a vLLM revision that can't be trusted: no hints under it. */
export class ContractError extends MoonrouteError {
  override readonly name = 'ContractError';
}

/** Bytes or frames that don't decode to what the wire's source promises. */
export class WireError extends MoonrouteError {
  override readonly name = 'WireError';
}

/** A setting that is invalid or contradicts another one; refused at start, by name. */
export class ConfigError extends MoonrouteError {
  override readonly name = 'ConfigError';
}
