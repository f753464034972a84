// What the doctor collects, and all that its checks look at: addresses as configured, what answered there, and tallies of what was heard. Token
// ids stand here for the checks of hashes alone; salts are counted and never kept.
import type { Contract, Hashing } from '../../contract/descriptor.js';
import type { MasterStatus } from '../../live/master-http.js';
import type { MasterEndpoint } from '../../live/masters.js';
import type { LossCause } from '../../live/zmtp/socket.js';
import type { ServerConfig } from '../config.js';
import type { WorkerSpec } from '../types.js';

/** What is examined: the part of a configuration that names others. */
export interface DoctorTarget {
  /** The model as configured; null for whatever the first worker lists. */
  readonly model: string | null;
  /** Tokens of a block. */
  readonly blockSize: number;
  readonly workers: readonly WorkerSpec[];
  readonly sharedCache: {
    readonly type: 'none' | 'mooncake-store';
    readonly masters: readonly MasterEndpoint[];
    /** Where the router gets engine hashes from, and so what it asks of contracts. */
    readonly hashing: Hashing;
    readonly trustSeed: boolean;
    /** Whether contracts count that no engine has vouched for. */
    readonly allowUnverifiedContract: boolean;
  };
  /** How a client's salt reaches the workers; raw salts get no shared credit. */
  readonly saltMode: 'prefixed' | 'raw';
  /** The event plane; null, or left out, without one. */
  readonly eventPlane?: ServerConfig['eventPlane'];
  /** Whether prompts are tokenised here. */
  readonly tokenizer: { readonly file: string; readonly chatTemplate: string | null } | null;
}

/** Everything that was seen. */
export interface Evidence {
  readonly target: DoctorTarget;
  /** Listened for so long. */
  readonly seconds: number;
  readonly workers: readonly WorkerEvidence[];
  readonly store: StoreEvidence | null;
  /** Ranks of workers that have a plane. Default none. */
  readonly plane?: readonly PlaneRankEvidence[];
}

/** What a rank's publisher answered on the event plane. */
export interface PlaneRankEvidence {
  /** The worker, and its rank where it has several. */
  readonly subject: string;
  readonly planeId: string;
  /** Null where it did not answer. */
  readonly lastEventId: bigint | null;
  readonly fault: string | null;
}

export interface WorkerEvidence {
  readonly spec: WorkerSpec;
  /** Why its HTTP could not be used; null when it answers `/health`. */
  readonly httpFault: string | null;
  /** What `/v1/models` lists; null where that was not to be had. */
  readonly models: { readonly base: readonly string[]; readonly adapters: readonly string[] } | null;
  readonly contract: ContractEvidence;
  readonly ranks: readonly RankEvidence[];
  /** Answers to the same texts and chats as every other worker was asked. */
  readonly tokenizing: readonly TokenizingEvidence[];
}

/** A worker's contract: what it publishes, held against the rules. */
export interface ContractEvidence {
  readonly contract: Contract | null;
  /** Stable code and words of why there is none; both null where none was configured, or it is good. */
  readonly code: string | null;
  readonly fault: string | null;
}

/** One rank's event stream. */
export interface RankEvidence {
  readonly dpRank: number;
  /** Null where the worker is configured without events. */
  readonly events: PortEvidence | null;
  /** Null where it is configured without replay. */
  readonly replay: ReplayEvidence | null;
  readonly heard: RankTally;
  /** What became of the small completion; null when none was sent. */
  readonly probe: { readonly fault: string | null } | null;
}

/** What listens at a port that was taken for an event socket. */
export interface PortEvidence {
  readonly endpoint: string;
  readonly connected: boolean;
  /** The last loss, or failed attempt; null when there was none. */
  readonly lost: { readonly cause: LossCause; readonly detail: string } | null;
  readonly found: PortKind;
}

export type PortKind =
  | 'events' //  a PUB socket
  | 'http' //    an HTTP server
  | 'replay' //  a ROUTER, as replays have
  | 'nobody' //  nothing listens
  | 'other'; //  something that does not speak, or another protocol, or a way that is closed

export interface ReplayEvidence {
  readonly endpoint: string;
  readonly found: PortKind;
  /** It answered a question for batches to come with the end marker. */
  readonly answered: boolean;
  readonly detail: string | null;
}

/** A block of a prompt's start, whose hash follows from its tokens. */
export interface FirstBlocks {
  readonly tokens: Uint32Array;
  readonly blockSize: number;
  /** Low 64 bits of the hashes of all its blocks. */
  readonly hashes: BigUint64Array;
}

/** What a rank's messages said. */
export interface RankTally {
  readonly messages: number;
  /** Messages, and events of others, that could not be read, by code; and one of them in words. */
  readonly unreadable: Readonly<Record<string, number>>;
  readonly rejected: Readonly<Record<string, number>>;
  readonly faultText: string | null;
  /** Numbers skipped between two messages. */
  readonly missed: number;
  readonly topics: readonly string[];
  /** Messages by the rank that they name. */
  readonly dpRanks: Readonly<Record<number, number>>;
  /** Stored events of the main group on the device: those that count. */
  readonly stored: number;
  readonly eligible: number;
  /** Why others of them may not teach the shared cache. */
  readonly ineligible: Readonly<Record<string, number>>;
  /** Why events mean nothing to a router. */
  readonly dropped: Readonly<Record<string, number>>;
  /** Of the events that count, by tokens of a block. */
  readonly blockSizes: Readonly<Record<number, number>>;
  readonly hashForms: { readonly integers: number; readonly digests: number };
  /** Events by the adapter that they name. */
  readonly adapters: Readonly<Record<string, number>>;
  /** First blocks with a text among their extra keys that is neither adapter nor tagged salt: by what it seems to be. */
  readonly untagged: {
    readonly salts: number;
    readonly images: number;
    readonly adapters: Readonly<Record<string, number>>;
  };
  /** First blocks with a salt tagged as it should be. */
  readonly tagged: number;
  /** Low 64 bits of eligible blocks' hashes; a bounded sample. */
  readonly hashes: readonly bigint[];
  /** Likewise, of prompts without adapter and salt. */
  readonly firstBlocks: readonly FirstBlocks[];
}

/** The same question to a worker's `/tokenize` and, where there is one, to the tokenizer here. */
export interface TokenizingEvidence {
  readonly sample: string;
  readonly kind: 'text' | 'chat';
  readonly worker: readonly number[] | null;
  readonly workerFault: string | null;
  /** Null where nothing tokenises here. */
  readonly local: readonly number[] | null;
  readonly localFault: string | null;
}

export interface StoreEvidence {
  readonly masters: readonly MasterEvidence[];
  readonly keys: KeyEvidence | null;
  /** Why there is no key list. */
  readonly keysFault: string | null;
  readonly drift: DriftEvidence | null;
}

export interface MasterEvidence {
  readonly endpoint: MasterEndpoint;
  /** Null where its HTTP is not configured, or did not answer. */
  readonly status: MasterStatus | null;
  readonly httpFault: string | null;
  readonly events: PortEvidence;
  readonly heard: MasterTally;
  /** Sequence of its counters when the listening began and ended; null where they were not to be had. */
  readonly sequenceBefore: bigint | null;
  readonly sequenceAfter: bigint | null;
}

/** What a master's messages said. */
export interface MasterTally {
  readonly messages: number;
  readonly unreadable: Readonly<Record<string, number>>;
  readonly faultText: string | null;
  /** Numbers skipped between two messages. */
  readonly missed: number;
  readonly lastSequence: bigint | null;
  readonly stored: number;
  readonly removed: number;
  readonly cleared: number;
  /** Events without an object key. */
  readonly keyless: number;
  /** Events by tenant. */
  readonly tenants: Readonly<Record<string, number>>;
}

/** Keys seen under one prefix, which is all before the last `@`. */
export interface PrefixCount {
  readonly prefix: string;
  readonly keys: number;
}

/** The master's keys, held against the prefixes that the contracts require. */
export interface KeyEvidence {
  readonly total: number;
  readonly required: readonly PrefixCount[];
  /** Under no required prefix, the most frequent first; a bounded number of prefixes. */
  readonly foreign: readonly PrefixCount[];
  /** Workers' hashes that are the end of a key under a required prefix. */
  readonly met: ReadonlySet<bigint>;
  /** By model and cache prefix of derived contracts. */
  readonly scopes: readonly PrefixScope[];
}

/** What the store holds under one model and cache prefix: that of a contract which no engine has vouched for. */
export interface PrefixScope {
  /** Cache prefix and model, as they stand in keys. */
  readonly head: string;
  /** Different digests, up to as many as are enough. */
  readonly digests: number;
  /** Every prefix that a digest stands behind, in their order; a bounded number. */
  readonly prefixes: readonly string[];
}

/** How the stream and two key lists around it agree. */
export interface DriftEvidence {
  /** Keys that should be there and are not listed, and the reverse. */
  readonly missing: number;
  readonly unannounced: number;
  /** Keys that were judged. */
  readonly judged: number;
  /** Why it could not be judged; null when it was. */
  readonly unjudged: string | null;
}
