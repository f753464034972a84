// What a caller says of a worker, and how it is checked: a mistake of the caller's is refused by name, while a contract that can't be
// trusted only costs the worker its shared credit, with the reason (spec/kv-events.md 6.4).
import { type Contract, type Hashing, shown } from '../contract/descriptor.js';
import type { RevisionSet } from '../contract/revisions.js';
import { UNVERIFIED_TEXT } from '../contract/unverified.js';
import { isValidatedContract, validateContract } from '../contract/validate.js';
import { ConfigError, ContractError } from '../errors.js';
import type { Source } from '../events/worker-events.js';

/** A worker's name, as the caller chooses it. Numbers and bigints of the same value are one name; texts are others. */
export type WorkerId = Source['workerId'];

/** A worker as it is told to the router. */
export interface WorkerInfo {
  readonly id: WorkerId;
  /** Its data-parallel ranks, as its events number them. Default one, number 0. */
  readonly dpRanks?: { readonly start: number; readonly size: number };
  /**
   * What its ranks agree on (`validateContract`, `agreeOnContract`), or why that was refused; null, the default, when nothing was published. Takes
   * a contract of this process only: what came over a wire is a `descriptor`.
   */
  readonly contract?: Contract | { readonly invalid: string } | null;
  /** In place of a contract: the published descriptor as parsed JSON, which is validated here. */
  readonly descriptor?: unknown;
  /** Names of the LoRA adapters that it serves. Default none. */
  readonly adapters?: readonly string[];
  /**
   * Its number on an event plane, 0 … 2^64 − 1; a text is decimal. Default its id where that is such a number; null for none: then nothing of a plane
   * is its.
   */
  readonly planeId?: bigint | number | string | null;
  /** It gets no new requests; those that it has go on. Default false. */
  readonly draining?: boolean;
}

/** Why a contract can't be used; `unverified` where it would be, if contracts that no engine has vouched for were allowed. */
export interface ContractRefusal {
  readonly invalid: string;
  readonly unverified?: true;
}

/** What a worker's contract comes to: the contract, why it can't be used, or nothing. */
export type ContractVerdict = Contract | ContractRefusal | null;

/** A worker's checked description. */
export interface CheckedWorker {
  readonly id: WorkerId;
  /** Its name in tables. */
  readonly key: string;
  readonly start: number;
  readonly size: number;
  readonly contract: ContractVerdict;
  readonly adapters: ReadonlySet<string>;
  /** Null for none. */
  readonly planeId: bigint | null;
  readonly draining: boolean;
}

/** What contracts are held against. */
export interface ContractTerms {
  /** Tokens of the router's blocks; the contract's main event blocks must have as many. */
  readonly blockSize: number;
  readonly revisions: RevisionSet;
  /** Where the engines' hashes come from. */
  readonly hashing: Hashing;
  readonly allowUnverifiedContract: boolean;
}

const MAX_DP_RANK = 0xffff_ffff;
const MAX_PLANE_ID = 2n ** 64n - 1n;
/** Without leading zeros: one number, one text. */
const DECIMAL = /^(0|[1-9][0-9]{0,19})$/;

/**
 * Checks a worker's description.
 * @throws ConfigError `worker-id`, `worker-dp-ranks`, `worker-contract`, `worker-adapters`, `worker-plane-id`, `worker-draining`
 */
export function checkWorker(info: WorkerInfo, terms: ContractTerms): CheckedWorker {
  if (typeof info !== 'object' || info === null) {
    throw new ConfigError('worker-id', `a worker is ${shown(info)}; give an object with its id.`);
  }
  const { id, dpRanks, adapters = [], draining = false } = info;
  const { start, size } = dpRanks ?? { start: 0, size: 1 };
  if (!isWorkerId(id)) {
    throw new ConfigError('worker-id', `a worker's id is ${shown(id)}; give a text or a whole number.`);
  }
  const whole = Number.isInteger(start) && start >= 0 && Number.isInteger(size) && size >= 1;
  if (!whole || start + size - 1 > MAX_DP_RANK) {
    throw new ConfigError(
      'worker-dp-ranks',
      `worker ${id}: dpRanks is start ${shown(start)}, size ${shown(size)}; give whole numbers, start from 0 and size from 1, below 2^32 together.`,
    );
  }
  if (!(Array.isArray(adapters) && adapters.every((name) => typeof name === 'string' && name !== ''))) {
    throw new ConfigError('worker-adapters', `worker ${id}: adapters must be a list of names: got ${shown(adapters)}.`);
  }
  return {
    id,
    key: workerKey(id),
    start,
    size,
    contract: contractOf(info, terms),
    adapters: new Set(adapters),
    planeId: planeIdOf(id, info.planeId),
    draining: checkDraining(id, draining),
  };
}

/**
 * Whether a worker drains.
 * @throws ConfigError `worker-draining` for what is neither true nor false
 */
export function checkDraining(id: WorkerId, draining: unknown): boolean {
  if (typeof draining === 'boolean') return draining;
  throw new ConfigError('worker-draining', `worker ${id}: draining is ${shown(draining)}; give true or false.`);
}

/** Whether the value can be a worker's name. */
export function isWorkerId(value: unknown): value is WorkerId {
  return typeof value === 'string' ? value !== '' : typeof value === 'bigint' || Number.isSafeInteger(value);
}

/** @throws ConfigError `worker-plane-id` */
function planeIdOf(id: WorkerId, given: unknown): bigint | null {
  if (given === null) return null;
  if (given === undefined) return typeof id === 'string' ? null : planeIdFrom(id);
  const planeId = planeIdFrom(given);
  if (planeId !== null) return planeId;
  throw new ConfigError(
    'worker-plane-id',
    `worker ${id}: planeId is ${shown(given)}; give a whole number from 0 to 2^64 − 1, in decimal where it is a text.`,
  );
}

/** A worker's number on an event plane as a caller may write it; null for what is none. */
export function planeIdFrom(given: unknown): bigint | null {
  const isText = typeof given === 'string' && DECIMAL.test(given);
  if (!isText && typeof given !== 'bigint' && !Number.isSafeInteger(given)) return null;
  const planeId = BigInt(given as string | number | bigint);
  return planeId >= 0n && planeId <= MAX_PLANE_ID ? planeId : null;
}

/** A worker's name in tables; numbers and texts that read alike stay apart. */
export function workerKey(id: WorkerId): string {
  return `${typeof id === 'string' ? 's' : 'n'}${id}`;
}

function contractOf({ id, contract: given, descriptor }: WorkerInfo, terms: ContractTerms): ContractVerdict {
  const { revisions, hashing } = terms;
  const contract = givenContract(id, given, hashing);
  if (contract !== null && descriptor !== undefined) {
    throw new ConfigError('worker-contract', `worker ${id}: give a contract or a descriptor, not both.`);
  }
  const verdict = descriptor === undefined ? contract : validated(descriptor, revisions, hashing);
  if (verdict === null || 'invalid' in verdict) return verdict;
  if (!verdict.verified && !terms.allowUnverifiedContract) return { invalid: UNVERIFIED_TEXT, unverified: true };
  // Without a main event group no event is laid out in blocks of that size.
  if (verdict.mainEventGroup === null) return verdict;
  if (verdict.mainEventBlockSize === terms.blockSize) return verdict;
  return {
    invalid: `its main event blocks have ${verdict.mainEventBlockSize} tokens, the router's blocks ${terms.blockSize}. Give the router that blockSize, or the worker another router.`,
  };
}

/** What was given as a contract, believed only where `validateContract` made it in this process. */
function givenContract(id: WorkerId, given: unknown, hashing: Hashing): ContractVerdict {
  if (given === undefined || given === null) return null;
  if (isValidatedContract(given, hashing)) return given;
  if (typeof given !== 'object' || !('invalid' in given)) {
    throw new ConfigError(
      'worker-contract',
      `worker ${id}: contract is ${shown(given)} that validateContract did not make here for hashing ${hashing}; give it as descriptor instead.`,
    );
  }
  const { invalid } = given;
  if (typeof invalid === 'string') return { invalid };
  throw new ConfigError(
    'worker-contract',
    `worker ${id}: contract.invalid is ${shown(invalid)}; give the reason as a text.`,
  );
}

function validated(descriptor: unknown, revisions: RevisionSet, hashing: Hashing): ContractVerdict {
  try {
    return validateContract(descriptor, { revisions, hashing });
  } catch (error) {
    if (error instanceof ContractError) return { invalid: error.message };
    throw error;
  }
}
