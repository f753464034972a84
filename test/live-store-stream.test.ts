// The store's stream over real sockets, against a simulated master that lies as the real one does: warm on the first request, never above the
// truth for longer than the evidence may age, and every break inside a reconcile's window voids it (design.md 6, spec/mooncake-events.md 4, 5, 10).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { RECONCILE_EVENTS } from '../src/cache/reconcile.js';
import { SimulatedMaster, type SimulatedMasterOptions } from '../src/fleet/master.js';
import { until, zeromq } from './support/fleet-worker.js';
import { HttpGate } from './support/http-gate.js';
import { LivePool, type LivePoolOptions } from './support/live-pool.js';
import { contractOf, Prompt } from './support/messages.js';
import { TcpGate } from './support/tcp-gate.js';

/** Looks at the counters often, so that tests need not wait. */
const KEEPER = { pollEvery: 150, reconcileEvery: 2500 };
const LIST = '/get_all_keys';

interface Scene {
  readonly master: SimulatedMaster;
  readonly pool: LivePool;
  /** Between the subscriber and the master's event socket. */
  readonly gate: TcpGate;
  /** Between its HTTP and whoever asks. */
  readonly http: HttpGate;
  put(prompt: Prompt, blocks?: number): string[];
}

interface SceneOptions extends LivePoolOptions {
  readonly master?: Partial<SimulatedMasterOptions>;
  /** HTTP goes to the master itself, not through the relay. */
  readonly direct?: boolean;
  /** The first key list waits. */
  readonly held?: boolean;
  /** What happens at the master before anybody listens. */
  readonly before?: (master: SimulatedMaster) => void;
}

async function scene(options: SceneOptions, play: (scene: Scene) => Promise<void>): Promise<void> {
  const master = await SimulatedMaster.start({ generation: 'A', ...options.master });
  options.before?.(master);
  await master.flushed();
  const gate = await TcpGate.open(master.eventsEndpoint);
  const http = await HttpGate.open(master.httpUrl);
  if (options.held) http.hold(LIST);
  const place = { eventsEndpoint: gate.endpoint, httpUrl: options.direct ? master.httpUrl : http.url };
  const pool = await LivePool.open(place, { keeper: KEEPER, ...options });
  const put = (prompt: Prompt, blocks = prompt.blocks): string[] => {
    const keys = pool.keys(prompt).slice(0, (pool.keys(prompt).length / prompt.blocks) * blocks);
    for (const key of keys) master.putEnd(key, 'cpu', 1, { segment: 'one' });
    return keys;
  };
  try {
    await play({ master, pool, gate, http, put });
    assert.is(master.queryKeyUses, 0, 'nobody may ask /query_key');
  } finally {
    await pool.close();
    await gate.close();
    await http.close();
    await master.kill();
  }
}

/** The scene once its first reconcile has been accepted. */
const settled = (options: SceneOptions, play: (scene: Scene) => Promise<void>) =>
  scene(options, async (parts) => {
    await until('the first reconcile', () => parts.pool.store.reconciled > 0);
    await play(parts);
  });

if (zeromq !== null) {
  // ---- warm, live ----

  for (const generation of ['A', 'B', 'C'] as const) {
    test(`generation ${generation}: warm on the first request, then what comes and goes`, async () => {
      await scene({ master: { generation } }, async ({ master, pool, put }) => {
        const before = pool.learned(1, 6);
        put(before, 4);
        await pool.credits(before, 4);
        assert.is(pool.store.generation, generation);
        assert.is(pool.store.maxEvidenceAge, generation === 'A' ? 60_000 : 600_000);
        const live = pool.learned(2, 3);
        const keys = put(live);
        await pool.credits(live, 3);
        master.remove(keys[1]!);
        await pool.credits(live, 1);
        assert.equal(pool.store.warnings, []);
      });
    });
  }

  test('a master that was filled before anybody listened', async () => {
    const contract = contractOf({});
    const prompt = new Prompt(1, 5, contract);
    const before = (master: SimulatedMaster) => {
      for (const key of prompt.keys(contract)) master.putEnd(key);
    };
    await scene({ before }, async ({ pool }) => {
      const learned = pool.learned(1, 5);
      await pool.credits(learned, 5);
      assert.is(pool.store.lastReconcile!.cause, 'start');
      assert.is(pool.store.lastReconcile!.placed, 5);
    });
  });

  // ---- what nobody announces ----

  /** What the oldest generation keeps to itself (spec/mooncake-events.md 4): four objects of a prompt, in memory of segment one of client one. */
  const SILENT: Record<string, (master: SimulatedMaster, keys: readonly string[]) => void> = {
    BatchRemove: (master, keys) => master.batchRemove(keys.slice(1)),
    RemoveByRegex: (master, keys) => master.removeByRegex(keys[2]!.slice(-20)),
    RemoveAll: (master) => master.removeAll(),
    'a quota eviction': (master) => master.quotaEvict('default', 2),
    'a segment unmounted': (master) => master.unmountSegment('one'),
    'a client that crashed': (master) => master.clientCrash('client-one'),
    'replicas cleared': (master, keys) => master.replicaClear(keys.slice(3)),
    'a writer that died while it wrote anew': (master, keys) => {
      master.upsertStart(keys[1]!, 7);
      master.writerDies(keys[1]!);
    },
    'an object offloaded, evicted from memory, and its disk unmounted': (master, keys) => {
      for (const key of keys) master.offload(key, { segment: 'two' });
      master.replicaClear(keys);
      assert.is(master.truth().size, keys.length, 'it is on disk still');
      master.unmountLocalDisk('two');
    },
    'objects that appear on a disk': (master, keys) => {
      master.batchRemove(keys);
      for (const key of keys.slice(0, 3)) master.appearOnDisk(key);
    },
    'objects copied, moved and promoted': (master, keys) => {
      master.copy(keys[0]!, 'two');
      master.move(keys[1]!, 'one', 'two');
      master.offload(keys[2]!);
      master.replicaClear([keys[2]!]);
      master.promote(keys[2]!);
    },
    'a put that was revoked': (master, keys) => {
      master.remove(keys[3]!);
      master.putStart(keys[3]!, 1);
      master.putRevoke(keys[3]!);
    },
  };
  for (const [name, mutate] of Object.entries(SILENT)) {
    test(`generation A is silent about ${name}; the first reconcile that began after it is not`, async () => {
      await settled({}, async ({ master, pool, put }) => {
        const prompt = pool.learned(1, 4);
        master.mountSegment('one', 'client-one');
        const keys = put(prompt);
        await pool.credits(prompt, 4);
        mutate(master, keys);
        const truth = pool.restorable(prompt, master.truth());
        await pool.reconciled();
        assert.is(pool.credit(prompt), truth);
      });
    });
  }

  test('a master with an oplog announces no removal at all', async () => {
    await settled({ master: { oplog: true } }, async ({ master, pool, put }) => {
      const prompt = pool.learned(1, 4);
      const keys = put(prompt);
      await pool.credits(prompt, 4);
      master.remove(keys[1]!);
      await pool.reconciled();
      assert.is(pool.credit(prompt), 1);
      assert.ok(pool.store.drifts['key-count']! >= 1, 'found by the count of keys, not by the timer');
    });
  });

  test('objects that a snapshot brought back, and those that it dropped', async () => {
    await settled({}, async ({ master, pool, put }) => {
      const prompt = pool.learned(1, 4);
      const keys = put(prompt);
      await pool.credits(prompt, 4);
      master.takeSnapshot();
      await master.restart({ keep: 'snapshot', silentlyDrop: [keys[2]!] });
      await until(
        'the loss',
        () => pool.store.losses['closed'] !== undefined || Object.keys(pool.store.losses).length > 0,
      );
      await pool.credits(prompt, 2);
    });
  });

  test('a restart whose counters look contiguous', async () => {
    await settled({}, async ({ master, pool, put }) => {
      const prompt = pool.learned(1, 3);
      put(prompt);
      await pool.credits(prompt, 3);
      await master.flushed();
      const { lastSequence } = master;
      await master.restart({
        beforeBind: (reborn) => {
          for (let i = 0; reborn.counts !== null && i < 64 * lastSequence; i++) reborn.putEnd(`foreign-${i}`);
        },
      });
      await pool.credits(prompt, 0);
      put(prompt, 2);
      await pool.credits(prompt, 2);
    });
  });

  test('a queue that overflowed leaves a gap, and the reconcile after it the truth', async () => {
    await settled({ master: { queueCapacity: 8 } }, async ({ master, pool, put }) => {
      const prompt = pool.learned(1, 4);
      put(prompt);
      master.burst(500);
      master.remove(pool.keys(prompt)[3]!);
      await master.flushed();
      await pool.credits(prompt, 3);
    });
  });

  test('a tail that was lost on the way is found by the counters', async () => {
    await settled({}, async ({ master, pool, put }) => {
      const prompt = pool.learned(1, 3);
      const keys = put(prompt);
      await pool.credits(prompt, 3);
      master.loseNextMessages(1);
      master.remove(keys[0]!);
      await pool.credits(prompt, 0);
      assert.is(pool.store.drifts['lost-tail'], 1);
    });
  });

  // ---- what voids a reconcile ----

  /** All that the master sent has come. */
  async function heard({ master, pool }: Scene): Promise<void> {
    await master.flushed();
    await until('the last message', () => pool.store.lastSequence === BigInt(master.lastSequence));
  }

  /** What happens while the first key list is under way, and the reason for which it then must not count. */
  const VOIDS: Record<
    string,
    readonly [reason: string, happens: (scene: Scene) => Promise<void>, options?: SceneOptions]
  > = {
    'a slow joiner: messages between counters and subscription that never came': [
      'slow-joiner',
      async (parts) => {
        const { master } = parts;
        master.loseNextMessages(1);
        master.putEnd('foreign-1');
        await master.flushed();
        master.putEnd('foreign-2');
        await heard(parts);
      },
    ],
    'counters that moved though nothing came': [
      'unseen-messages',
      async ({ master }) => {
        master.loseNextMessages(1);
        master.putEnd('foreign-1');
        await master.flushed();
      },
    ],
    'a gap': [
      'gap',
      async (parts) => {
        const { master } = parts;
        master.putEnd('foreign-1');
        await master.flushed();
        master.loseNextMessages(1);
        master.putEnd('foreign-2');
        await master.flushed();
        master.putEnd('foreign-3');
        await heard(parts);
      },
    ],
    'a message that must be rejected': [
      'malformed:bad-digest',
      async (parts) => {
        const { master, pool } = parts;
        master.putEnd(`${pool.pool.contract.groups[0]!.keyPrefixes[0]}@no-digest`);
        await heard(parts);
      },
    ],
    'a connection that broke': [
      'stream-disconnect',
      async ({ gate, pool }) => {
        gate.cut();
        await until('the loss', () => Object.keys(pool.store.losses).length > 0);
        await until('the connection', () => pool.store.connected);
      },
    ],
    'a change of contract': [
      'contract-change',
      async ({ pool }) => {
        pool.pool.add(0, { contract: contractOf({ model: 'another' }) });
        pool.pool.add(0);
      },
    ],
    'a contract that is pending': [
      'pending',
      async (parts) => {
        const { master } = parts;
        pending = true;
        master.putEnd('foreign-1');
        await heard(parts);
        pending = false;
      },
      { router: { cache: { isPending: () => pending } } },
    ],
    'more messages than are kept': [
      'buffer-overflow',
      async (parts) => {
        const { master, pool } = parts;
        const prompt = pool.pool.prompt(9, 256);
        const keys = pool.keys(prompt);
        for (let round = 0; round * keys.length <= RECONCILE_EVENTS; round++) {
          for (const key of keys) master.upsert(key);
          await master.flushed();
        }
        await heard(parts);
      },
      { master: { queueCapacity: 1_000_000 } },
    ],
  };
  let pending = false;
  for (const [name, [reason, happens, options = {}]] of Object.entries(VOIDS)) {
    test(`void: ${name}`, async () => {
      const keys = new Prompt(1, 3, contractOf({})).keys(contractOf({}));
      const before = (master: SimulatedMaster): void => {
        for (const key of keys) master.putEnd(key);
      };
      await scene({ ...options, held: true, before }, async (parts) => {
        const { master, pool, http } = parts;
        // Two of them are gone without a word before it is delivered: whoever believes it credits too much.
        await until('the key list to be answered', () => http.waiting === 1);
        master.batchRemove(keys.slice(1));
        await happens(parts);
        http.release();
        await until('a void', () => Object.keys(pool.store.voided).length > 0);
        assert.equal([pool.store.voided, pool.store.reconciled], [{ [reason]: 1 }, 0]);
        await pool.credits(pool.learned(1, 3), 1);
      });
    });
  }

  // ---- HTTP that fails ----

  const AGEING: LivePoolOptions = {
    keeper: { ...KEEPER, maxEvidenceAge: 1500, reconcileEvery: 500 },
    http: { silence: 100, listTime: 400, listBytes: 1 << 20 },
  };
  const FAULTS: Record<string, (master: SimulatedMaster) => Promise<void> | void> = {
    down: (master) => master.httpDown(),
    'silent everywhere': (master) => master.setHttpFault({ kind: 'silent' }),
    'slow with the list': (master) => master.setHttpFault({ kind: 'slow', bytesPerSecond: 100 }, LIST),
    'cutting the list short': (master) => master.setHttpFault({ kind: 'truncated', share: 0.5 }, LIST),
    'pouring out a huge list': (master) => master.setHttpFault({ kind: 'huge', bytes: 1 << 22 }, LIST),
    '503 for the list': (master) => master.setHttpFault({ kind: 'status', status: 503 }, LIST),
    '500 everywhere': (master) => master.setHttpFault({ kind: 'status', status: 500 }),
    'talking nonsense': (master) => master.setHttpFault({ kind: 'garbage' }, '/kv_events/status'),
  };
  for (const [name, fail] of Object.entries(FAULTS)) {
    test(`HTTP ${name}: hints fade by evidence age, the status says so, and both end with it`, async () => {
      await settled({ ...AGEING, direct: true }, async ({ master, pool, put }) => {
        const prompt = pool.learned(1, 3);
        put(prompt);
        await pool.credits(prompt, 3);
        await fail(master);
        await until('hints to fade', () => pool.credit(prompt) === 0 && pool.store.expired > 0);
        await until('a warning', () => pool.store.warnings.length > 0);
        assert.match(pool.store.warnings.join(), /evidence age|standby/);
        master.setHttpFault(null);
        master.setHttpFault(null, LIST);
        master.setHttpFault(null, '/kv_events/status');
        await master.httpUp();
        await pool.credits(prompt, 3);
        await until('no warning', () => pool.store.warnings.length === 0);
      });
    });
  }

  test('without HTTP: warm from the stream, and dropped at its age', async () => {
    await scene(
      { keeper: { ...KEEPER, maxEvidenceAge: 800, reconcileEvery: 250 }, withHttp: false },
      async ({ master, pool, put }) => {
        await master.subscribed();
        const prompt = pool.learned(1, 3);
        put(prompt);
        await pool.credits(prompt, 3);
        await pool.credits(prompt, 0);
        assert.match(pool.store.warnings.join(), /not configured/);
      },
    );
  });

  test('a master that says that it sends nothing', async () => {
    await scene({ master: { events: false } }, async ({ pool }) => {
      await until('its state', () => pool.store.masters[0]!.state === 'events-off');
      assert.match(pool.store.warnings.join(), /enable_kv_events/);
      assert.not(pool.store.connected);
    });
  });

  // ---- connections ----

  test('a half-open connection is loss: the heartbeat finds it', async () => {
    await settled({}, async ({ pool, put, gate, master }) => {
      const prompt = pool.learned(1, 2);
      put(prompt);
      await pool.credits(prompt, 2);
      gate.freeze();
      master.remove(pool.keys(prompt)[0]!);
      await pool.credits(prompt, 0);
      gate.thaw();
      put(prompt);
      await pool.credits(prompt, 2);
    });
  });

  test('messages that never stop do not hold a reconcile up', async () => {
    await settled({}, async ({ master, pool, put }) => {
      const prompt = pool.learned(1, 3);
      put(prompt);
      const flow = setInterval(() => master.burst(1), 1);
      try {
        for (let round = 0; round < 3; round++) await pool.reconciled();
      } finally {
        clearInterval(flow);
      }
      assert.is(pool.credit(prompt), 3);
      assert.equal(pool.store.voided, {});
    });
  });

  // ---- several masters ----

  test('of several masters the one that serves is followed, through a failover and back, from a reconcile each time', async () => {
    const first = await SimulatedMaster.start({ generation: 'C', role: 'leader' });
    const second = await SimulatedMaster.start({ generation: 'C', role: 'standby' });
    const pool = await LivePool.open([second, first], { keeper: KEEPER });
    try {
      await until('the leader', () => pool.store.followed === 1 && pool.store.reconciled > 0);
      const prompt = pool.learned(1, 4);
      for (const key of pool.keys(prompt)) first.putEnd(key);
      await pool.credits(prompt, 4);
      await SimulatedMaster.failover(first, second);
      second.remove(pool.keys(prompt)[2]!);
      await pool.credits(prompt, 2);
      assert.is(pool.store.followed, 0);
      await SimulatedMaster.failover(second, first);
      await until('the first again', () => pool.store.followed === 1);
      await pool.credits(prompt, 2);
    } finally {
      await pool.close();
      await first.kill();
      await second.kill();
    }
  });

  test.run();
}
