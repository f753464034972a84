// Whether the store's keys stand under the prefixes that the contracts require. Where one is never seen, the nearest that is there tells which part
// of the name differs: cache prefix, model, number of ranks, group.
import type { KeyEvidence, PrefixCount } from '../evidence.js';
import { type Check, failed, ok, skipped, type Verdict } from '../finding.js';
import { keyParts, type Nearest, nearestPrefix, type PartDifference, type PartName } from '../key-parts.js';
import { contractsOf, requiredPrefixes } from '../required-prefixes.js';
import { count, listText, STORE } from '../words.js';

/** Foreign prefixes that are explained. */
const MOST_EXPLAINED = 4;
/** Keys of other ranks of a group, and of other groups, above which a prefix without any is conspicuous. */
const PUT_BY_SIBLINGS = 8;
const PUT_BY_OTHERS = 1000;

export const keyPrefixes: Check = {
  code: 'key-prefixes',
  title: 'keys stand under the required prefixes',
  run: ({ workers, store }) => {
    if (store === null) return [];
    if (store.keys === null) return [skipped(STORE, store.keysFault ?? 'there is no key list')];
    const required = requiredPrefixes(contractsOf(workers)).all;
    if (required.length === 0) return [skipped(STORE, 'no valid contract says which prefixes are required')];
    if (store.keys.total === 0) return [skipped(STORE, 'the store is empty')];
    return ofKeys(store.keys, required);
  },
};

function ofKeys({ required: counts, foreign, total }: KeyEvidence, required: readonly string[]): Verdict[] {
  const nobodys = counts.every(({ keys }) => keys === 0);
  const unseen = counts.filter((one) => one.keys === 0 && isConspicuous(one, counts));
  const found = foreign.map((one) => explain(one, required)).filter((one) => one !== null);
  // Where ours are there, another model or cache prefix is somebody else's; another number of ranks or groups never is.
  const suspects = found.filter(
    ({ apart }) => apart.length > 0 && (nobodys || apart.every(({ part }) => SHAPE.includes(part))),
  );
  if (suspects.length > 0)
    return merged(suspects)
      .slice(0, MOST_EXPLAINED)
      .map((one) => verdictOf(one, required));
  if (nobodys) {
    return [
      failed(
        STORE,
        `none of ${count(total, 'key')} is under a required prefix, nor near one; they begin like ${listText(
          foreign.map(({ prefix }) => JSON.stringify(prefix)),
          2,
        )}`,
        "Is it this pool's store? Compare these with key_prefixes of the workers' contracts; an engine with another connector writes other keys.",
      ),
    ];
  }
  if (unseen.length > 0) {
    return [
      failed(
        STORE,
        `no key under ${count(unseen.length, 'required prefix', 'required prefixes')}, as ${unseen[0]!.prefix}: nothing is ever complete`,
        'Every rank and group must put its part. See whether that rank runs and its connector stores (kv_role), and whether tensor and pipeline parallel sizes are those of the contract.',
      ),
    ];
  }
  const ours = counts.reduce((sum, { keys }) => sum + keys, 0);
  const rest = total > ours ? `; ${count(total - ours, 'key')} of others` : '';
  return [
    ok(STORE, `${count(ours, 'key')} under ${count(counts.length, 'required prefix', 'required prefixes')}${rest}`),
  ];
}

/**
 * Whether it is no accident that no key is there: other ranks of the group have put theirs, or the store holds so much that every group must have
 * some (windows and states are put at few places of a prompt).
 */
function isConspicuous({ prefix }: PrefixCount, counts: readonly PrefixCount[]): boolean {
  const group = keyParts(prefix)?.group;
  const siblings = counts.filter((one) => keyParts(one.prefix)?.group === group);
  const most = Math.max(...siblings.map(({ keys }) => keys));
  return most >= PUT_BY_SIBLINGS || counts.some(({ keys }) => keys >= PUT_BY_OTHERS);
}

/** Parts that follow from how an engine was started rather than from what it is called. */
const SHAPE: readonly PartName[] = ['tp_rank', 'pcp', 'dcp', 'pp_rank', 'group'];

/** Keys that differ from the required ones in the same parts. */
interface Explained extends PrefixCount {
  readonly nearest: Nearest;
  readonly apart: readonly PartDifference[];
}

/** Null for keys of no connector. */
function explain({ prefix, keys }: PrefixCount, required: readonly string[]): Explained | null {
  const nearest = nearestPrefix(prefix, required);
  return nearest === null || nearest.differences === null
    ? null
    : { prefix, keys, nearest, apart: nearest.differences };
}

/** One for each way to differ, with the keys of all that do. */
function merged(found: readonly Explained[]): Explained[] {
  const ways = new Map<string, Explained>();
  for (const one of found) {
    const way = one.apart.map(({ part, seen }) => (SHAPE.includes(part) ? part : `${part}=${seen}`)).join();
    const known = ways.get(way);
    ways.set(way, known === undefined ? one : { ...known, keys: known.keys + one.keys });
  }
  return [...ways.values()];
}

function verdictOf({ prefix, keys, nearest, apart }: Explained, required: readonly string[]): Verdict {
  const parts = apart.map(({ part, seen }) => {
    const wanted = [...new Set(required.map((text) => keyParts(text)?.[part] ?? ''))];
    return `${part} is ${shown(seen)}, required ${wanted.length === 1 ? 'is' : 'are'} ${listText(wanted.map(shown))}`;
  });
  const place = `${count(keys, 'key')} under ${prefix} and its like, nearest required is ${nearest.required} (edit distance ${nearest.distance})`;
  return failed(STORE, `${place}: ${parts.join('; ')}`, apart.map(({ part }) => FIXES[part]).join(' '));
}

function shown(part: string): string {
  return part === '' ? 'none' : JSON.stringify(part);
}

const RANKS = 'Publish the contract of the engine that runs: as many ranks as it has.';
const FIXES: Readonly<Record<PartName, string>> = {
  'cache prefix':
    'Give all workers the same cache_prefix in kv_connector_extra_config, and publish the contract again.',
  model:
    'Start all workers with the same --model: the last part of its path stands in keys, so a local copy must be named alike.',
  tp_rank: `The tensor-parallel size differs from the contract's. ${RANKS}`,
  pcp: `The prefill context-parallel size differs from the contract's. ${RANKS}`,
  dcp: `The decode context-parallel size differs from the contract's. ${RANKS}`,
  pp_rank: `The pipeline-parallel size differs from the contract's. ${RANKS}`,
  group:
    "The KV-cache groups differ from the contract's: another model, or a vLLM that groups layers otherwise. Publish the contract of the engine that runs.",
};
