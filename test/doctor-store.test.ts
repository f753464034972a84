// What is wrong with a store's masters, found over real sockets: events off, standbys, wrong ports, HTTP that fails, tenants, drift, lost messages.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SimulatedMaster } from '../src/fleet/master.js';
import { collectEvidence } from '../src/server/doctor/collect.js';
import type { DoctorTarget } from '../src/server/doctor/evidence.js';
import { examine, failed, said, specOf, targetOf, withFleet } from './support/doctor.js';
import { complete, tokensOf, until, zeromq } from './support/fleet-worker.js';

/** A target of masters alone. */
function storeOf(masters: DoctorTarget['sharedCache']['masters']): DoctorTarget {
  const target = targetOf([], []);
  return { ...target, sharedCache: { ...target.sharedCache, type: 'mooncake-store', masters } };
}

async function withMaster<T>(
  options: Partial<Parameters<typeof SimulatedMaster.start>[0]>,
  work: (master: SimulatedMaster) => Promise<T>,
): Promise<T> {
  const master = await SimulatedMaster.start({ generation: 'C', ...options });
  try {
    return await work(master);
  } finally {
    await master.close();
  }
}

const endpointOf = ({ eventsEndpoint, httpUrl }: SimulatedMaster) => ({ events: eventsEndpoint, http: httpUrl });

if (zeromq !== null) {
  for (const generation of ['A', 'B', 'C'] as const) {
    test(`the wire's generation is said: ${generation}`, () =>
      withMaster({ generation }, async (master) => {
        const findings = await examine(storeOf([endpointOf(master)]));
        assert.equal(failed(findings), []);
        assert.match(said(findings, 'master-state'), new RegExp(`generation ${generation}`));
        assert.match(said(findings, 'master-stream'), /quiet, as its counters say/);
        assert.is(master.queryKeyUses, 0);
      }));
  }

  test('a master without events', () =>
    withMaster({ events: false }, async (master) => {
      const findings = await examine(storeOf([endpointOf(master)]));
      assert.equal(failed(findings), ['master-state', 'master-port']);
      assert.match(said(findings, 'master-state'), /it runs with KV events off FIX Start it with --enable_kv_events/);
    }));

  test('standbys alone', () =>
    withMaster({ role: 'standby' }, async (master) => {
      const findings = await examine(storeOf([endpointOf(master)]));
      assert.equal(failed(findings), ['master-state']);
      assert.match(said(findings, 'master-state'), /failed store: every master is a standby/);
      assert.match(said(findings, 'master-port'), /skipped .*: a standby binds no event socket/);
      assert.match(said(findings, 'key-prefixes'), /skipped store: no master serves over HTTP/);
    }));

  test('two that serve are of two clusters', () =>
    withMaster({}, (one) =>
      withMaster({}, async (other) => {
        const findings = await examine(storeOf([endpointOf(one), endpointOf(other)]));
        assert.equal(failed(findings), ['master-state']);
        assert.match(
          said(findings, 'master-state'),
          /2 masters serve FIX The masters of sharedCache.masters must be of one cluster/,
        );
      }),
    ));

  test('HTTP that is not configured, down, or of another process; events at the HTTP port', () =>
    withFleet({ workers: 1 }, async (fleet) => {
      const { events, http } = endpointOf(fleet.masters[0]!);
      for (const [endpoint, codes, code, words] of [
        [{ events, http: null }, ['master-http'], 'master-http', /its HTTP is not configured/],
        [{ events, http: 'http://127.0.0.1:1' }, ['master-http'], 'master-http', /127.0.0.1:1/],
        [{ events, http: fleet.workers[0]!.httpUrl }, ['master-http'], 'master-http', /status 404/],
        [{ events: http.replace('http', 'tcp'), http }, ['master-port'], 'master-port', /answers as an HTTP server/],
        [{ events: 'tcp://127.0.0.1:1', http }, ['master-port'], 'master-port', /nothing listens/],
      ] as const) {
        const findings = await examine(storeOf([endpoint]));
        assert.equal(failed(findings), codes, JSON.stringify(endpoint));
        assert.match(said(findings, code), words);
      }
    }));

  test('events of another master than the one whose HTTP is asked', () =>
    withMaster({}, (one) =>
      withMaster({}, async (other) => {
        const target = storeOf([{ events: other.eventsEndpoint, http: one.httpUrl }]);
        const listening = examine(target);
        await until('the first list', () => one.requests('/get_all_keys') > 0);
        one.burst(5);
        const findings = await listening;
        assert.equal(failed(findings), ['master-stream']);
        assert.match(said(findings, 'master-stream'), /its counters moved from 0 to 1, and nothing of it was heard/);
      }),
    ));

  test('objects of another tenant alone', () =>
    withMaster({}, async (master) => {
      const listening = examine(storeOf([endpointOf(master)]));
      await master.subscribed();
      master.putEnd('key', 'cpu', 10, { tenant: 'other' });
      const findings = await listening;
      assert.equal(failed(findings), ['tenants']);
      assert.match(said(findings, 'tenants'), /all events are of other/);
    }));

  test('what an old master removes without a word is drift; what a new one announces is none', async () => {
    for (const [generation, codes, words] of [
      ['A', ['reconcile-drift'], /of 13 keys, 3 vanished and 0 appeared without a message FIX Old masters/],
      ['C', [], /ok store: 10 keys, all as the events say/],
    ] as const) {
      await withMaster({ generation }, async (master) => {
        const keys = master.burst(12);
        await master.flushed();
        const listening = examine(storeOf([endpointOf(master)]));
        await until(
          'the first list',
          () => master.requests('/get_all_keys') > 0 && master.requests('/kv_events/status') > 1,
        );
        master.burst(1);
        master.batchRemove(keys.slice(0, 3), { force: true });
        const findings = await listening;
        assert.equal(failed(findings), codes);
        assert.match(said(findings, 'reconcile-drift'), words);
      });
    }
  });

  test('a master that begins anew is no drift', () =>
    withMaster({}, async (master) => {
      master.burst(5);
      await master.flushed();
      const listening = examine(storeOf([endpointOf(master)]), { seconds: 1.5 });
      await until('the first list', () => master.requests('/kv_events/status') > 1);
      master.burst(2);
      await master.flushed();
      await master.restart();
      await master.subscribed();
      master.burst(1);
      const findings = await listening;
      assert.match(said(findings, 'reconcile-drift'), /skipped store: everything was cleared, the master began anew/);
      assert.equal(failed(findings), []);
    }));

  test('messages that are lost on the way are seen as a gap', () =>
    withMaster({}, async (master) => {
      const listening = examine(storeOf([endpointOf(master)]));
      await master.subscribed();
      master.burst(1);
      await master.flushed();
      master.loseNextMessages(2);
      for (let i = 0; i < 3; i++) {
        master.burst(1);
        await master.flushed();
      }
      const findings = await listening;
      assert.equal(failed(findings), ['master-stream']);
      assert.match(said(findings, 'master-stream'), /2 numbers skipped among 2 messages/);
      assert.match(said(findings, 'reconcile-drift'), /skipped store: messages were missed/);
    }));

  test('a master that names no objects', () =>
    withMaster({ generation: 'A', emitObjectKey: false }, async (master) => {
      const listening = examine(storeOf([endpointOf(master)]));
      await master.subscribed();
      master.putEnd('42', 'cpu', 10);
      const findings = await listening;
      assert.match(
        said(findings, 'master-state'),
        /1 of its events name no object FIX Start it with --kv_events_emit_object_key=true/,
      );
    }));

  test('the examination ends early when it is told to, and leaves no socket open', () =>
    withFleet({}, async (fleet) => {
      await complete(fleet.workers[0]!.httpUrl, tokensOf(1, 40));
      const ended = new AbortController();
      const target = targetOf(
        fleet.workers.map((worker) => specOf(worker)),
        fleet.masters,
      );
      const collecting = collectEvidence(target, { seconds: 600, signal: ended.signal });
      await fleet.masters[0]!.subscribed();
      ended.abort();
      const { workers } = await collecting;
      assert.is(workers.length, 2);
    }));

  test('an endpoint that is none is refused, and what was opened before it is closed', () =>
    withFleet({}, async (fleet) => {
      const [first, second] = fleet.workers.map((worker) => specOf(worker));
      try {
        await collectEvidence(targetOf([first!, { ...second!, events: 'tcp://*:5557' }], fleet.masters), {
          seconds: 1,
        });
        assert.unreachable();
      } catch (error) {
        assert.is((error as { code: string }).code, 'endpoint');
      }
    }));
}

test.run();
