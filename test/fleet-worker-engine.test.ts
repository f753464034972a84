// The engine of a simulated worker, without clock or sockets: what it finds on its GPU and in the store, what it announces, and that its events are
// the whole truth about its blocks, whatever happens in whatever order.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { MoonrouteError } from '../src/errors.js';
import { Engine, type EngineOptions, type StepResult } from '../src/fleet/worker/engine.js';
import type { EngineRequest, PromptSources } from '../src/fleet/worker/engine-run.js';
import { type GroupOptions, geometryOf } from '../src/fleet/worker/geometry.js';
import type { BlocksStored, KvEvent } from '../src/fleet/worker/kv-events.js';
import type { SharedStore } from '../src/fleet/worker/shared-store.js';
import { hexOf } from '../src/wire/block-digests.js';
import { vllmDigests } from './support/engine-digests.js';
import { tokensOf } from './support/fleet-worker.js';
import { Random } from './support/random.js';

const BLOCK = 16;
const FULL: GroupOptions = { kind: 'full_attention' };
const WINDOW: GroupOptions = { kind: 'sliding_window', window: 2 * BLOCK + 1 };
const STATE: GroupOptions = { kind: 'mamba' };

class PlainStore implements SharedStore {
  readonly objects = new Set<string>();
  has(key: string): boolean {
    return this.objects.has(key);
  }
  put(key: string): boolean {
    this.objects.add(key);
    return true;
  }
}

interface Setup extends Partial<Omit<EngineOptions, 'geometry'>> {
  readonly groups?: readonly GroupOptions[];
  readonly tp?: number;
}

function engineOf({ groups = [FULL], tp = 1, ...options }: Setup = {}): Engine {
  const geometry = geometryOf({ model: 'm', cachePrefix: 'pool', blockSize: BLOCK, tp, groups });
  const rest = { store: null, retention: 0, connectorEvents: false };
  const defaults = { gpuBlocks: 64, stepTokens: 1024, maxRunning: 8, maxWaiting: 8, ...rest };
  return new Engine({ geometry, ...defaults, ...options });
}

const requestOf = (prompt: readonly number[], answer = 1, more: Partial<EngineRequest> = {}): EngineRequest => ({
  prompt,
  answer: Array.from({ length: answer }, (_, i) => i),
  ...more,
});

/** Runs it to its end. */
function serve(engine: Engine, request: EngineRequest): PromptSources & { readonly steps: StepResult[] } {
  const id = engine.submit(request);
  const steps: StepResult[] = [];
  for (;;) {
    steps.push(engine.step());
    const last = steps.at(-1)!.outputs.find(({ run, finished }) => run === id && finished);
    if (last !== undefined) return { ...last.sources, steps };
    assert.ok(steps.length < 1000, 'a request that never ends');
  }
}

const eventsOf = (steps: readonly StepResult[]): KvEvent[] => steps.flatMap(({ events }) => events);
const storedOf = (events: readonly KvEvent[]): BlocksStored[] =>
  events.filter((event): event is BlocksStored => event.kind === 'stored');
const hexes = (tokens: readonly number[], scope = {}) =>
  vllmDigests(tokens, BLOCK, scope).map((digest) => digest.toString('hex'));

test('a prompt is announced block by block; repeated, it is found, but for its last token', () => {
  const engine = engineOf();
  const prompt = tokensOf(1, 3 * BLOCK);
  const first = serve(engine, requestOf(prompt));
  assert.equal([first.gpuTokens, first.storeTokens], [0, 0]);
  const [event, ...more] = storedOf(eventsOf(first.steps));
  assert.equal(more, []);
  assert.equal(event!.digests.map(hexOf), hexes(prompt));
  assert.equal([event!.parent, event!.tokens, event!.blockSize], [null, prompt, BLOCK]);
  const again = serve(engine, requestOf(prompt));
  assert.is(again.gpuTokens, 2 * BLOCK);
  // The last block is computed once more, into a block of its own, and announced again.
  const [repeated] = storedOf(eventsOf(again.steps));
  assert.equal(repeated!.digests.map(hexOf), hexes(prompt).slice(2));
  assert.is(hexOf(repeated!.parent!), hexes(prompt)[1]);
});

test('a chat’s next turn finds prompt and answer of the last', () => {
  const engine = engineOf();
  const prompt = tokensOf(1, 3 * BLOCK);
  const answer = 2 * BLOCK;
  serve(engine, requestOf(prompt, answer));
  const next = [...prompt, ...Array.from({ length: answer }, (_, i) => i), ...tokensOf(2, BLOCK)];
  // The KV of the answer's last token was never computed.
  assert.is(serve(engine, requestOf(next)).gpuTokens, 4 * BLOCK);
});

test('long prompts take several steps, of which each announces its own blocks; others decode meanwhile', () => {
  const engine = engineOf({ stepTokens: 40 });
  engine.submit(requestOf(tokensOf(1, 8), 20));
  engine.step();
  const long = engine.submit(requestOf(tokensOf(2, 6 * BLOCK)));
  const steps = [engine.step(), engine.step(), engine.step()];
  assert.equal(
    steps.map(({ prefillTokens, decodeTokens }) => [prefillTokens, decodeTokens]),
    [
      [39, 1],
      [39, 1],
      [18, 1],
    ],
  );
  assert.equal(
    steps.map(({ events }) => storedOf(events).flatMap(({ digests, tokens }) => [digests.length, tokens.length])),
    [
      [2, 2 * BLOCK],
      [2, 2 * BLOCK],
      [2, 2 * BLOCK],
    ],
  );
  assert.ok(steps[2]!.outputs.some(({ run }) => run === long));
});

test('LoRA name and salt enter every hash that follows, and the events say so', () => {
  const engine = engineOf();
  const prompt = tokensOf(1, 2 * BLOCK + 1);
  const scope = { lora: { id: 3, name: 'adapter-a' }, cacheSalt: 'dynamo-cache-salt:tenant-a' };
  serve(engine, requestOf(prompt));
  const { gpuTokens, steps } = serve(engine, requestOf(prompt, 1, scope));
  assert.is(gpuTokens, 0);
  const [event] = storedOf(eventsOf(steps));
  assert.equal(event!.digests.map(hexOf), hexes(prompt, { loraName: 'adapter-a', cacheSalt: scope.cacheSalt }));
  assert.equal(event!.extraKeys, [['adapter-a', scope.cacheSalt], ['adapter-a']]);
  assert.is(serve(engine, requestOf(prompt, 1, scope)).gpuTokens, 2 * BLOCK);
  assert.is(serve(engine, requestOf(prompt, 1, { lora: scope.lora })).gpuTokens, 0);
});

test('blocks go, the last of the oldest request first, and it is said', () => {
  const engine = engineOf({ gpuBlocks: 6 });
  const [old, young, third] = [1, 2, 3].map((name) => tokensOf(name, 2 * BLOCK + 1));
  serve(engine, requestOf(old!));
  serve(engine, requestOf(young!));
  const { steps } = serve(engine, requestOf(third!));
  const removed = eventsOf(steps).flatMap((event) => (event.kind === 'removed' ? [hexOf(event.digest)] : []));
  assert.equal(removed, [...hexes(old!)].reverse());
  assert.is(serve(engine, requestOf(young!)).gpuTokens, 2 * BLOCK);
});

test('a clear forgets everything, and is refused while a request runs', () => {
  const engine = engineOf();
  const prompt = tokensOf(1, 2 * BLOCK + 1);
  serve(engine, requestOf(prompt));
  const id = engine.submit(requestOf(prompt, 10));
  engine.step();
  assert.is(engine.clear(), false);
  engine.abort(id);
  assert.is(engine.clear(), true);
  assert.equal(engine.takeEvents(), [{ kind: 'cleared' }]);
  assert.is(serve(engine, requestOf(prompt)).gpuTokens, 0);
});

test('an abort frees blocks at once, and ends the work', () => {
  const engine = engineOf({ gpuBlocks: 4 });
  const id = engine.submit(requestOf(tokensOf(1, 2 * BLOCK), 2 * BLOCK));
  engine.step();
  const waiting = engine.submit(requestOf(tokensOf(2, 2 * BLOCK)));
  assert.equal(
    engine.step().outputs.map(({ run }) => run),
    [id],
  ); // no room for the other
  assert.equal([engine.running, engine.waiting], [1, 1]);
  assert.is(engine.abort(id), true);
  assert.is(engine.abort(id), false);
  assert.equal(
    engine.step().outputs.map(({ run }) => run),
    [waiting],
  );
  assert.equal([engine.busy, engine.counts.aborted, engine.usage], [false, 1, 0]);
});

for (const [code, request, setup] of [
  ['prompt-empty', requestOf([]), {}],
  ['prompt-too-long', requestOf(tokensOf(1, 64 * BLOCK), 1), {}],
  ['prompt-too-long', requestOf(tokensOf(1, 10), 64 * BLOCK), {}],
  ['engine-full', requestOf(tokensOf(1, 10)), { maxWaiting: 0 }],
] as const) {
  test(`${code}: refused, and nothing has changed`, () => {
    const engine = engineOf(setup);
    assert.throws(
      () => engine.submit(request),
      (error: unknown) => error instanceof MoonrouteError && error.code === code,
    );
    assert.is(engine.busy, false);
  });
}

// ---- the shared store ----

test('objects are put for every rank under the engine’s own keys, once', () => {
  const store = new PlainStore();
  const engine = engineOf({ store, tp: 2 });
  const prompt = tokensOf(1, 2 * BLOCK + 5);
  serve(engine, requestOf(prompt, 40)); // the answer's blocks are not put
  const keys = hexes(prompt).flatMap((hex) =>
    [0, 1].map((rank) => `pool@m@tp_rank:${rank}@pcp0@dcp0@pp_rank:0@group:0@${hex}`),
  );
  assert.equal([...store.objects].sort(), keys.sort());
  serve(engine, requestOf(prompt));
  assert.is(engine.counts.objectsPut, 4);
});

for (const [what, groups] of [
  ['full attention', [FULL]],
  ['with a window', [FULL, WINDOW]],
  ['with states', [FULL, STATE]],
  ['four groups', [FULL, { ...FULL, blockSize: 2 * BLOCK }, WINDOW, STATE]],
] as const) {
  const alignment = groups.length > 2 ? 2 * BLOCK : BLOCK;
  const prompt = tokensOf(1, 6 * BLOCK + 1);

  test(`${what}: evicted from the GPU but in the store, it is restored; removed there, it is not`, () => {
    const store = new PlainStore();
    const engine = engineOf({ store, groups, tp: 2 });
    serve(engine, requestOf(prompt));
    assert.is(serve(engine, requestOf(prompt)).gpuTokens, 6 * BLOCK);
    assert.ok(engine.evict(1000) > 0);
    const restored = serve(engine, requestOf(prompt));
    assert.equal([restored.gpuTokens, restored.storeTokens], [0, 6 * BLOCK]);
    assert.ok(restored.steps[0]!.restoredBytes > 0);
    // Restored blocks are the GPU's own from then on.
    assert.is(serve(engine, requestOf(prompt)).gpuTokens, 6 * BLOCK);
    // Another worker restores the same objects.
    assert.is(serve(engineOf({ store, groups, tp: 2 }), requestOf(prompt)).storeTokens, 6 * BLOCK);
    store.objects.clear();
    engine.evict(1000);
    assert.equal([serve(engine, requestOf(prompt)).storeTokens, store.objects.size > 0], [0, true]);
  });

  test(`${what}: of one rank’s object gone, nothing behind it is restored`, () => {
    const store = new PlainStore();
    serve(engineOf({ store, groups, tp: 2 }), requestOf(prompt));
    const gone = `pool@m@tp_rank:1@pcp0@dcp0@pp_rank:0@group:0@${hexes(prompt)[4]}`;
    assert.is(store.objects.delete(gone), true);
    const { storeTokens } = serve(engineOf({ store, groups, tp: 2 }), requestOf(prompt));
    // Windows and states are kept for the prompt's last endpoint alone.
    assert.is(storeTokens, groups.length === 1 ? 4 * BLOCK : 0);
    assert.is(storeTokens % alignment, 0);
  });
}

test('what is fetched is what the GPU lacks: blocks of full attention, the tail of a window, one state; every rank’s', () => {
  const store = new PlainStore();
  const setup = { store, groups: [FULL, WINDOW, STATE], tp: 2 };
  const { steps } = serve(engineOf(setup), requestOf(tokensOf(1, 6 * BLOCK + 1)));
  assert.is(steps[0]!.restoredBytes, 0);
  const fresh = engineOf(setup);
  const bytes = (blocks: number) => blocks * 5_242_880;
  const beginning = tokensOf(1, 6 * BLOCK + 1);
  assert.is(serve(fresh, requestOf(beginning)).steps[0]!.restoredBytes, bytes(6 + 2 + 1));
  assert.is(serve(fresh, requestOf(beginning)).steps[0]!.restoredBytes, 0);
  // A longer prompt: the GPU's own beginning is not fetched again.
  const longer = [...beginning, ...tokensOf(2, 4 * BLOCK)];
  serve(engineOf(setup), requestOf(longer));
  assert.is(serve(fresh, requestOf(longer)).steps[0]!.restoredBytes, bytes(4 + 2 + 1));
});

test('groups other than full attention skip blocks: their tokens cover the range, their hashes its end', () => {
  const engine = engineOf({ groups: [FULL, WINDOW, STATE] });
  const prompt = tokensOf(1, 6 * BLOCK + 1);
  const events = storedOf(eventsOf(serve(engine, requestOf(prompt)).steps));
  assert.equal(
    events.map(({ group, digests, tokens, extraKeys }) => [group, digests.map(hexOf), tokens.length, extraKeys.length]),
    [
      [0, hexes(prompt), 6 * BLOCK, 6],
      [1, hexes(prompt).slice(4), 6 * BLOCK, 2],
      [2, hexes(prompt).slice(5), 6 * BLOCK, 1],
    ],
  );
});

for (const [retention, tokens, places] of [
  [0, 0, [4, 5]],
  [3 * BLOCK, 3 * BLOCK, [1, 2, 4, 5]],
  [null, 5 * BLOCK, [0, 1, 2, 3, 4, 5]],
] as const) {
  test(`windows kept every ${retention} tokens: a prompt that shares a beginning finds ${tokens} tokens`, () => {
    const engine = engineOf({ groups: [FULL, WINDOW], retention });
    const prompt = tokensOf(1, 6 * BLOCK + 1);
    const events = storedOf(eventsOf(serve(engine, requestOf(prompt)).steps));
    assert.equal(
      events.find(({ group }) => group === 1)!.digests.map((digest) => hexes(prompt).indexOf(hexOf(digest))),
      places,
    );
    const other = [...prompt.slice(0, 5 * BLOCK), ...tokensOf(2, 2 * BLOCK)];
    assert.is(serve(engine, requestOf(other)).gpuTokens, tokens);
    assert.is(serve(engine, requestOf(prompt)).gpuTokens, 6 * BLOCK);
  });
}

test('the connector tells each block that it puts, once, without its LoRA', () => {
  const store = new PlainStore();
  const engine = engineOf({ store, tp: 2, connectorEvents: true });
  const prompt = tokensOf(1, 3 * BLOCK);
  const scope = { lora: { id: 1, name: 'adapter-a' } };
  const put = (steps: readonly StepResult[]) =>
    eventsOf(steps).flatMap((event) => (event.kind === 'put' ? [[event.digests.map(hexOf), event.tokens.length]] : []));
  assert.equal(
    put(serve(engine, requestOf(prompt, 1, scope)).steps),
    hexes(prompt, { loraName: 'adapter-a' }).map((hex) => [[hex], BLOCK]),
  );
  assert.equal(put(serve(engine, requestOf(prompt, 1, scope)).steps), []);
});

// ---- the whole truth ----

for (const [what, groups] of [
  ['full attention', [FULL]],
  ['four groups', [FULL, { ...FULL, blockSize: 2 * BLOCK }, WINDOW, STATE]],
] as const) {
  test(`${what}: events say what the GPU holds, after every step of random work`, () => {
    const random = new Random(7);
    const pick = (limit: number) => random.int(limit);
    const store = new PlainStore();
    const engine = engineOf({ groups, store, gpuBlocks: 60, stepTokens: 50, maxRunning: 4 });
    const said = groups.map(() => new Set<string>());
    const hear = (events: readonly KvEvent[]) => {
      for (const event of events) {
        if (event.kind === 'cleared') for (const set of said) set.clear();
        else if (event.kind === 'removed') said[event.group]!.delete(hexOf(event.digest));
        else if (event.kind === 'stored') for (const digest of event.digests) said[event.group]!.add(hexOf(digest));
      }
    };
    const alive = new Set<number>();
    for (let turn = 0; turn < 4_000; turn++) {
      const what = pick(20);
      if (what < 4 && engine.waiting < 8) {
        // Prompts that share beginnings.
        const shared = tokensOf(pick(3), BLOCK * pick(6));
        alive.add(engine.submit(requestOf([...shared, ...tokensOf(3 + pick(6), 1 + pick(60))], 1 + pick(30))));
      } else if (what === 5 && alive.size > 0) {
        const id = [...alive][pick(alive.size)]!;
        engine.abort(id);
        alive.delete(id);
      } else if (what === 6) engine.evict(pick(4));
      else if (what === 7) engine.clear();
      else if (what === 8) for (const key of store.objects) if (pick(2) === 0) store.objects.delete(key);
      const { outputs, events } = engine.step();
      hear(events);
      for (const { run, finished } of outputs) if (finished) alive.delete(run);
      assert.equal(said, engine.contents(), `turn ${turn}`);
    }
    while (engine.busy) hear(engine.step().events);
    assert.is(engine.usage, 0, 'every block was let go');
    assert.ok(engine.counts.finished > 300 && engine.counts.gpuTokens > 0 && engine.counts.storeTokens > 0);
    assert.ok(engine.counts.blocksEvicted > 500);
  });
}

test.run();
