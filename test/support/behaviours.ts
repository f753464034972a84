// What the behaviour suite (test/runtimes/behaviours.js) sees in Node, where it is checked against what the package promises: the other engines are
// compared with that.
import { pathToFileURL } from 'node:url';
import * as assert from 'uvu/assert';
import type { BehaviourInput } from './behaviour-input.js';

/** Plain JSON by the behaviours' names. */
export type Seen = Record<string, unknown>;

const load = (path: string): Promise<Record<string, unknown>> => import(pathToFileURL(path).href);

/** Runs the suite in this process, through the package's own name. */
export async function seenInNode(input: BehaviourInput): Promise<Seen> {
  const { behaviours } = (await load('test/runtimes/behaviours.js')) as { behaviours(given: object): Promise<Seen> };
  const [name, simName] = ['moonroute', 'moonroute/sim'];
  const [moonroute, sim] = await Promise.all([import(name), import(simName)]);
  return JSON.parse(JSON.stringify(await behaviours({ moonroute, sim, input }))) as Seen;
}

interface CacheLife {
  readonly build: string;
  readonly learned: number;
  readonly learnedOnly: { readonly hits: object };
  readonly resident: { readonly hits: object };
  readonly oneGone: { readonly hits: { readonly blocks: number }; readonly explained: { reasons: { code: string }[] } };
  readonly lost: { readonly hits: object };
}

interface RouterStep {
  readonly step: string;
  readonly end?: { readonly code: string };
  readonly decision?: { readonly worker: { readonly id: string }; readonly blocks: { device: number; shared: number } };
}

/** Throws unless `seen` is what the package promises. */
export function checkSeen(seen: Seen): void {
  const oracle = seen['oracle'] as { checked: number; withHit: number; wrong: string[] };
  assert.equal(oracle.wrong, []);
  assert.ok(oracle.checked >= 50 && oracle.withHit >= 25, JSON.stringify(oracle));
  const lives = seen['caches'] as CacheLife[];
  assert.equal(
    lives.map(({ build, learned }) => [build, learned]),
    [
      ['default', 6],
      ['wide', 6],
      ['large', 6],
    ],
  );
  for (const { learnedOnly, resident, oneGone, lost } of lives) {
    const none = { blocks: 0, tokens: 0 };
    assert.equal([learnedOnly.hits, resident.hits, lost.hits], [none, { blocks: 6, tokens: 96 }, none]);
    assert.ok(oneGone.hits.blocks < 6);
    assert.is(oneGone.explained.reasons[0]!.code, 'object-missing');
  }
  assert.equal(seen['cachesSync'], lives, 'made at once');
  const router = seen['router'] as RouterStep[];
  assert.equal(seen['routerSync'], router, 'made at once');
  const credited = new Map(router.flatMap(({ step, decision }) => (decision ? [[step, decision]] : [])));
  const of = (step: string) => credited.get(step)!;
  assert.equal([of('cold').blocks.device, of('cold').blocks.shared], [0, 0]);
  assert.equal([of('on the GPU').worker.id, of('on the GPU').blocks.device], ['worker-0', 6]);
  assert.equal([of('from the store').blocks.device, of('from the store').blocks.shared], [0, 6]);
  assert.is(of('refuted 5').blocks.shared, 0);
  assert.equal(
    router.flatMap(({ end }) => end?.code ?? []),
    ['no-workers', 'router-disposed'],
  );
  assert.equal(
    (seen['errors'] as { kind: string; code: string }[]).map(({ kind, code }) => `${kind} ${code}`),
    [
      ...['ContractError unsupported-revision', 'ContractError malformed-descriptor', 'WireError frame-count'],
      ...['ConfigError limits-edges', 'ConfigError limits-edges', 'ConfigError hashing'],
      ...['ConfigError index-bytes', 'ConfigError index-bytes', 'ConfigError unknown-policy'],
      ...['ConfigError temperature', 'ConfigError hicache-not-supported'],
    ],
  );
  assert.equal(
    (seen['requests'] as { eligible: boolean }[]).map(({ eligible }) => eligible),
    [false, false, true, false],
  );
  const { completed, tokens } = seen['simulation'] as { completed: number; tokens: { cached: number } };
  assert.ok(completed === 60 && tokens.cached > 0);
}
