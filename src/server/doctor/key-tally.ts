// Reads a master's key list as it comes from the network, cut anywhere, and holds each key against the prefixes that the contracts require and the
// hashes that workers announced. Memory is bounded whatever the list holds.
import { DIGEST_DIGITS } from '../../cache/key-digest.js';
import type { KeyEvidence, PrefixCount } from './evidence.js';
import { ScopeTally } from './scope-tally.js';

/** Foreign prefixes that are counted each for itself. */
const PREFIXES_KEPT = 1024;
/** Of these, the most frequent are shown to the checks. */
const PREFIXES_SHOWN = 32;
/** Longest key that is looked at. */
const KEY_CHARS = 16_384;
const LOW64_DIGITS = 16;
const HEX = /^[0-9a-f]+$/;

export class KeyReader {
  readonly #required: Map<string, number>;
  readonly #main: ReadonlySet<string>;
  readonly #wanted: ReadonlySet<bigint>;
  readonly #foreign = new Map<string, number>();
  readonly #met = new Set<bigint>();
  readonly #onKey: (key: string) => void;
  readonly #scopes: ScopeTally;
  readonly #decoder = new TextDecoder();
  #rest = '';
  #total = 0;

  /**
   * @param required prefixes of all contracts
   * @param main those of the groups whose events teach
   * @param wanted workers' hashes
   * @param onKey hears each key
   * @param heads models and cache prefixes of derived contracts
   */
  constructor(
    required: readonly string[],
    main: readonly string[],
    wanted: Iterable<bigint>,
    onKey: (key: string) => void = () => {},
    heads: readonly string[] = [],
  ) {
    this.#scopes = new ScopeTally(heads);
    this.#required = new Map(required.map((prefix) => [prefix, 0]));
    this.#main = new Set(main);
    this.#wanted = new Set(wanted);
    this.#onKey = onKey;
  }

  add(part: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.decode(part, { stream: true })).split('\n');
    this.#rest = lines.pop()!.slice(0, KEY_CHARS);
    for (const line of lines) this.#line(line);
  }

  end(): void {
    this.#line(this.#rest + this.#decoder.decode());
    this.#rest = '';
  }

  result(): KeyEvidence {
    const foreign = listed(this.#foreign).sort((a, b) => b.keys - a.keys);
    return {
      total: this.#total,
      required: listed(this.#required),
      foreign: foreign.slice(0, PREFIXES_SHOWN),
      met: this.#met,
      scopes: this.#scopes.result(),
    };
  }

  #line(line: string): void {
    const key = line.endsWith('\r') ? line.slice(0, -1) : line;
    if (key === '') return;
    this.#total++;
    this.#onKey(key);
    const at = key.lastIndexOf('@');
    const prefix = key.slice(0, Math.max(0, at));
    const digest = key.slice(at + 1);
    this.#scopes.add(prefix, digest);
    const known = this.#required.get(prefix);
    if (known === undefined) {
      const seen = this.#foreign.get(prefix) ?? 0;
      if (seen > 0 || this.#foreign.size < PREFIXES_KEPT) this.#foreign.set(prefix, seen + 1);
      return;
    }
    this.#required.set(prefix, known + 1);
    if (!this.#main.has(prefix) || digest.length !== DIGEST_DIGITS || !HEX.test(digest)) return;
    const low = BigInt(`0x${digest.slice(-LOW64_DIGITS)}`);
    if (this.#wanted.has(low)) this.#met.add(low);
  }
}

function listed(counts: ReadonlyMap<string, number>): PrefixCount[] {
  return [...counts].map(([prefix, keys]) => ({ prefix, keys }));
}
