// What is read of router, streams, registry and prompts whenever metrics are asked for: each family with its name, meaning, labels and source. One
// table, so that nothing is shown that is not listed here (or, of requests as they end, in metrics-requests.ts).
import type { LiveStatus } from '../live/live-streams.js';
import type { PlaneStatus } from '../live/plane/route/plane-streams.js';
import type { PlaneRankStatus } from '../live/plane/route/rank-stream.js';
import type { WorkerStreamStatus } from '../live/worker-stream.js';
import type { RouterStats } from '../router/router.js';
import type { RankView, WorkerView } from '../router/worker-views.js';
import { DERIVATION_STATES, type DerivationView } from './derivation.js';
import { workerLabel } from './metrics-labels.js';
import type { Sample } from './metrics-monotone.js';
import type { PromptStats, RegisteredWorker } from './types.js';

/** Everything as it stands at one moment. */
export interface Snapshot {
  readonly stats: RouterStats;
  readonly workers: readonly WorkerView[];
  readonly live: LiveStatus;
  /** Null without an event plane. */
  readonly plane: PlaneStatus | null;
  readonly registered: readonly RegisteredWorker[];
  readonly prompts: PromptStats;
  readonly derivation: DerivationView;
}

export type Label = 'worker' | 'dp_rank' | 'tier' | 'reason' | 'cause' | 'code' | 'outcome' | 'source' | 'state';

/** One metric. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly kind: 'counter' | 'gauge';
  readonly labels: readonly Label[];
  readonly read: (seen: Snapshot) => Iterable<Sample>;
}

type StoreStreamStatus = NonNullable<LiveStatus['store']>;
type Tally = Readonly<Record<string, number>>;

/** A family without labels; nothing is shown where there is nothing to read. */
function one(
  kind: Family['kind'],
  name: string,
  help: string,
  value: (seen: Snapshot) => number | null | undefined,
): Family {
  return {
    name,
    help,
    kind,
    labels: [],
    read: (seen) => {
      const read = value(seen) ?? null;
      return read === null ? [] : [{ labels: [], value: read }];
    },
  };
}

/** A counter by code. */
function tally(name: string, help: string, label: Label, counts: (seen: Snapshot) => Tally | null | undefined): Family {
  return { name, help, kind: 'counter', labels: [label], read: (seen) => byCode([], counts(seen) ?? {}) };
}

/** One series a rank of the router. */
function rankGauge(name: string, help: string, value: (rank: RankView) => number): Family {
  return {
    name,
    help,
    kind: 'gauge',
    labels: ['worker', 'dp_rank'],
    read: ({ workers }) =>
      workers.flatMap(({ id, ranks }) =>
        ranks.map((rank) => ({ labels: [workerLabel(id), String(rank.dpRank)], value: value(rank) })),
      ),
  };
}

/** One series a stream of a worker's rank. */
function streamOf(
  kind: Family['kind'],
  name: string,
  help: string,
  value: (stream: WorkerStreamStatus) => number | bigint | null,
): Family {
  return {
    name,
    help,
    kind,
    labels: ['worker', 'dp_rank'],
    read: ({ live }) =>
      live.workers.flatMap((stream) => {
        const read = value(stream);
        return read === null ? [] : [{ labels: rankLabels(stream), value: Number(read) }];
      }),
  };
}

/** The same by cause. */
function streamTally(name: string, help: string, counts: (stream: WorkerStreamStatus) => Tally): Family {
  return {
    name,
    help,
    kind: 'counter',
    labels: ['worker', 'dp_rank', 'cause'],
    read: ({ live }) => live.workers.flatMap((stream) => byCode(rankLabels(stream), counts(stream))),
  };
}

/** One series a rank of the event plane. */
function planeRank(kind: Family['kind'], name: string, help: string, value: (rank: PlaneRankStatus) => number): Family {
  return {
    name,
    help,
    kind,
    labels: ['worker', 'dp_rank'],
    read: ({ plane }) => plane?.ranks.map((rank) => ({ labels: rankLabels(rank), value: value(rank) })) ?? [],
  };
}

/** The same by code. */
function planeTally(name: string, help: string, label: Label, counts: (rank: PlaneRankStatus) => Tally): Family {
  return {
    name,
    help,
    kind: 'counter',
    labels: ['worker', 'dp_rank', label],
    read: ({ plane }) => plane?.ranks.flatMap((rank) => byCode(rankLabels(rank), counts(rank))) ?? [],
  };
}

function workerGauge(name: string, help: string, value: (worker: RegisteredWorker) => boolean): Family {
  return {
    name,
    help,
    kind: 'gauge',
    labels: ['worker'],
    read: ({ registered }) =>
      registered.map((worker) => ({ labels: [workerLabel(worker.id)], value: Number(value(worker)) })),
  };
}

/** Of a thing with named states the number in each, those with none as well, so that an alert on a state finds its series. */
function states(
  name: string,
  help: string,
  all: readonly string[],
  now: (seen: Snapshot) => readonly string[],
): Family {
  return {
    name,
    help,
    kind: 'gauge',
    labels: ['state'],
    read: (seen) => {
      const found = now(seen);
      return all.map((state) => ({ labels: [state], value: found.filter((one) => one === state).length }));
    },
  };
}

function store(
  kind: Family['kind'],
  name: string,
  help: string,
  value: (store: StoreStreamStatus) => number | bigint | null | undefined,
): Family {
  return one(kind, name, help, ({ live }) => {
    const read = live.store === null ? null : (value(live.store) ?? null);
    return read === null ? null : Number(read);
  });
}

const counter = (...[name, help, value]: Parameters3): Family => one('counter', name, help, value);
const gauge = (...[name, help, value]: Parameters3): Family => one('gauge', name, help, value);
type Parameters3 = [name: string, help: string, value: (seen: Snapshot) => number | null | undefined];

const SECOND = 1000;

/** How hits stand to what could be had. Counted by the router: repeated decisions and those of POST /route are among them. */
const HITS: readonly Family[] = [
  counter('moonroute_decisions_total', 'Routing decisions', ({ stats }) => stats.decisions.decisions),
  counter(
    'moonroute_request_blocks_total',
    'Blocks of the prompts decided on: the denominator of reachable and achieved blocks',
    ({ stats }) => stats.decisions.requestBlocks,
  ),
  counter(
    'moonroute_reachable_blocks_total',
    'Blocks that the best candidate of each decision would not have had to compute: what no routing could beat',
    ({ stats }) => stats.decisions.bestReachableBlocks,
  ),
  counter(
    'moonroute_achieved_blocks_total',
    'Blocks that the chosen rank of each decision does not have to compute',
    ({ stats }) => stats.decisions.achievedBlocks,
  ),
  counter(
    'moonroute_shared_credit_blocks_total',
    'Blocks of the shared store that decisions counted on',
    ({ stats }) => stats.decisions.sharedBlocks,
  ),
  tally(
    'moonroute_zero_shared_credit_total',
    'Decisions without shared credit, by reason',
    'reason',
    ({ stats }) => stats.decisions.zeroCredit,
  ),
  counter(
    'moonroute_unroutable_requests_total',
    'Requests that no worker could serve',
    ({ stats }) => stats.decisions.noWorkers,
  ),
  counter(
    'moonroute_fallback_decisions_total',
    'Decisions by load, since the policy priced nobody',
    ({ stats }) => stats.decisions.fallbacks,
  ),
  counter(
    'moonroute_all_resting_decisions_total',
    'Decisions among resting ranks, since all rested',
    ({ stats }) => stats.decisions.allResting,
  ),
  tally(
    'moonroute_policy_faults_total',
    'Candidates that the policy failed to price',
    'cause',
    ({ stats }) => stats.decisions.policyFaultsBy,
  ),
  counter(
    'moonroute_feedback_strikes_total',
    'Requests for which an engine restored less than was credited',
    ({ stats }) => stats.feedback.strikes,
  ),
  counter(
    'moonroute_feedback_withholdings_total',
    'Times that credit for a prefix was withheld for a while',
    ({ stats }) => stats.feedback.withholdings,
  ),
  gauge(
    'moonroute_feedback_withheld_prefixes',
    'Prefixes whose credit is withheld now',
    ({ stats }) => stats.feedback.withheld,
  ),
];

const PROMPTS: readonly Family[] = [
  tally(
    'moonroute_prompts_total',
    'Prompts, by where their tokens came from',
    'source',
    ({ prompts }) => prompts.bySource,
  ),
  tally(
    'moonroute_unproven_prompts_total',
    'Prompts not proven to be text alone, or not tokenised, by reason',
    'reason',
    ({ prompts }) => prompts.notProven,
  ),
  states(
    'moonroute_local_tokenizer_state',
    '1 for the state of the local tokenizer',
    ['none', 'unverified', 'agrees', 'disagrees'],
    ({ prompts }) => [prompts.local.state],
  ),
  gauge('moonroute_token_cache_entries', 'Prompts whose tokens are kept', ({ prompts }) => prompts.cache.entries),
  counter(
    'moonroute_token_cache_hits_total',
    'Prompts whose tokens were kept from before',
    ({ prompts }) => prompts.cache.hits,
  ),
  counter(
    'moonroute_token_cache_misses_total',
    'Prompts whose tokens had to be made',
    ({ prompts }) => prompts.cache.misses,
  ),
];

const WORKERS: readonly Family[] = [
  workerGauge('moonroute_worker_healthy', '1 while the worker answers its health check', ({ healthy }) => healthy),
  workerGauge(
    'moonroute_worker_contract_fault',
    '1 while the worker has no usable contract',
    ({ contractFault }) => contractFault !== null,
  ),
  {
    name: 'moonroute_worker_draining',
    help: '1 while the worker gets no new requests',
    kind: 'gauge',
    labels: ['worker'],
    read: ({ workers }) => workers.map(({ id, draining }) => ({ labels: [workerLabel(id)], value: Number(draining) })),
  },
  rankGauge('moonroute_rank_active_requests', 'Requests that the rank serves', ({ load }) => load.activeRequests),
  rankGauge(
    'moonroute_rank_prefill_tokens',
    'Prompt tokens that the rank has yet to prefill',
    ({ load }) => load.prefillTokens,
  ),
  rankGauge(
    'moonroute_rank_decode_blocks',
    'KV blocks of the requests that the rank serves',
    ({ load }) => load.decodeBlocks,
  ),
  rankGauge(
    'moonroute_rank_foreign_active_requests',
    'Requests that other routers have sent to the rank, as they report',
    ({ foreignLoad }) => foreignLoad.activeRequests,
  ),
  rankGauge(
    'moonroute_rank_foreign_prefill_tokens',
    'Prompt tokens of other routers’ requests that the rank has yet to prefill',
    ({ foreignLoad }) => foreignLoad.prefillTokens,
  ),
  rankGauge(
    'moonroute_rank_foreign_decode_blocks',
    'KV blocks of other routers’ requests that the rank serves',
    ({ foreignLoad }) => foreignLoad.decodeBlocks,
  ),
  rankGauge('moonroute_rank_resting', '1 while the rank is left out, for its last requests failed', ({ resting }) =>
    Number(resting),
  ),
  rankGauge(
    'moonroute_rank_admitted',
    '1 while the rank is under the contract in force, and so teaches and gets shared credit',
    ({ admission }) => Number(admission === 'admitted'),
  ),
  rankGauge(
    'moonroute_rank_prefill_tokens_per_second',
    'Prefill speed that the ttft policy believes',
    ({ rates }) => rates.prefillTokensPerSecond,
  ),
  rankGauge(
    'moonroute_rank_fetch_bytes_per_second',
    'Speed of fetches from the store that the ttft policy believes',
    ({ rates }) => rates.fetchBytesPerSecond,
  ),
  gauge('moonroute_contract_ranks', 'Worker ranks of the router', ({ stats }) => stats.contracts.ranks),
  gauge(
    'moonroute_contract_admitted_ranks',
    'Ranks under the contract in force',
    ({ stats }) => stats.contracts.admitted,
  ),
  gauge('moonroute_contract_in_force', '1 while a contract is in force', ({ stats }) =>
    Number(stats.contracts.reason === null),
  ),
  counter(
    'moonroute_rank_failures_total',
    'Requests that failed by their rank’s fault',
    ({ stats }) => stats.health.failures,
  ),
  counter(
    'moonroute_rank_rests_total',
    'Times that a rank was left out for a while',
    ({ stats }) => stats.health.rests,
  ),
];

const LEASES: readonly Family[] = [
  gauge('moonroute_open_leases', 'Requests under way', ({ stats }) => stats.leases.open),
  tally('moonroute_leases_total', 'Leases, by how they ended', 'outcome', ({ stats: { leases } }) => ({
    completed: leases.completed,
    failed: leases.failed,
    cancelled: leases.cancelled,
    abandoned: leases.abandoned,
  })),
  counter(
    'moonroute_untracked_leases_total',
    'Requests without load accounting, for too many were open',
    ({ stats }) => stats.leases.untracked,
  ),
  tally(
    'moonroute_ignored_lease_reports_total',
    'Reports to leases that did not count',
    'reason',
    ({ stats: { leases } }) => ({
      late: leases.late,
      malformed: leases.malformed,
      orphaned: leases.orphaned,
    }),
  ),
];

const STREAMS: readonly Family[] = [
  streamOf('gauge', 'moonroute_stream_connected', '1 while the rank’s event stream is connected', ({ connected }) =>
    Number(connected),
  ),
  streamOf(
    'gauge',
    'moonroute_stream_sequence',
    'Sequence of the batch applied last',
    ({ lastSequence }) => lastSequence,
  ),
  streamOf('gauge', 'moonroute_stream_queued_messages', 'Messages that wait to be looked at', ({ queued }) => queued),
  streamOf('gauge', 'moonroute_stream_replaying', '1 while missed batches are being asked for', ({ replay }) =>
    Number(replay === 'running'),
  ),
  streamOf('counter', 'moonroute_stream_batches_total', 'Batches applied', ({ counts }) => counts.applied),
  streamOf(
    'counter',
    'moonroute_stream_replayed_batches_total',
    'Of those, batches that a replay brought',
    ({ counts }) => counts.replayed,
  ),
  streamOf(
    'counter',
    'moonroute_stream_duplicates_total',
    'Batches that came again',
    ({ counts }) => counts.duplicates,
  ),
  streamOf(
    'counter',
    'moonroute_stream_gaps_total',
    'Times that live batches did not follow on each other',
    ({ counts }) => counts.gaps,
  ),
  streamOf(
    'counter',
    'moonroute_stream_replays_total',
    'Questions to the replay socket',
    ({ counts }) => counts.replays,
  ),
  streamOf(
    'counter',
    'moonroute_stream_replay_failures_total',
    'Replays that were given up',
    ({ counts }) => counts.replayFailures,
  ),
  streamOf(
    'counter',
    'moonroute_stream_restarts_total',
    'Restarts of the worker that were noticed',
    ({ counts }) => counts.restarts,
  ),
  streamOf(
    'counter',
    'moonroute_stream_pauses_total',
    'Times that the socket had to wait for the router',
    ({ pauses }) => pauses,
  ),
  streamTally(
    'moonroute_stream_rebuilds_total',
    'Times that the rank’s index part was emptied',
    ({ rebuilds }) => rebuilds,
  ),
  streamTally('moonroute_stream_losses_total', 'Connections lost, and attempts that failed', ({ losses }) => losses),
  tally(
    'moonroute_worker_messages_total',
    'Messages of workers, by what became of them',
    'outcome',
    ({ stats }) => stats.gpuEvents.messages,
  ),
  tally(
    'moonroute_unreadable_worker_messages_total',
    'Messages of workers that could not be read',
    'cause',
    ({ stats }) => stats.events.unreadable,
  ),
  tally(
    'moonroute_rejected_events_total',
    'Events of workers that could not be read',
    'cause',
    ({ stats }) => stats.events.rejected,
  ),
  tally(
    'moonroute_ineligible_events_total',
    'Stored events that may not teach the shared cache',
    'reason',
    ({ stats }) => stats.events.ineligible,
  ),
  tally(
    'moonroute_unindexed_events_total',
    'Stored events that the index did not take whole',
    'cause',
    ({ stats }) => stats.gpuEvents.notIndexed,
  ),
  counter('moonroute_stored_events_total', 'Stored events of workers', ({ stats }) => stats.events.stored),
  counter(
    'moonroute_learned_blocks_total',
    'Blocks whose engine hashes were learned or confirmed',
    ({ stats }) => stats.gpuEvents.learnedBlocks,
  ),
  counter('moonroute_indexed_blocks_total', 'Blocks that the index took', ({ stats }) => stats.gpuEvents.storedBlocks),
  counter(
    'moonroute_removed_blocks_total',
    'Blocks taken out of the index',
    ({ stats }) => stats.gpuEvents.removedBlocks,
  ),
];

/** The event plane: nothing is shown without one. */
const PLANE: readonly Family[] = [
  one('gauge', 'moonroute_plane_connected', '1 while all connections of the event plane stand', ({ plane }) =>
    plane === null ? null : Number(plane.trouble === null),
  ),
  tally(
    'moonroute_plane_notices_total',
    'What the event plane’s transport told of itself',
    'cause',
    ({ plane }) => plane?.notices,
  ),
  one(
    'counter',
    'moonroute_plane_foreign_batches_total',
    'Batches of ranks that this router does not have',
    ({ plane }) => plane?.foreign,
  ),
  tally('moonroute_plane_events_total', 'Events of the plane, by what became of them', 'outcome', ({ stats, plane }) =>
    plane === null ? null : stats.planeEvents.events,
  ),
  tally(
    'moonroute_plane_untaught_events_total',
    'Eligible stored events of the plane that taught nothing',
    'reason',
    ({ stats, plane }) => (plane === null ? null : stats.planeEvents.notTaught),
  ),
  planeRank('gauge', 'moonroute_plane_rank_warm', '1 while the rank’s contents are known whole', ({ warm }) =>
    Number(warm),
  ),
  planeRank(
    'gauge',
    'moonroute_plane_rank_lag_events',
    'Events that were heard of and are not applied',
    ({ lag }) => lag,
  ),
  planeRank(
    'gauge',
    'moonroute_plane_rank_waiting_events',
    'Live events that wait for a recovery',
    ({ buffered }) => buffered,
  ),
  planeRank('counter', 'moonroute_plane_rank_applied_events_total', 'Events applied', ({ counts }) => counts.applied),
  planeRank(
    'counter',
    'moonroute_plane_rank_recovered_events_total',
    'Of the events applied, those that a recovery brought',
    ({ counts }) => counts.recovered,
  ),
  planeRank(
    'counter',
    'moonroute_plane_rank_duplicate_events_total',
    'Events that came twice',
    ({ counts }) => counts.duplicates,
  ),
  planeRank(
    'counter',
    'moonroute_plane_rank_dropped_events_total',
    'Live events dropped while they waited for a recovery',
    ({ counts }) => counts.dropped,
  ),
  planeRank('counter', 'moonroute_plane_rank_gaps_total', 'Times that events were missed', ({ counts }) => counts.gaps),
  planeRank(
    'counter',
    'moonroute_plane_rank_lives_total',
    'Publishers that were seen to begin anew',
    ({ counts }) => counts.lives,
  ),
  planeTally('moonroute_plane_recoveries_total', 'Recoveries begun, by cause', 'cause', ({ recoveries }) => recoveries),
  planeTally(
    'moonroute_plane_recovery_attempts_total',
    'What attempts to recover came to',
    'outcome',
    ({ outcomes }) => outcomes,
  ),
  planeTally(
    'moonroute_plane_rebuilds_total',
    'Times that the rank’s index part was emptied',
    'cause',
    ({ rebuilds }) => rebuilds,
  ),
  planeTally(
    'moonroute_plane_unreadable_total',
    'Batches and events that could not be read',
    'code',
    ({ unreadable }) => unreadable,
  ),
  one(
    'counter',
    'moonroute_load_reports_sent_total',
    'Load reports sent to other routers',
    ({ plane }) => plane?.load?.sent,
  ),
  tally(
    'moonroute_load_reports_total',
    'Load reports of other routers, by what became of them',
    'outcome',
    ({ stats, plane }) => (plane?.load == null ? null : stats.foreignLoad.reports),
  ),
  one('gauge', 'moonroute_foreign_routers', 'Other routers whose load is counted', ({ stats, plane }) =>
    plane?.load == null ? null : stats.foreignLoad.routers,
  ),
  one(
    'counter',
    'moonroute_foreign_routers_lost_total',
    'Other routers that fell silent; their load was returned',
    ({ stats, plane }) => (plane?.load == null ? null : stats.foreignLoad.expired),
  ),
];

const STORE: readonly Family[] = [
  store(
    'gauge',
    'moonroute_store_connected',
    '1 while the stream of the followed master is connected',
    ({ connected }) => Number(connected),
  ),
  states(
    'moonroute_store_masters',
    'Masters, by what they last said',
    ['unknown', 'serving', 'standby', 'events-off', 'unreachable'],
    ({ live }) => live.store?.masters.map(({ state }) => state) ?? [],
  ),
  store(
    'gauge',
    'moonroute_store_sequence',
    'Sequence of the master’s last message',
    ({ lastSequence }) => lastSequence,
  ),
  store(
    'gauge',
    'moonroute_store_evidence_age_seconds',
    'Time since what is known of the store was confirmed',
    ({ evidenceAge }) => finite(evidenceAge),
  ),
  store('gauge', 'moonroute_store_max_evidence_age_seconds', 'Age at which it is dropped', ({ maxEvidenceAge }) =>
    finite(maxEvidenceAge),
  ),
  store(
    'gauge',
    'moonroute_store_queued_messages',
    'Messages of the master that wait to be looked at',
    ({ queued }) => queued,
  ),
  store(
    'gauge',
    'moonroute_store_warnings',
    'Things that a person should know; the console says them',
    ({ warnings }) => warnings.length,
  ),
  store('counter', 'moonroute_store_reconciles_total', 'Reconciles that counted', ({ reconciled }) => reconciled),
  tally(
    'moonroute_store_voided_reconciles_total',
    'Reconciles that did not count',
    'reason',
    ({ live }) => live.store?.voided,
  ),
  store(
    'gauge',
    'moonroute_store_last_reconcile_age_seconds',
    'Time since the last reconcile that counted began',
    ({ lastReconcile }) => seconds(lastReconcile?.age),
  ),
  store('gauge', 'moonroute_store_last_reconcile_seconds', 'How long it took', ({ lastReconcile }) =>
    seconds(lastReconcile?.took),
  ),
  store(
    'gauge',
    'moonroute_store_last_reconcile_step_seconds',
    'Of that, the step during which nothing else was done',
    ({ lastReconcile }) => seconds(lastReconcile?.step),
  ),
  store(
    'gauge',
    'moonroute_store_last_reconcile_objects',
    'Objects that it placed',
    ({ lastReconcile }) => lastReconcile?.placed,
  ),
  tally(
    'moonroute_store_drifts_total',
    'Differences between the master’s counters and its stream that lasted',
    'cause',
    ({ live }) => live.store?.drifts,
  ),
  tally(
    'moonroute_store_losses_total',
    'Connections to the master lost, and attempts that failed',
    'cause',
    ({ live }) => live.store?.losses,
  ),
  store(
    'counter',
    'moonroute_store_expired_total',
    'Times that what was known grew too old and was dropped',
    ({ expired }) => expired,
  ),
  store(
    'counter',
    'moonroute_store_pauses_total',
    'Times that the socket had to wait for the router',
    ({ pauses }) => pauses,
  ),
  tally(
    'moonroute_store_messages_total',
    'Messages of the master, by what became of them; gap-applied is a gap',
    'outcome',
    ({ stats }) => stats.cache?.messages,
  ),
  tally(
    'moonroute_store_clears_total',
    'Times that all that was known of the store was dropped',
    'cause',
    ({ stats }) => stats.cache?.clears,
  ),
  tally(
    'moonroute_store_learning_refusals_total',
    'Stored events that taught nothing',
    'reason',
    ({ stats }) => stats.cache?.refusals,
  ),
  gauge(
    'moonroute_store_known_objects',
    'Objects of the store that are known',
    ({ stats }) => stats.cache?.core?.members,
  ),
  gauge(
    'moonroute_store_known_edges',
    'Links from tokens to engine hashes, learned and derived ones',
    ({ stats }) => stats.cache?.core?.edges,
  ),
  gauge(
    'moonroute_store_derived_edges',
    'Of those, links that were derived from tokens',
    ({ stats }) => stats.cache?.core?.derivedEdges,
  ),
  gauge('moonroute_store_max_edges', 'Most of them', ({ stats }) => stats.cache?.core?.caps.edges),
  counter(
    'moonroute_store_evicted_edges_total',
    'Links that went since there were too many',
    ({ stats }) => stats.cache?.core?.edgeEvictions,
  ),
];

const DERIVATION: readonly Family[] = [
  states(
    'moonroute_derivation_state',
    '1 for how far derived hashes are trusted',
    DERIVATION_STATES,
    ({ derivation }) => [derivation.state],
  ),
  gauge(
    'moonroute_derivation_proven_ranks',
    'Ranks under the contract in force whose events have agreed with derived hashes',
    ({ derivation }) => derivation.provenRanks,
  ),
  counter(
    'moonroute_derivation_agreed_events_total',
    'Stored events that agreed with derived hashes',
    ({ stats }) => stats.cache?.derivation?.agreed,
  ),
  counter(
    'moonroute_derived_blocks_total',
    'Hash blocks whose digests were computed from tokens',
    ({ stats }) => stats.cache?.core?.derivedBlocks,
  ),
];

const INDEX: readonly Family[] = [
  gauge('moonroute_index_blocks', 'Blocks in the GPU prefix index', ({ stats }) => stats.index.entries),
  gauge('moonroute_index_max_blocks', 'Most of them', ({ stats }) => stats.index.entryCap),
  gauge(
    'moonroute_index_memory_bytes',
    'Memory of the index, reserved at start',
    ({ stats }) => stats.index.memoryBytes,
  ),
  counter(
    'moonroute_index_evicted_blocks_total',
    'Blocks that went from the index since there were too many',
    ({ stats }) => stats.index.evicted,
  ),
];

export const FAMILIES: readonly Family[] = [
  ...HITS,
  ...PROMPTS,
  ...WORKERS,
  ...LEASES,
  ...STREAMS,
  ...PLANE,
  ...STORE,
  ...DERIVATION,
  ...INDEX,
];

function byCode(labels: readonly string[], counts: Tally): Sample[] {
  return Object.entries(counts).map(([code, value]) => ({ labels: [...labels, code], value }));
}

function rankLabels({ id, dpRank }: Pick<WorkerStreamStatus, 'id' | 'dpRank'>): string[] {
  return [workerLabel(id), String(dpRank)];
}

function seconds(milliseconds: number | undefined): number | null {
  return milliseconds === undefined ? null : milliseconds / SECOND;
}

/** Evidence that never was has no age. */
function finite(milliseconds: number): number | null {
  return Number.isFinite(milliseconds) ? milliseconds / SECOND : null;
}
