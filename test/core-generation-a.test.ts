// Removals of the master's three wire generations. The oldest names the wrong medium (spec/mooncake-events.md 4), and says so by a nil or
// missing dp_rank: it clears the object in every medium. With an integer dp_rank a removal clears its own medium, and what a
// reconcile found without knowing the medium (design.md 5).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { listed } from './support/key-lists.js';
import { CorePool, prefixOf, removed, stored, without } from './support/messages.js';

const keyOf = (digest: string) => `${prefixOf(0, 0)}@${digest}`;

async function inAllMedia(): Promise<{ pool: CorePool; key: string; media: () => object }> {
  const pool = await CorePool.load('tiny');
  const digest = pool.prompt(1).digest(0);
  const key = keyOf(digest);
  pool.core.replaceResidency(listed(pool, [key]));
  pool.send([stored(key, { medium: 'cpu' }), stored(key, { medium: 'disk' })]);
  const media = () => {
    const { cpu, disk, unknown } = pool.core.census()[0]!;
    return { cpu, disk, unknown };
  };
  assert.equal(media(), { cpu: 1, disk: 1, unknown: 1 });
  return { pool, key, media };
}

for (const [name, spoil] of [
  ['nil', (event: Readonly<Record<string, unknown>>) => event],
  ['missing', (event: Readonly<Record<string, unknown>>) => without(event, 'dp_rank')],
  ['a float', (event: Readonly<Record<string, unknown>>) => ({ ...event, dp_rank: 0.5 })],
  ['text', (event: Readonly<Record<string, unknown>>) => ({ ...event, dp_rank: '0' })],
] as const) {
  test(`dp_rank ${name}: the object goes in every medium`, async () => {
    const { pool, key, media } = await inAllMedia();
    pool.send([spoil(removed(key, { generation: 'A', medium: 'cpu' }))]);
    assert.equal(media(), { cpu: 0, disk: 0, unknown: 0 });
    assert.is(pool.core.stats().digests, 0);
  });
}

for (const rank of [0, 3, -1, 2 ** 31, 2n ** 63n]) {
  test(`dp_rank ${rank}: only its own medium and what was of unknown medium`, async () => {
    const { pool, key, media } = await inAllMedia();
    pool.send([{ ...removed(key, { generation: 'C', medium: 'cpu' }), dp_rank: rank }]);
    assert.equal(media(), { cpu: 0, disk: 1, unknown: 0 });
    pool.send([{ ...removed(key, { generation: 'C', medium: 'disk' }), dp_rank: rank }]);
    assert.is(pool.core.stats().digests, 0);
  });
}

test.run();
