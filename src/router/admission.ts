// Which contract a model's SharedCache holds, and which worker ranks teach and receive under it (design.md 7). The contract of most ranks
// is in force; the one that is keeps its place until another has a strict majority over it, so that ranks which come and go one by one do
// not clear the cache at every tie. Strict mode is the reference's rule (spec/kv-events.md 6.4): every rank has the same contract, or there
// are no hints. A pure decision: it holds what ranks offer and says what follows; the caller applies it with `updateContract`.
import { MAX_REASON_CHARS } from '../contract/agree.js';
import { ConfigError } from '../errors.js';
import { publisherKey, type Source } from '../events/worker-events.js';

/** Most ranks that an instance holds. */
export const MAX_ADMISSION_RANKS = 4096;

/** What a rank published: its contract's fingerprint, nothing yet, or something that was refused. */
export type ContractOffer = string | null | { readonly invalid: string; readonly unverified?: true };

/** How a rank stands to the contract in force; only `admitted` ones teach and receive shared credit. */
export type AdmissionCode =
  | 'admitted'
  | 'contract-disagrees'
  | 'no-contract'
  | 'contract-invalid'
  | 'contract-unverified'; // derived from public facts, and that is not allowed

/** One rank's standing, with a sentence where it is not admitted. */
export interface RankAdmission {
  readonly source: Source;
  readonly code: AdmissionCode;
  readonly text: string | null;
}

/** What follows from all offers. */
export interface Admission {
  /** Fingerprint of the contract in force, null when there is none. */
  readonly fingerprint: string | null;
  /** Why there is none; null when there is one. */
  readonly reason: string | null;
  /** The ranks that teach and receive, in the order of their keys. */
  readonly sources: readonly Source[];
  /** Every rank by its `publisherKey`, in that order. */
  readonly ranks: ReadonlyMap<string, RankAdmission>;
  /** Whether fingerprint or sources differ from those of the decision before: the cache must be told. */
  readonly changed: boolean;
}

/** How admission is made. */
export interface AdmissionOptions {
  /** Any disagreement, and any rank without a valid contract: no hints at all. Default false. */
  readonly strict?: boolean;
}

/** A contract that is on offer. Ranks that offer it share the one text, which may be long. */
interface Camp {
  readonly fingerprint: string;
  ranks: number;
}

interface Rank {
  readonly source: Source;
  readonly camp: Camp | null;
  /** Why its offer is invalid; null when it is not. */
  readonly invalid: string | null;
  readonly unverified: boolean;
}

const NOTHING: Admission = {
  fingerprint: null,
  reason: 'No worker rank is admitted.',
  sources: [],
  ranks: new Map(),
  changed: false,
};

/** Holds the offers of one model's ranks and decides between them. */
export class ContractAdmission {
  readonly #strict: boolean;
  readonly #ranks = new Map<string, Rank>();
  readonly #camps = new Map<string, Camp>();
  #last = NOTHING;

  constructor({ strict = false }: AdmissionOptions = {}) {
    this.#strict = strict;
  }

  /**
   * A rank came, or offers something else than before. Has effect at the next `decide`.
   * @throws {ConfigError} `admission-ranks` when there is no room for another rank
   */
  set(source: Source, offer: ContractOffer): void {
    const key = publisherKey(source.workerId, source.dpRank);
    if (!this.#ranks.has(key) && this.#ranks.size >= MAX_ADMISSION_RANKS) {
      throw new ConfigError(
        'admission-ranks',
        `${nameOf(source)} is one more than ${MAX_ADMISSION_RANKS} ranks of one model. Remove ranks that have left, or split the pool.`,
      );
    }
    this.#leaveCamp(key);
    this.#ranks.set(key, {
      source: { workerId: source.workerId, dpRank: source.dpRank },
      camp: typeof offer === 'string' ? this.#joinCamp(offer) : null,
      invalid: typeof offer === 'object' && offer !== null ? offer.invalid.slice(0, MAX_REASON_CHARS) : null,
      unverified: typeof offer === 'object' && offer !== null && offer.unverified === true,
    });
  }

  /** A rank left. Has effect at the next `decide`. */
  remove({ workerId, dpRank }: Source): void {
    const key = publisherKey(workerId, dpRank);
    this.#leaveCamp(key);
    this.#ranks.delete(key);
  }

  /**
   * Decides on the offers as they stand, from them and the contract in force alone: the order in which they came since the decision before
   * makes no difference.
   */
  decide(): Admission {
    const inOrder = [...this.#ranks].sort(([a], [b]) => compareTexts(a, b));
    const reason = this.#whyNone(inOrder);
    const camp = reason === null ? this.#leader() : null;
    const admitted = inOrder.filter(([, rank]) => camp !== null && rank.camp === camp);
    const fingerprint = camp?.fingerprint ?? null;
    this.#last = {
      fingerprint,
      reason,
      sources: admitted.map(([, { source }]) => source),
      ranks: new Map(inOrder.map(([key, rank]) => [key, this.#standing(rank, camp)])),
      changed: fingerprint !== this.#last.fingerprint || !sameSources(admitted, this.#last.sources),
    };
    return this.#last;
  }

  #joinCamp(fingerprint: string): Camp {
    const camp = this.#camps.get(fingerprint) ?? { fingerprint, ranks: 0 };
    camp.ranks++;
    this.#camps.set(camp.fingerprint, camp);
    return camp;
  }

  #leaveCamp(key: string): void {
    const camp = this.#ranks.get(key)?.camp;
    if (camp && --camp.ranks === 0) this.#camps.delete(camp.fingerprint);
  }

  /** The largest camp; of equal ones the one in force, else the first by its text. There must be one. */
  #leader(): Camp {
    const inForce = this.#last.fingerprint;
    const [leader] = [...this.#camps.values()].sort(
      (a, b) =>
        b.ranks - a.ranks ||
        Number(b.fingerprint === inForce) - Number(a.fingerprint === inForce) ||
        compareTexts(a.fingerprint, b.fingerprint),
    );
    return leader!;
  }

  #whyNone(inOrder: readonly (readonly [string, Rank])[]): string | null {
    if (inOrder.length === 0) return NOTHING.reason;
    if (!this.#strict) return this.#camps.size === 0 ? 'No worker rank has a valid Mooncake Store contract.' : null;
    const without = inOrder.find(([, { camp }]) => camp === null)?.[1];
    if (without !== undefined) {
      return `Strict admission: ${nameOf(without.source)} has no supported Mooncake Store contract.`;
    }
    const first = inOrder[0]![1];
    const other = inOrder.find(([, { camp }]) => camp !== first.camp)?.[1];
    if (other === undefined) return null;
    return `Strict admission: ${nameOf(other.source)} has another Mooncake Store contract than ${nameOf(first.source)}.`;
  }

  #standing({ source, camp, invalid, unverified }: Rank, inForce: Camp | null): RankAdmission {
    if (unverified) return { source, code: 'contract-unverified', text: invalid };
    if (invalid !== null) return { source, code: 'contract-invalid', text: `Its contract was refused: ${invalid}` };
    if (camp === null) return { source, code: 'no-contract', text: 'It has published no Mooncake Store contract.' };
    if (camp === inForce) return { source, code: 'admitted', text: null };
    const text =
      inForce === null
        ? 'It has a contract, but in strict mode none is in force unless every rank has the same one.'
        : `Its contract (${camp.ranks} of ${this.#ranks.size} ranks) is not the one in force (${inForce.ranks} ranks).`;
    return { source, code: 'contract-disagrees', text };
  }
}

function sameSources(admitted: readonly (readonly [string, Rank])[], before: readonly Source[]): boolean {
  return (
    admitted.length === before.length &&
    admitted.every(([key], i) => key === publisherKey(before[i]!.workerId, before[i]!.dpRank))
  );
}

function nameOf({ workerId, dpRank }: Source): string {
  return `worker ${workerId} rank ${dpRank}`;
}

/** Order by UTF-16 code units, the same in every locale. */
function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
