// Runs an oracle case through the real path: worker event bytes are decoded and learned, store message bytes are applied, and the prompt
// is looked up. Whether a case is supported is decided from its contract and its events alone, before the expected hit is read.
import type { Reason } from '../cache/reasons.js';
import type { ReconcileWatermark } from '../cache/reconcile.js';
import type { SharedCache } from '../cache/shared-cache.js';
import type { CacheQuery, SharedCacheOptions } from '../cache/types.js';
import type { Hashing } from '../contract/descriptor.js';
import { descriptorFromCase, type OracleCaseGeometry } from '../contract/from-case.js';
import { validateContract } from '../contract/validate.js';
import { ContractError } from '../errors.js';
import { WorkerEvents } from '../events/worker-events.js';
import { type StoreEncoding, storeMessages, type WorkerEncoding, workerMessages } from './case-bytes.js';
import type { OracleCase } from './case-file.js';

const SOURCE = { workerId: 'oracle', dpRank: 0 };
/** One reader for all cases; each starts as a worker that nothing is known of. */
const workers = new WorkerEvents();

/** How a case ended. `over` is the one failure: credit above what vLLM restores. */
export type Verdict = 'equal' | 'under' | 'over' | 'unsupported';

/** One case, run. */
export interface CaseResult {
  readonly name: string;
  readonly verdict: Verdict;
  /** Tokens credited; null where unsupported. */
  readonly credited: number | null;
  /** Tokens that vLLM's worker reports. */
  readonly expected: number;
  /** Why unsupported: a contract error's code, or why an event taught nothing. */
  readonly unsupported: string | null;
  /** Why the credit is not more. */
  readonly reasons: readonly Reason[];
}

/** Counts of a file, as design.md 9 names them. */
export interface OracleSummary {
  readonly cases: number;
  readonly equal: number;
  /** Of the equal ones, those with a hit above zero. */
  readonly equalWithHit: number;
  readonly under: number;
  readonly over: number;
  readonly unsupported: number;
}

/** How the case's publishers write. */
export interface OracleEncoding {
  readonly worker: WorkerEncoding;
  readonly store: StoreEncoding;
}

/** A master that has sent nothing yet. */
const EMPTY_STORE: ReconcileWatermark = { s0: 0, firstSequence: null };
const DEFAULT_ENCODING: OracleEncoding = { worker: { form: 'map', hashes: 'u64' }, store: { generation: 'A' } };

/** For `SharedCache.create`: whatever a case's engines hash was made with the rule and seed that its contract names, so no event has to prove it. */
export function oracleCacheOptions(hashing: Hashing): SharedCacheOptions {
  return { hashing, trustSeed: true };
}

/** A cache that has learned the case's GPU blocks; or why the case is not supported. */
export function prepareCase(
  cache: SharedCache,
  oracleCase: OracleCase,
  encoding: WorkerEncoding = DEFAULT_ENCODING.worker,
): string | null {
  cache.updateContract(null);
  try {
    const { hashing } = cache;
    cache.updateContract(validateContract(descriptorFromCase(geometryOf(oracleCase)), { hashing }), [SOURCE]);
  } catch (error) {
    if (error instanceof ContractError) return error.code;
    throw error;
  }
  // The case begins with an empty store, and tells all that enters it.
  cache.reconcile(cache.beginReconcile(), [], EMPTY_STORE);
  let refused: string | null = null;
  workers.forget(SOURCE.workerId);
  for (const frames of workerMessages(oracleCase, encoding)) {
    const { events, rejected } = workers.read(SOURCE.workerId, frames);
    for (const { code } of rejected) refused ??= code;
    for (const event of events) {
      if (event.kind === 'dropped') refused ??= event.reason;
      else if (event.kind === 'stored') refused ??= cache.observeStored(SOURCE, event).refused;
    }
  }
  // Where hashes are derived, nothing has to be learned.
  return cache.hashing === 'learned' ? refused : null;
}

/** The case's prompt. */
export function queryOf(
  { tokens, requestTokenCount, mainEventBlockSize, loraName, cacheSalt }: OracleCase,
  hashing: Hashing = 'learned',
): CacheQuery {
  const derived = hashing !== 'learned';
  return {
    tokens: tokens.subarray(0, requestTokenCount),
    tokenCount: requestTokenCount,
    blockSize: mainEventBlockSize ?? 0,
    // A raw salt is no namespace: no event proves what it was hashed with. Deriving, we hash it ourselves.
    eligible: derived || cacheSalt === null,
    loraName,
    rawSalt: derived ? cacheSalt : null,
  };
}

/** Runs one case on `cache`, whose contract is replaced. */
export function runCase(
  cache: SharedCache,
  oracleCase: OracleCase,
  encoding: OracleEncoding = DEFAULT_ENCODING,
): CaseResult {
  const { name } = oracleCase;
  const unsupported = prepareCase(cache, oracleCase, encoding.worker);
  if (unsupported !== null) {
    return {
      name,
      verdict: 'unsupported',
      credited: null,
      expected: oracleCase.expected.workerHitTokens,
      unsupported,
      reasons: [],
    };
  }
  for (const frames of storeMessages(oracleCase, encoding.store)) cache.applyStoreMessage(frames);
  const query = queryOf(oracleCase, cache.hashing);
  const credited = cache.lookup(query).tokens;
  const { reasons } = cache.explain(query);
  const expected = oracleCase.expected.workerHitTokens;
  const verdict = credited === expected ? 'equal' : credited < expected ? 'under' : 'over';
  return { name, verdict, credited, expected, unsupported: null, reasons };
}

/** Counts results. */
export function summarise(results: readonly CaseResult[]): OracleSummary {
  const count = (verdict: Verdict) => results.filter((result) => result.verdict === verdict).length;
  return {
    cases: results.length,
    equal: count('equal'),
    equalWithHit: results.filter(({ verdict, expected }) => verdict === 'equal' && expected > 0).length,
    under: count('under'),
    over: count('over'),
    unsupported: count('unsupported'),
  };
}

/** What the case's contract follows from, as the descriptor's maker takes it. */
export function geometryOf(oracleCase: OracleCase): OracleCaseGeometry {
  return {
    hash_block_size: oracleCase.hashBlockSize,
    coordinator_alignment: oracleCase.alignment,
    partial_hash_hits: oracleCase.partialHashHits,
    main_event_block_size: oracleCase.mainEventBlockSize,
    groups: oracleCase.groups.map(({ kind, blockSize, window, prefixes }, group_id) => ({
      group_id,
      kind,
      block_size: blockSize,
      window,
      prefixes,
    })),
  };
}
