// SharedCache: what a shared Mooncake store could restore for a prompt, under one contract. It puts the rooms below together: contract
// rules decide whether there are hints, eligibility decides what may teach, the core remembers and answers, and the rules about
// sequence, generation and pending (design.md 5) decide when evidence goes. It has no sockets and no clock.

import { checkHashing } from '../contract/check-hashing.js';
import type { Contract, Hashing } from '../contract/descriptor.js';
import { UNVERIFIED_TEXT } from '../contract/unverified.js';
import { type BuildName, candidateBuilds, fittingBuild } from '../core/builds.js';
import { Core, type GroupCensus } from '../core/core.js';
import { badScope, seedOf } from '../core/local-hash.js';
import { compiledModule, compileModules } from '../core/modules.js';
import { sharedNumbers } from '../core/numbers.js';
import { type Evaluation, type Plan, planOf } from '../core/plan.js';
import type { IndexedBlocks } from '../core/prefix-types.js';
import { hashedNumbers } from '../events/local-hashes.js';
import type { NormalisedEvent, NormalisedStored } from '../events/normaliser.js';
import { whyNotLearned } from '../events/stored-blocks.js';
import { publisherKey, type Source, type WorkerMessage } from '../events/worker-events.js';
import { StoreFrameError, splitStoreFrames } from '../wire/mooncake.js';
import type { StoredEvent } from '../wire/worker-event.js';
import { HashProofs } from './hash-proofs.js';
import { extraKeysOf, type QueryScope, scopeKinds, UNFIT, whyNotByDerived, whyNotByLearned } from './hash-ways.js';
import { KeyList, type KeyListScope } from './key-list.js';
import { KeyPrefixes } from './key-prefixes.js';
import { hitReasons, type Reason, type ReasonCode, reason } from './reasons.js';
import { ReconcileToken, type ReconcileWatermark, watermarkFault } from './reconcile.js';
import { sequenceStep } from './sequence.js';
import type {
  CacheHits,
  CacheQuery,
  CacheStats,
  DecodedObjects,
  Explanation,
  Learned,
  ReconcileResult,
  SharedCacheOptions,
  StoreMessageFate,
  StoreMessageResult,
} from './types.js';

const NOBODY = { workerId: '', dpRank: -1, admitted: false };
/** Refusals that are not for what the event says. */
const DEAF: ReadonlySet<string> = new Set(['stopped', 'pending', 'no-contract', 'source-not-admitted', 'derived-only']);
const NO_HITS: CacheHits = { blocks: 0, tokens: 0 };
const DEFAULT_EDGES = 262_144;
const MAX_TOKENS = 0xffff_ffff;
/** Edges moved together after a lookup that found its path scattered; done when the next event arrives, off the request path. */
const COMPACT_BUDGET = 1024;
const CAUSES_KEPT = 64;
/** Bits of the core. */
const MEDIA = { cpu: 1, disk: 2, unknown: 4 } as const;

/** What is in force under one contract. */
interface Force {
  readonly contract: Contract;
  readonly plan: Plan;
  readonly core: Core;
  /** What key lists are collected for. */
  readonly keys: KeyListScope;
  /** What events have proven of derived hashes; null where none are made. */
  readonly proofs: HashProofs | null;
}

/** Credits what a shared store holds. Make one with `SharedCache.create`, or `createSync` where nothing can be awaited. */
export class SharedCache {
  readonly #isPending: () => boolean;
  readonly #tableSeed: bigint | undefined;
  readonly #hashing: Hashing;
  readonly #trustSeed: boolean;
  readonly #allowUnverified: boolean;
  /** Those that may serve, the preferred one first. */
  readonly #builds: ReadonlyMap<BuildName, WebAssembly.Module>;
  #core: Core | null = null;
  #force: Force | null = null;
  /** Fingerprint of the contract last given, in force or too large. */
  #given: string | null = null;
  /** Why the contract given can't be in force. */
  #unfit: Reason | null = null;
  #sources = new Set<string>();
  #asked: Source & { readonly admitted: boolean } = NOBODY;
  #generation = 0;
  #sequence: bigint | null = null;
  #stopped = false;
  #clearedForPending = false;
  #pendingThrew = false;
  #pendingFaults = 0;
  #scattered = false;
  #lastClear: string | null = null;
  #reconcile: ReconcileToken | null = null;
  readonly #messages = new Map<string, number>();
  readonly #refusals = new Map<string, number>();
  readonly #clears = new Map<string, number>();

  private constructor(options: SharedCacheOptions, builds: ReadonlyMap<BuildName, WebAssembly.Module>) {
    this.#isPending = options.isPending ?? (() => false);
    this.#tableSeed = options.tableSeed;
    this.#hashing = options.hashing ?? 'learned';
    this.#trustSeed = options.trustSeed ?? false;
    this.#allowUnverified = options.allowUnverifiedContract ?? false;
    this.#builds = builds;
  }

  /** The same as `createSync`, with what has to be compiled done beside the program. Throws likewise, into the promise. */
  static async create(options: SharedCacheOptions = {}): Promise<SharedCache> {
    await compileModules(buildsOf(options));
    return SharedCache.createSync(options);
  }

  /**
   * Compiles what the limits ask for, some milliseconds once a process; the core's memory is reserved when a contract comes.
   * @throws ConfigError `limits-edges`, `hashing`; MoonrouteError `wasm-refused`, `wasm-main-thread` (core/modules.ts).
   */
  static createSync(options: SharedCacheOptions = {}): SharedCache {
    checkHashing(options.hashing ?? 'learned');
    return new SharedCache(options, new Map(buildsOf(options).map((name) => [name, compiledModule(name)])));
  }

  /** Counts contract changes. Stamp it on work that is done later. */
  get generation(): number {
    return this.#generation;
  }
  /** Where engine hashes come from. */
  get hashing(): Hashing {
    return this.#hashing;
  }
  /** The contract in force, null when there is none. */
  get contract(): Contract | null {
    return this.#force?.contract ?? null;
  }

  /**
   * Puts a contract into force, or none. Another contract than before: everything learned goes and the generation rises. The same: only who
   * may teach changes.
   */
  updateContract(contract: Contract | null, sources: Iterable<Source> = []): void {
    this.#sources = new Set(Array.from(sources, ({ workerId, dpRank }) => publisherKey(workerId, dpRank)));
    this.#asked = NOBODY;
    const given = contract?.fingerprint ?? null;
    this.#force?.proofs?.trust.admit(this.#sources);
    if (given === this.#given) return;
    this.#given = given;
    this.#generation++;
    this.#sequence = null;
    this.#scattered = false;
    this.#unfit = null;
    this.#reconcile?.voidFor('contract-change');
    this.#force = null;
    this.#noteClear('contract-change');
    this.#lastClear = null; // of this contract there never was any residency
    if (contract === null) return;
    if (!contract.verified && !this.#allowUnverified) {
      this.#unfit = reason('contract-unverified', UNVERIFIED_TEXT);
      return;
    }
    const plan = planOf(contract, this.#hashing);
    if (plan.learned === null && plan.derived === null) {
      this.#unfit = UNFIT;
      return;
    }
    const name = fittingBuild([...this.#builds.keys()], plan.groups, plan.prefixes.length);
    if (name === null) {
      const text = `the contract has ${plan.groups} groups and ${plan.prefixes.length} prefixes; the large build holds 8 and 64. Lower limits.edges to ${DEFAULT_EDGES}.`;
      this.#unfit = reason('contract-too-large', text);
      return;
    }
    if (this.#core?.build !== name) this.#core = Core.fromModule(name, this.#builds.get(name)!);
    const core = this.#core;
    core.configure(plan, this.#tableSeed, contract.hashRule);
    const asked = { core, contract, vouched: this.#trustSeed, admitted: this.#sources };
    const proofs = plan.derived === null ? null : new HashProofs(asked);
    this.#force = { contract, plan, core, keys: listScope(plan, core), proofs };
  }

  /** Learns a stored event of a worker's rank; call it before the GPU index sees the event. Only GPU blocks teach. */
  observeStored(source: Source, stored: NormalisedStored): Learned {
    const refused = this.#whyDeaf(source) ?? whyNotLearned(stored, this.#force!.contract);
    if (refused !== null) return this.#refuse(refused, stored);
    this.#force!.proofs?.observe(source, stored);
    if (this.#force!.plan.learned === null) return DERIVED_ONLY;
    return { blocks: this.#learn(stored, [stored], 0, 1), refused: null };
  }

  /** Learns all stored events of a message: the same as observing each, and faster. Returns the blocks learned or confirmed. */
  observeMessage({ source, events }: WorkerMessage): number {
    const deaf = this.#whyDeaf(source);
    const force = this.#force;
    if (deaf === null) force!.proofs?.observeMessage(source, events);
    if (deaf === null && force!.plan.learned === null) {
      for (const stored of events) {
        const refused = stored.kind === 'stored' ? whyNotLearned(stored, force!.contract) : null;
        if (refused !== null) tally(this.#refusals, refused);
      }
      return 0;
    }
    // Events are learned in runs: those that stand right behind each other, in the list and in memory, in one form.
    let first: NormalisedStored | null = null;
    let from = 0; // where in the list the run starts
    let end = 0; // index of the hash behind it
    let room = 0; // blocks that it may still take
    let learned = 0;
    for (let i = 0; i < events.length; i++) {
      const stored = events[i]!;
      const refused = stored.kind === 'stored' ? (deaf ?? whyNotLearned(stored, force!.contract)) : null;
      if (stored.kind === 'stored' && refused === null && first !== null) {
        const { event } = stored;
        const blocks = event.blockCount;
        if (event.hashesAt === end && blocks <= room && alike(event, first.event)) {
          end += blocks;
          room -= blocks;
          continue;
        }
      }
      // What was said before is learned before what is said now has any effect.
      if (first !== null) learned += this.#learn(first, events, from, i);
      first = null;
      if (stored.kind !== 'stored') continue;
      if (refused !== null) {
        this.#refuse(refused, stored);
        continue;
      }
      first = stored;
      from = i;
      end = stored.event.hashesAt + stored.event.blockCount;
      room = force!.core.eventBlocks - stored.event.blockCount;
    }
    return first === null ? learned : learned + this.#learn(first, events, from, events.length);
  }

  /**
   * Learns the blocks of a stored event that is decoded and hashed already, of the device tier and the contract's main group. Eligible ones
   * without a namespace only: the hashes cover text, and text alone. For simulations; what came over a wire is for `observeMessage`.
   */
  observeBlocks(source: Source, blocks: IndexedBlocks): Learned {
    const learns = this.#force === null || this.#force.plan.learned !== null;
    const refused =
      this.#whyDeaf(source) ?? (learns ? null : 'derived-only') ?? (blocks.eligible ? null : 'flagged-ineligible');
    if (refused !== null) {
      tally(this.#refusals, refused);
      return { blocks: 0, refused };
    }
    const { core } = this.#force!;
    this.#compact(core);
    return { blocks: core.learnBlocks(blocks, false), refused: null };
  }

  /**
   * The source contradicts itself about decoded blocks: what was learned about them earns no credit any more, as where its message shows it. Whether
   * the source is heard.
   */
  distrustBlocks(source: Source, blocks: Pick<IndexedBlocks, 'lows' | 'at' | 'count'>): boolean {
    if (this.#whyDeaf(source) !== null || this.#force!.plan.learned === null) return false;
    this.#force!.core.distrustBlocks(blocks);
    return true;
  }

  /**
   * Applies objects that are decoded already, in their order and without a gap. For simulations, likewise. They void an open reconcile: no
   * message of theirs could be applied again on top of its key list.
   */
  applyObjects({ kind, medium, group, digests, at, count }: DecodedObjects): void {
    if (this.#stopped || this.#dropsForPending() || this.#force === null) return;
    const { core, plan } = this.#force;
    const first = plan.prefixes.findIndex((prefix) => prefix.group === group);
    if (first < 0) return;
    const next = plan.prefixes.findIndex((prefix, id) => id > first && prefix.group !== group);
    const end = next < 0 ? plan.prefixes.length : next;
    this.#compact(core);
    this.#reconcile?.voidFor('decoded-evidence');
    const removes = kind === 'removed';
    // A removal clears what a reconcile has found without its medium, as the master's do (design.md 5).
    const media = removes ? MEDIA[medium] | MEDIA.unknown : MEDIA[medium];
    core.applyObjects({ removes, media, first, end, digests, at, count });
  }

  /** Learns events `from` … `to` of the list, all of them stored ones, of which `first` is the first. */
  #learn(first: NormalisedStored, events: readonly NormalisedEvent[], from: number, to: number): number {
    const { core } = this.#force!;
    const numbers = hashedNumbers(first);
    this.#compact(core);
    return core.learnRead(numbers, events as readonly NormalisedStored[], from, to, first.namespace !== null);
  }

  /** Whether the rank hashes requests of this kind as its contract says, as far as its events have shown. False where hashes are not derived. */
  isProven({ workerId, dpRank }: Source, scope: QueryScope = {}): boolean {
    return this.#force?.proofs?.trust.proves(publisherKey(workerId, dpRank), scopeKinds(scope)) ?? false;
  }

  /**
   * Whether derived hashes answer requests of this kind for all admitted ranks, for those of them that `isProven` (lookups with `credits`
   * `proven-ranks`), or for none.
   */
  provenRanks(scope: QueryScope = {}): 'all' | 'some' | 'none' {
    const trust = this.#force?.proofs?.trust;
    if (trust === undefined || trust.refuted !== null) return 'none';
    const kinds = scopeKinds(scope);
    if (trust.proveAll(kinds)) return 'all';
    return trust.provenRanks > 0 ? 'some' : 'none';
  }

  /** The source restarted: what it has proven of its hashes was proven by another process. */
  sourceLost({ workerId, dpRank }: Source): void {
    this.#force?.proofs?.trust.forget(publisherKey(workerId, dpRank));
  }

  /** Why nothing that comes from the source is learned. */
  #whyDeaf(source: Source): NonNullable<Learned['refused']> | null {
    return this.#whyIdle() ?? (this.#admits(source) ? null : 'source-not-admitted');
  }

  /** Whether the source may teach. Events of a message come from one source, so the last answer is kept. */
  #admits({ workerId, dpRank }: Source): boolean {
    const asked = this.#asked;
    if (workerId === asked.workerId && dpRank === asked.dpRank) return asked.admitted;
    const admitted = this.#sources.has(publisherKey(workerId, dpRank));
    this.#asked = { workerId, dpRank, admitted };
    return admitted;
  }

  /**
   * Applies one message of the master's event stream, as its three frames. Never throws for what the wire brought; `generation` is the one
   * that was in force when the message was received (default: now).
   */
  applyStoreMessage(
    frames: readonly Uint8Array[],
    { generation = this.#generation }: { generation?: number } = {},
  ): StoreMessageResult {
    if (this.#stopped) return this.#fate('stopped', null);
    if (generation !== this.#generation) return this.#fate('stale-generation', null);
    let sequence: bigint;
    let payload: Uint8Array;
    try {
      ({ sequence, payload } = splitStoreFrames(frames));
    } catch (error) {
      if (!(error instanceof StoreFrameError)) throw error;
      if (error.sequence !== null) this.#sequence = error.sequence;
      this.#clear(`unreadable:${error.code}`);
      return this.#fate('unreadable', error.sequence, error.message);
    }
    const step = sequenceStep(this.#sequence, sequence);
    if (step === 'duplicate') return this.#fate('duplicate', sequence);
    this.#sequence = sequence;
    if (this.#dropsForPending()) return this.#fate('pending', sequence);
    if (this.#force === null) return this.#fate('no-contract', sequence);
    if (step === 'gap') this.#clear('gap');
    const { core } = this.#force;
    this.#compact(core);
    const outcome = core.applyPayload(payload);
    if (outcome.outcome === 'unreadable') {
      this.#noteClear('unreadable:payload');
      return this.#fate(
        'unreadable',
        sequence,
        'the payload is no MessagePack array of a timestamp and at most 4,096 events',
      );
    }
    if (outcome.outcome === 'malformed') {
      this.#noteClear(`malformed:${outcome.reason}`);
      return this.#fate('malformed', sequence, `event ${outcome.index}: ${outcome.reason}`);
    }
    this.#reconcile?.keep(sequence, core.stagedEvents(outcome.objects));
    const { objects, foreignTenant, foreignKey, clears, saidStored, saidRemoved } = outcome;
    if (clears > 0) {
      this.#lastClear = 'the master said that everything has gone';
      tally(this.#clears, 'cleared-by-master');
    }
    return {
      ...this.#fate(step === 'gap' ? 'gap-applied' : 'applied', sequence),
      objects,
      skipped: { foreignTenant, foreignKey },
      said: { stored: saidStored, removed: saidRemoved },
    };
  }

  /** The stream was interrupted, or evidence has grown too old: residency goes, and the next message has no predecessor. */
  streamLost(cause: string): void {
    this.#sequence = null;
    this.#clear(cause);
  }

  /** Opens a reconcile: from now on messages are kept, to be applied again on top of the key list. An open one is voided. */
  beginReconcile(): ReconcileToken {
    this.#reconcile?.voidFor('superseded');
    this.#reconcile = new ReconcileToken();
    if (this.#force === null) this.#reconcile.voidFor('no-contract');
    return this.#reconcile;
  }

  /** An empty key list, to be fed with the bytes of the master's. It counts under the contract that is in force now. */
  beginKeyList(): KeyList {
    const list = new KeyList(this.#force?.keys ?? null);
    if (this.#force === null) list.voidFor('no-contract');
    return list;
  }

  /**
   * Replaces residency by the master's keys and applies again what was received since `token` was made. Refused, with a reason, unless the stream
   * was unbroken around the list, and the list is of the contract in force. One step: prepare a long list before (`KeyList.prepareSome`); keys
   * given as text are judged and sorted here.
   */
  reconcile(token: ReconcileToken, keys: Iterable<string> | KeyList, watermark: ReconcileWatermark): ReconcileResult {
    const refused =
      this.#whyIdle() ??
      token.voided ??
      (token === this.#reconcile ? watermarkFault(token.firstSequence, watermark) : 'superseded');
    if (this.#reconcile === token) this.#reconcile = null;
    if (refused !== null) return { accepted: false, reason: refused };
    const { core, keys: scope } = this.#force!;
    const list = keys instanceof KeyList ? keys : this.#listOf(keys);
    const unfit = list.voided ?? (list.scope === scope ? null : 'contract-change');
    if (unfit !== null) return { accepted: false, reason: unfit };
    const older = token.removalsUpTo(BigInt(watermark.s0));
    if (older === null) return { accepted: false, reason: 'backlog' };
    const listed = list.prepare();
    const placed = core.replaceResidency(listed);
    this.#clearedForPending = false;
    core.reapply(older);
    for (const staged of token.keptBehind(BigInt(watermark.s0))) core.reapply(staged);
    if (placed === 0) this.#lastClear = "a reconcile found nothing of this contract in the master's key list";
    // With nothing received, the list stands for everything up to s0 (a lost tail of the stream too): next comes the one behind it.
    if (token.firstSequence === null) this.#sequence = BigInt(watermark.s0);
    const { foreign, malformed } = list;
    return { accepted: true, placed, leftOut: listed.objects - placed, foreign, malformed };
  }

  #listOf(keys: Iterable<string>): KeyList {
    const list = this.beginKeyList();
    for (const key of keys) list.addKey(key);
    return list;
  }

  /** Ends all hints; residency is forgotten. */
  stop(): void {
    this.streamLost('stopped');
    this.#stopped = true;
  }

  /** What vLLM would restore from the store for this prompt. Zero when in doubt; `explain` says why. */
  lookup(query: CacheQuery): CacheHits {
    if (this.#whyNot(query) !== null) return NO_HITS;
    const { core, plan, proofs } = this.#force!;
    const { localHashes, tokens, tokenCount, blockSize, loraName, cacheSalt } = query;
    const derives = whyNotByDerived(query, proofs) === null;
    if (!derives && whyNotByLearned(query, plan) !== null) return NO_HITS;
    this.#scattered = true;
    if (derives) {
      const given = tokens!.subarray(0, tokenCount);
      return this.#hits(core.lookupDerived(given, tokenCount, extraKeysOf(query)), plan.derived!);
    }
    const blocks =
      localHashes === undefined && tokens !== undefined
        ? core.lookupTokens(tokens.subarray(0, tokenCount), tokenCount, blockSize, seedOf(loraName, cacheSalt))
        : core.lookup(this.#loadQuery(query), tokenCount);
    return this.#hits(blocks, plan.learned!);
  }

  /** The same hits with the reasons why they are not more. Changes nothing but what has been derived; slower. */
  explain(query: CacheQuery): Explanation {
    const refused = this.#whyNot(query);
    if (refused !== null) return { hits: NO_HITS, reasons: [refused] };
    const { core, contract, plan, proofs } = this.#force!;
    const notDerived = whyNotByDerived(query, proofs);
    const notLearned = notDerived === null ? null : whyNotByLearned(query, plan);
    if (notDerived !== null && notLearned !== null) {
      const learning = plan.learned === null ? [] : [notLearned];
      return { hits: NO_HITS, reasons: proofs === null ? learning : [notDerived, ...learning] };
    }
    const derived = notDerived === null;
    const evaluation = derived ? plan.derived! : plan.learned!;
    const { tokenCount } = query;
    const blocks = derived
      ? core.prepareDerived(query.tokens!.subarray(0, tokenCount), extraKeysOf(query))
      : this.#loadQuery(query);
    const explanation = core.explain(blocks, tokenCount, derived ? 'derived' : 'learned');
    const reasons = hitReasons({
      plan,
      evaluation,
      derived,
      mainBlockSize: contract.mainEventBlockSize,
      kinds: contract.groups.map(({ kind }) => kind),
      hashBlockSize: contract.hashBlockSize,
      explanation,
      blocks,
      tokens: tokenCount,
      requestBlocks: core.requestBlocks,
      lastClear: this.#lastClear,
      isEmpty: () => core.digests === 0,
    });
    if (notDerived !== null && proofs !== null) reasons.push(notDerived);
    return { hits: this.#hits(explanation.hit, evaluation), reasons };
  }

  /** Blocks of an evaluation as hits. */
  #hits(blocks: number, { blockSize }: Evaluation): CacheHits {
    const tokens = blocks * blockSize;
    return { blocks: Math.floor(tokens / this.#force!.contract.mainEventBlockSize), tokens };
  }

  /** What is resident, by store group; empty without a contract. Reads every digest: not for hot paths. */
  census(): GroupCensus[] {
    return this.#force?.core.census() ?? [];
  }

  stats(): CacheStats {
    return {
      generation: this.#generation,
      core: this.#force?.core.stats() ?? null,
      build: this.#force?.core.build ?? null,
      messages: Object.fromEntries(this.#messages),
      refusals: Object.fromEntries(this.#refusals),
      clears: Object.fromEntries(this.#clears),
      pendingFaults: this.#pendingFaults,
      derivation: this.#force?.proofs?.stats() ?? null,
    };
  }

  #whyIdle(): 'stopped' | 'pending' | 'no-contract' | null {
    if (this.#stopped) return 'stopped';
    if (this.#pending()) return 'pending';
    return this.#force === null ? 'no-contract' : null;
  }

  /** Whether contract changes are unread. Where the caller's function can't say, they are. */
  #pending(): boolean {
    this.#pendingThrew = false;
    try {
      return this.#isPending();
    } catch {
      this.#pendingThrew = true;
      this.#pendingFaults++;
      return true;
    }
  }

  /** Whether news of the store are dropped, for the contract is pending: then what was resident is no longer known. Cleared once. */
  #dropsForPending(): boolean {
    if (!this.#pending()) {
      this.#clearedForPending = false;
      return false;
    }
    if (!this.#clearedForPending) this.#clear('pending');
    this.#clearedForPending = true;
    this.#reconcile?.voidFor('pending');
    return true;
  }

  #whyNot(query: CacheQuery): Reason | null {
    const idle = this.#whyIdle();
    if (idle === 'no-contract' && this.#unfit !== null) return this.#unfit;
    if (idle === 'pending' && this.#pendingThrew) return reason(idle, PENDING_THREW);
    if (idle !== null) return reason(idle, IDLE_TEXT[idle]);
    if (!query.eligible)
      return reason('ineligible', 'The request is not proven to be plain text under a known LoRA name and namespace.');
    if (badScope(query.loraName, query.cacheSalt) || badScope(null, query.rawSalt))
      return reason('ineligible', 'The LoRA name or the cache namespace is too long, or no well-formed text.');
    const { tokenCount } = query;
    if (!(Number.isInteger(tokenCount) && tokenCount > 0 && tokenCount <= MAX_TOKENS))
      return reason('empty-prompt', `tokenCount is ${tokenCount}.`);
    return null;
  }

  #loadQuery({ localHashes, tokens, tokenCount, blockSize, loraName, cacheSalt }: CacheQuery): number {
    const { core } = this.#force!;
    if (localHashes !== undefined) return core.loadLocals(localHashes);
    if (tokens === undefined) return 0;
    return core.hashTokens(tokens.subarray(0, tokenCount), blockSize, seedOf(loraName, cacheSalt));
  }

  #compact(core: Core): void {
    if (this.#scattered) core.compact(COMPACT_BUDGET);
    this.#scattered = false;
  }

  #clear(cause: string): void {
    this.#force?.core.clearResidency();
    this.#noteClear(cause);
  }

  #noteClear(cause: string): void {
    this.#reconcile?.voidFor(cause);
    this.#lastClear = cause;
    tally(this.#clears, cause);
  }

  /** Counts the refusal. A source that contradicts itself costs the credit of what was learned about those blocks. */
  #refuse(refused: NonNullable<Learned['refused']>, { event, contradicts }: NormalisedStored): Learned {
    tally(this.#refusals, refused);
    if (contradicts && !DEAF.has(refused)) {
      const numbers = event.place(sharedNumbers());
      this.#force!.core.distrust(numbers, event.hashesAt, event.blockCount, event.wholeDigests);
    }
    return { blocks: 0, refused };
  }

  #fate(fate: StoreMessageFate, sequence: bigint | null, detail: string | null = null): StoreMessageResult {
    tally(this.#messages, fate);
    const nothing = { objects: 0, skipped: { foreignTenant: 0, foreignKey: 0 }, said: { stored: 0, removed: 0 } };
    return { fate, sequence, ...nothing, detail };
  }
}

/** The builds that may serve a cache, the preferred one first. Throws ConfigError `limits-edges`. */
export function buildsOf({ limits }: SharedCacheOptions): BuildName[] {
  return candidateBuilds(limits?.edges ?? DEFAULT_EDGES);
}

/** What a key list needs to know of a contract and its core. */
function listScope({ prefixes }: Plan, core: Core): KeyListScope {
  return {
    prefixes: new KeyPrefixes(prefixes.map(({ text }) => text)),
    digestCap: core.digestCap,
    warm: (words, first, end) => core.warm(words, first, end),
  };
}

/** Whether `next` was hashed together with the event before it (and so has hashes of the same form), in the message of `first`. */
function alike(next: StoredEvent, first: StoredEvent): boolean {
  return next.follows && next.numbers === first.numbers;
}

const IDLE_TEXT: Record<'stopped' | 'pending' | 'no-contract', string> = {
  stopped: 'The cache was stopped.',
  pending: 'Contract changes of the workers are being read.',
  'no-contract': 'No validated contract is in force: no worker published one, or workers disagree.',
} satisfies Partial<Record<ReasonCode, string>>;

const DERIVED_ONLY: Learned = { blocks: 0, refused: 'derived-only' };
const PENDING_THREW = 'isPending threw, so that contract changes count as unread. Mend that function.';

/** Counts under `key`; causes may come from callers, so their number is bounded. */
function tally(counts: Map<string, number>, key: string): void {
  const name = counts.has(key) || counts.size < CAUSES_KEPT ? key : 'other';
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
