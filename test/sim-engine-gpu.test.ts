// A worker's GPU blocks: runs of blocks against a cache that keeps them one by one, in whatever order requests come, grow and go.
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { GpuCache } from '../src/sim/gpu-cache.js';
import { PlainGpu } from './support/sim-plain-gpu.js';

const EACH = 4;
/** Walks down one tree. */
const PATHS: readonly (readonly number[])[] = [
  [0, 3, 6],
  [0, 3, 7],
  [0, 4, 8],
  [1, 5, 9],
  [1, 5, 10],
  [2, 11, 12],
];

interface Running {
  readonly path: Int32Array;
  readonly blocks: number;
  held: number;
  own: number;
}

/** Block by block, as they went: the deepest of a run first when it left, last when it entered. */
function namesOf(said: (readonly [node: number, from: number, count: number])[], deepestFirst: boolean): string[] {
  return said.flatMap(([node, from, count]) => {
    const names = Array.from({ length: count }, (_, i) => `${node}:${from + i}`);
    return deepestFirst ? names.reverse() : names;
  });
}

const steps = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('admit' as const),
      path: fc.integer({ min: 0, max: PATHS.length - 1 }),
      blocks: fc.integer({ min: 1, max: 3 * EACH }),
      own: fc.integer({ min: 0, max: 3 }),
    }),
    fc.record({ kind: fc.constant('share' as const), which: fc.nat(), blocks: fc.integer({ min: 1, max: 6 }) }),
    fc.record({ kind: fc.constant('release' as const), which: fc.nat() }),
  ),
  { minLength: 1, maxLength: 120 },
);

test('it equals a cache that keeps block by block', () => {
  fc.assert(
    fc.property(fc.integer({ min: 6, max: 24 }), steps, (blocks, operations) => {
      const cache = new GpuCache(blocks, () => EACH);
      const plain = new PlainGpu(blocks, EACH);
      const running: Running[] = [];
      for (const step of operations) {
        if (step.kind === 'admit') {
          const path = Int32Array.from(PATHS[step.path]!);
          const hit = cache.match(path, step.blocks);
          assert.is(hit, plain.match(path, step.blocks));
          const left: [number, number, number][] = [];
          const own = step.blocks - hit + step.own;
          const admitted = cache.admit(path, hit, own, (...run) => left.push(run));
          const gone = plain.admit(path, hit, own);
          assert.is(admitted, gone !== null);
          assert.equal(namesOf(left, true), gone ?? []);
          if (admitted) running.push({ path, blocks: step.blocks, held: hit, own });
        } else if (running.length > 0) {
          const at = step.which % running.length;
          const request = running[at]!;
          if (step.kind === 'share') {
            const end = Math.min(request.blocks, request.held + step.blocks);
            const entered: [number, number, number][] = [];
            cache.share(request.path, request.held, end, (...run) => entered.push(run));
            assert.equal(namesOf(entered, false), plain.share(request.path, request.held, end));
            request.own -= end - request.held;
            request.held = end;
          } else {
            cache.release(request.path, request.held, request.own);
            plain.release(request.path, request.held, request.own);
            running.splice(at, 1);
          }
        }
        assert.is(cache.resident, plain.resident);
      }
    }),
    { numRuns: 2000 },
  );
});

test('a run that somebody else holds does not grow with one of its holders', () => {
  const cache = new GpuCache(4, () => EACH);
  const path = Int32Array.of(0);
  cache.admit(path, 0, 2, () => {});
  cache.share(path, 0, 2, () => {});
  cache.admit(path, 2, 1, () => {});
  cache.share(path, 2, 3, () => {});
  cache.release(path, 3, 0);
  // The third block is free to go, the first two are held.
  const left: number[][] = [];
  assert.ok(cache.admit(Int32Array.of(1), 0, 2, (...run) => left.push(run)));
  assert.equal(left, [[0, 2, 1]]);
});

test('a request that finds no room changes nothing', () => {
  const cache = new GpuCache(4, () => EACH);
  const nothing = () => assert.unreachable();
  assert.ok(cache.admit(Int32Array.of(0), 0, 3, nothing));
  cache.share(Int32Array.of(0), 0, 3, () => {});
  assert.not.ok(cache.admit(Int32Array.of(1), 0, 2, nothing));
  assert.is(cache.match(Int32Array.of(0), 4), 3);
  cache.release(Int32Array.of(0), 3, 0);
  assert.ok(cache.admit(Int32Array.of(1), 0, 2, () => {}));
});

test('what another request has brought meanwhile is shared, and the double is free', () => {
  const cache = new GpuCache(4, () => EACH);
  const path = Int32Array.of(0);
  const entered: number[] = [];
  cache.admit(path, 0, 2, () => {});
  cache.admit(path, 0, 2, () => {});
  cache.share(path, 0, 2, (_node, _from, count) => entered.push(count));
  cache.share(path, 0, 2, (_node, _from, count) => entered.push(count));
  assert.equal(entered, [2]);
  // Two of four blocks are free now.
  assert.ok(cache.admit(Int32Array.of(1), 0, 2, () => assert.unreachable()));
});

test.run();
