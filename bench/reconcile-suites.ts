// A reconcile of 100,000 keys from the wire bytes of the master's list, cut as a network cuts them, beside the plain way: the whole text split, a
// Map of Sets. What counts is the longest time that a decision had to wait; the plain way is one step. The last step of a reconcile is also
// measured with as many events to apply again as may be kept, and on a core whose memory is new.
import { encode } from '@msgpack/msgpack';
import { KeyList } from '../src/cache/key-list.js';
import { KeyPrefixes } from '../src/cache/key-prefixes.js';
import { RECONCILE_EVENTS, ReconcileToken } from '../src/cache/reconcile.js';
import { Core } from '../src/core/core.js';
import type { Plan } from '../src/core/plan.js';
import { pair, randomLongs, Sample, timed } from './harness.js';
import { type Effort, type Row, ratioRow } from './suites.js';
import { type Chain, chainsAtCap, digestOf, planFor, teach } from './workload.js';

const SEED = 0x7265636f_6e63696cn;
const BLOCKS = 4096;
const CHUNK_BYTES = 65_536;
/** Events of a message that is kept. */
const BATCH = 64;
/** What the last step of a reconcile may take. */
const STEP_MS = 20;
const FRESH_CORES = 5;

const CASES = [
  { groups: 1, ranks: 2, digests: 50_000 },
  { groups: 3, ranks: 8, digests: 4_167 },
] as const;

/** The rival: digest → prefixes, from the list's whole text. */
function plainList(bytes: Uint8Array, prefixIds: ReadonlyMap<string, number>): Map<string, Set<number>> {
  const digests = new Map<string, Set<number>>();
  for (const key of new TextDecoder().decode(bytes).split('\n')) {
    const at = key.lastIndexOf('@');
    const prefix = prefixIds.get(key.slice(0, at));
    const digest = key.slice(at + 1);
    if (prefix === undefined || !/^[0-9a-f]{64}$/.test(digest)) continue;
    const known = digests.get(digest);
    if (known === undefined) digests.set(digest, new Set([prefix]));
    else known.add(prefix);
  }
  return digests;
}

function planOfGroups(groups: number, ranks: number): Plan {
  const plan = planFor(BLOCKS);
  const prefixes = Array.from({ length: groups * ranks }, (_, i) => ({
    group: Math.floor(i / ranks),
    text: `prod@Llama-3.1-70B-Instruct@tp_rank:${i % ranks}@pcp0@dcp0@pp_rank:0@group:${Math.floor(i / ranks)}`,
  }));
  const learned = { ...plan.learned!, endMask: 0n, windowUnits: [] };
  return groups === 1 ? { ...plan, groups, prefixes, learned } : { ...plan, prefixes };
}

/** The list in the order of hash maps: none. */
function listBytes(lows: readonly bigint[], { prefixes }: Plan): Uint8Array {
  const keys = lows.flatMap((low) => prefixes.map(({ text }) => `${text}@${digestOf(low)}`));
  const drawn = randomLongs(keys.length, SEED + 1n);
  for (let i = keys.length - 1; i > 0; i--) {
    const other = Number(drawn[i]! % BigInt(i + 1));
    [keys[i], keys[other]] = [keys[other]!, keys[i]!];
  }
  return new TextEncoder().encode(`${keys.join('\n')}\n`);
}

async function freshCore(plan: Plan, chains: readonly Chain[]): Promise<Core> {
  const core = await Core.load('default');
  core.configure(plan, SEED);
  teach(core, null, chains, 512);
  return core;
}

/** The list made ready in slices; `slice` hears how long each took. */
function prepared(bytes: Uint8Array, plan: Plan, core: Core, slice: (ms: number) => void): KeyList {
  const list = new KeyList({
    prefixes: new KeyPrefixes(plan.prefixes.map(({ text }) => text)),
    digestCap: core.digestCap,
    warm: (words, first, end) => core.warm(words, first, end),
  });
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES)
    slice(timed(() => list.add(bytes.subarray(at, at + CHUNK_BYTES))));
  slice(timed(() => list.end()));
  for (let done = false; !done; )
    slice(
      timed(() => {
        done = list.prepareSome();
      }),
    );
  return list;
}

/** As many events of the digests' first objects as a reconcile keeps, as the core staged them. */
function fullBuffer(core: Core, lows: readonly bigint[], { prefixes }: Plan): ReconcileToken {
  const token = new ReconcileToken();
  for (let first = 0, sequence = 1n; token.events < RECONCILE_EVENTS; first += BATCH, sequence++) {
    const events = Array.from({ length: BATCH }, (_, i) => ({
      event_type: i % 3 === 0 ? 'removed' : 'stored',
      object_key: `${prefixes[0]!.text}@${digestOf(lows[(first + i) % lows.length]!)}`,
      medium: 'cpu',
    }));
    const outcome = core.applyPayload(encode([1, events, 0]));
    if (outcome.outcome !== 'applied') throw new Error(`the batch is ${outcome.outcome}`);
    token.keep(sequence, core.stagedEvents(outcome.objects));
  }
  return token;
}

/** A list from its bytes to residency, then its last step alone. */
export async function reconcileSuite(effort: Effort): Promise<Row[]> {
  const rows: Row[] = [];
  const chains = chainsAtCap(BLOCKS, SEED);
  const children = chains.flatMap((chain) => [...chain.children]);
  const order = randomLongs(children.length, SEED + 2n);
  const shuffled = children.map((low, i) => ({ low, at: order[i]! })).sort((a, b) => (a.at < b.at ? -1 : 1));
  for (const { groups, ranks, digests } of CASES) {
    const plan = planOfGroups(groups, ranks);
    const lows = shuffled.slice(0, digests).map(({ low }) => low);
    const bytes = listBytes(lows, plan);
    const keys = lows.length * plan.prefixes.length;
    const name = `${keys.toLocaleString('en')} keys, ${groups === 1 ? '' : `${groups} groups of `}${ranks} ranks`;
    const prefixIds = new Map(plan.prefixes.map(({ text }, id) => [text, id]));
    const core = await freshCore(plan, chains);
    let longest: number[] = [];
    let placing: number[] = [];
    const reconcile = () => {
      let slowest = 0;
      const list = prepared(bytes, plan, core, (ms) => {
        slowest = Math.max(slowest, ms);
      });
      const listed = list.prepare();
      longest.push(slowest);
      placing.push(timed(() => core.replaceResidency(listed)));
    };
    reconcile();
    if (core.digests !== plainList(bytes, prefixIds).size) throw new Error('core and rival disagree about the list');
    longest = [];
    placing = [];
    const whole = pair(reconcile, () => plainList(bytes, prefixIds), { turns: effort.turns, warmA: 3 });
    rows.push(
      ratioRow(
        `reconcile of ${name}, from wire bytes`,
        null,
        whole,
        `longest slice ${new Sample(longest).median.toFixed(1)} ms, at most ${new Sample(longest).at(1).toFixed(1)} ms; the rival is one step`,
      ),
    );
    rows.push(stepRow(`last step of a reconcile of ${name}`, placing, 'keys become resident'));

    const listed = prepared(bytes, plan, core, () => {}).prepare();
    const token = fullBuffer(core, lows, plan);
    const withBuffer = Array.from({ length: effort.turns }, () =>
      timed(() => {
        core.replaceResidency(listed);
        for (const staged of token.keptBehind(0n)) core.reapply(staged);
      }),
    );
    rows.push(
      stepRow('… with a full buffer', withBuffer, `${RECONCILE_EVENTS.toLocaleString('en')} events applied again`),
    );
    const first: number[] = [];
    for (let i = 0; i < FRESH_CORES; i++) {
      const fresh = await freshCore(plan, chains);
      const own = prepared(bytes, plan, fresh, () => {}).prepare();
      first.push(timed(() => fresh.replaceResidency(own)));
    }
    rows.push(stepRow('… the first of a core', first, 'memory made ready by the slices before'));
  }
  return rows;
}

function stepRow(suite: string, times: readonly number[], note: string): Row {
  const core = new Sample(times);
  const most = `at most ${core.at(1).toFixed(1)} ms`;
  return {
    suite,
    core,
    rival: null,
    ratio: null,
    aim: `≤ ${STEP_MS} ms`,
    met: core.median <= STEP_MS,
    note: `${note}, ${most}`,
  };
}
