// The gates that a worker's event passes, and what is remembered between events: spec/kv-events.md 1.8 to 1.11. Every event is
// MessagePack that goes through WorkerEvents.read, in map form and, where that form has a slot for it, as an array too.
import { Encoder } from '@msgpack/msgpack';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { DropReason, NormalisedEvent } from '../src/events/normaliser.js';
import { WorkerEvents } from '../src/events/worker-events.js';
import { framesOf } from './support/messages.js';

type Fields = Readonly<Record<string, unknown>>;

const encoder = new Encoder({ useBigInt64: true });
const BLOCK_SIZE = 4;
const MAIN_KINDS = ['full_attention', 'mla_attention', 'sink_full_attention'];
const OTHER_KINDS = [
  'sliding_window',
  'sliding_window_mla',
  'mamba',
  'chunked_local_attention',
  'encoder_only_attention',
  'cross_attention',
];

const stored = (fields: Fields = {}): Fields => ({
  type: 'BlockStored',
  block_hashes: [1000],
  parent_block_hash: null,
  token_ids: [1, 2, 3, 4],
  block_size: BLOCK_SIZE,
  ...fields,
});
const removed = (fields: Fields = {}): Fields => ({ type: 'BlockRemoved', block_hashes: [1000], ...fields });
const cleared = (fields: Fields = {}): Fields => ({ type: 'AllBlocksCleared', ...fields });

const TAIL = ['group_idx', 'kv_cache_spec_kind', 'kv_cache_spec_sliding_window', 'locality', 'ownership'];
/** Fields by their slots in the array form, the fixed tail behind them. */
const SLOTS: Readonly<Record<string, readonly string[]>> = {
  BlockStored: [
    ...['type', 'block_hashes', 'parent_block_hash', 'token_ids', 'block_size'],
    ...['lora_id', 'medium', 'lora_name', 'extra_keys', ...TAIL],
  ],
  BlockRemoved: ['type', 'block_hashes', 'medium', ...TAIL],
  AllBlocksCleared: ['type', 'ownership'],
};

/** The event as an array. */
function positional(event: Fields): unknown[] {
  const slots = SLOTS[event['type'] as string]!;
  for (const field of Object.keys(event)) assert.ok(slots.includes(field), `${field} has no slot`);
  return slots.map((field) => event[field] ?? null);
}

/** Reads for all tests, since making one costs more than most of them. */
const everybody = new WorkerEvents();
let workersMade = 0;

/** One rank of a worker, a new one unless it is named, and what becomes of the events that it publishes. */
class Rank {
  readonly workerId: string;
  readonly dpRank: number;

  constructor(workerId = `worker-${workersMade++}`, dpRank = 0) {
    this.workerId = workerId;
    this.dpRank = dpRank;
  }

  /** Publishes one message. */
  sayAll(said: readonly unknown[]): readonly NormalisedEvent[] {
    const payload = encoder.encode([0, said, this.dpRank]);
    const { events, rejected } = everybody.read(this.workerId, framesOf(0, payload));
    assert.equal(rejected, [], 'all events are well formed');
    return events;
  }

  say(event: unknown): NormalisedEvent {
    return this.sayAll([event])[0]!;
  }

  /** The event's kind, or the label under which it was dropped. */
  verdict(event: unknown): DropReason | 'stored' | 'removed' | 'cleared' {
    const said = this.say(event);
    return said.kind === 'dropped' ? said.reason : said.kind;
  }

  /** Namespace and ineligibility of one stored block of this hash, or the label under which it was dropped. */
  store(hash: number, fields: Fields = {}): [namespace: string | null, ineligible: string | null] | DropReason {
    const said = this.say(stored({ block_hashes: [hash], ...fields }));
    if (said.kind === 'stored') return [said.namespace, said.ineligible];
    if (said.kind === 'dropped') return said.reason;
    throw new Error(`read as ${said.kind}`);
  }

  /** The namespace that a block without a salt inherits from the block `parent`. */
  inherited(parent: number): string | null | DropReason {
    const said = this.store(parent + 100_000, { parent_block_hash: parent });
    return typeof said === 'string' ? said : said[0];
  }
}

/** A group that every rank of `primed` knows as a sliding window, and a hash of two namespaces. */
const SLIDING_GROUP = 2;
const AMBIGUOUS_HASH = 66;

/** A rank that every gate can stop. */
function primed(): Rank {
  const rank = new Rank();
  rank.say(stored({ group_idx: SLIDING_GROUP, kv_cache_spec_kind: 'sliding_window' }));
  rank.store(AMBIGUOUS_HASH, { cache_salt: 'tenant-a' });
  rank.store(AMBIGUOUS_HASH, { cache_salt: 'tenant-b' });
  return rank;
}

const gates = suite('gates');

/** What each gate stops, in the order of the gates; a removal has no namespace to fail by. */
const FAILURES: readonly (readonly [gate: string, label: DropReason, fields: Fields])[] = [
  ['ownership', 'unsupported_ownership', { ownership: 'kvcr' }],
  ['ownership', 'unknown_ownership', { ownership: 'somebody' }],
  ['locality', 'non_local_locality', { locality: 'REMOTE' }],
  ['medium', 'unknown_medium', { medium: 'cpu' }],
  ['group', 'non_main_attention_kind', { kv_cache_spec_kind: 'mamba' }],
  ['group', 'unknown_kind', { kv_cache_spec_kind: 'unknown' }],
  ['group', 'non_main_attention_group', { group_idx: SLIDING_GROUP }],
  ['group', 'unlearned_group_idx', { group_idx: 9 }],
  ['namespace', 'ambiguous_cache_namespace', { parent_block_hash: AMBIGUOUS_HASH }],
];
const FORMS = [
  ['map', (event: Fields): unknown => event],
  ['array', positional],
] as const;

for (const [form, encoded] of FORMS) {
  for (const [gate, label, fields] of FAILURES) {
    gates(`${gate} stops a stored event as ${label} (${form})`, () => {
      assert.is(primed().verdict(encoded(stored(fields))), label);
    });

    const later = FAILURES.slice(FAILURES.findLastIndex(([other]) => other === gate) + 1);
    for (const [laterGate, , laterFields] of later) {
      gates(`${gate} comes before ${laterGate}: ${JSON.stringify({ ...fields, ...laterFields })} (${form})`, () => {
        assert.is(primed().verdict(encoded(stored({ ...fields, ...laterFields }))), label, 'stored');
        if (laterGate === 'namespace') return;
        assert.is(primed().verdict(encoded(removed({ ...fields, ...laterFields }))), label, 'removed');
      });
    }
    if (gate === 'namespace') continue;
    gates(`${gate} stops a removal as ${label} (${form})`, () => {
      assert.is(primed().verdict(encoded(removed(fields))), label);
    });
  }

  gates(`what every gate stops at once is stopped by the first (${form})`, () => {
    const all = Object.assign({}, ...FAILURES.map(([, , fields]) => fields), { ownership: 'kvcr' }) as Fields;
    assert.is(primed().verdict(encoded(stored(all))), 'unsupported_ownership');
  });

  gates(`what no gate stops passes, and says where it was (${form})`, () => {
    const fields = { medium: 'CPU', group_idx: 0, kv_cache_spec_kind: 'full_attention', locality: 'LOCAL' };
    const rank = primed();
    const arrived = rank.say(encoded(stored(fields)));
    assert.ok(arrived.kind === 'stored' && arrived.tier === 'host_pinned' && arrived.event.groupIdx === 0);
    const left = rank.say(encoded(removed(fields)));
    assert.ok(left.kind === 'removed' && left.tier === 'host_pinned' && left.event.groupIdx === 0);
    assert.equal(rank.say(encoded(cleared())), { kind: 'cleared' });
  });

  gates(`a clear passes the gate of ownership alone (${form})`, () => {
    const rank = primed();
    rank.store(1, { cache_salt: 'tenant-a' });
    assert.is(rank.verdict(encoded(cleared({ ownership: 'kvcr' }))), 'unsupported_ownership');
    assert.is(rank.verdict(encoded(cleared({ ownership: 'somebody' }))), 'unknown_ownership');
    assert.is(rank.inherited(1), 'tenant-a', 'a dropped clear forgets nothing');
    assert.is(rank.verdict(encoded(cleared())), 'cleared');
    assert.is(rank.inherited(1), null);
  });
}

gates('an ignored event is dropped as such, whatever stands beside its tag', () => {
  const all = Object.assign({}, ...FAILURES.map(([, , fields]) => fields)) as Fields;
  for (const event of [{ type: 'Ignored' }, { type: 'Ignored', ...all }, ['Ignored'], ['Ignored', 'kvcr', 'REMOTE']]) {
    assert.is(primed().verdict(event), 'ignored_event');
  }
});

gates('a clear in map form has no place: locality and medium beside it mean nothing', () => {
  assert.is(primed().verdict(cleared({ locality: 'REMOTE', medium: 'cpu', group_idx: 9 })), 'cleared');
});

gates('the ten labels: each is given above, and no other', () => {
  const labels: Readonly<Record<DropReason, true>> = {
    ignored_event: true,
    non_local_locality: true,
    unknown_medium: true,
    unsupported_ownership: true,
    unknown_ownership: true,
    ambiguous_cache_namespace: true,
    non_main_attention_kind: true,
    unknown_kind: true,
    non_main_attention_group: true,
    unlearned_group_idx: true,
  };
  const given = ['ignored_event', ...FAILURES.map(([, label]) => label)];
  assert.equal(given.sort(), Object.keys(labels).sort());
});

gates('a dropped event is handed on with its label', () => {
  const { kind, ...dropped } = primed().say(stored({ medium: 'HBM' }));
  assert.is(kind, 'dropped');
  assert.ok('event' in dropped && dropped.event.type === 'stored');
  assert.is(dropped.event.medium, 'HBM');
});

gates.run();

const places = suite('ownership, locality and medium');

const TIERS = {
  device: [undefined, null, '', 'GPU', 'DEVICE'],
  host_pinned: ['CPU', 'CPU_PINNED', 'CPU_TIER1'],
  disk: ['CPU_TIER2', 'DISK', 'NVME', 'STORAGE'],
  external: ['EXTERNAL', 'NETWORK', 'REMOTE', 'SHARED'],
};

for (const [tier, media] of Object.entries(TIERS)) {
  places(`${tier}: ${media.map((medium) => JSON.stringify(medium) ?? 'absent').join(', ')}`, () => {
    for (const medium of media) {
      for (const event of [stored({ medium }), removed({ medium })]) {
        const said = new Rank().say(event);
        assert.ok(said.kind === 'stored' || said.kind === 'removed');
        assert.is(said.tier, tier, `${said.kind} in ${medium}`);
      }
    }
  });

  places(`${tier}: only what is local, or says nothing of it, passes`, () => {
    const medium = media.at(-1);
    for (const locality of [undefined, null, 'LOCAL']) {
      assert.is(new Rank().verdict(stored({ medium, locality })), 'stored', `${locality}`);
      assert.is(new Rank().verdict(removed({ medium, locality })), 'removed', `${locality}`);
    }
    for (const locality of ['REMOTE', 'local', 'Local', 'LOCAL ', 'GLOBAL', '']) {
      assert.is(new Rank().verdict(stored({ medium, locality })), 'non_local_locality', `'${locality}'`);
      assert.is(new Rank().verdict(removed({ medium, locality })), 'non_local_locality', `'${locality}'`);
    }
  });
}

places('a medium is named in capitals and in full', () => {
  for (const medium of ['cpu', 'gpu', 'Gpu', 'GPU ', ' ', 'HBM', 'disk', 'storage', 'CPU_TIER3', 'toString']) {
    assert.is(new Rank().verdict(stored({ medium })), 'unknown_medium', medium);
    assert.is(new Rank().verdict(removed({ medium })), 'unknown_medium', medium);
  }
});

places('an owner is nobody, or exactly kvcr, or unknown', () => {
  for (const [passed, event] of Object.entries({ stored, removed, cleared })) {
    assert.is(new Rank().verdict(event()), passed);
    assert.is(new Rank().verdict(event({ ownership: null })), passed);
    assert.is(new Rank().verdict(event({ ownership: 'kvcr' })), 'unsupported_ownership');
    for (const ownership of ['KVCR', 'framework', '']) {
      assert.is(new Rank().verdict(event({ ownership })), 'unknown_ownership', `'${ownership}'`);
    }
  }
});

places('the placeholder of a STORAGE store is a disk event without blocks', () => {
  const event = { block_hashes: [7], token_ids: [], block_size: 0, medium: 'STORAGE' };
  for (const block_hashes of [[], [7]]) {
    const said = new Rank().say(stored({ ...event, block_hashes }));
    assert.ok(said.kind === 'stored' && said.tier === 'disk');
  }
});

places.run();

const groups = suite('main attention group');

groups('a kind decides by itself, whatever the group', () => {
  const kinds: [kinds: readonly string[], verdict: string][] = [
    [MAIN_KINDS, 'stored'],
    [OTHER_KINDS, 'non_main_attention_kind'],
    [['unknown', 'FULL_ATTENTION', 'full attention', '', 'constructor'], 'unknown_kind'],
  ];
  for (const [names, verdict] of kinds) {
    for (const kv_cache_spec_kind of names) {
      for (const group_idx of [undefined, 0, 1, 0xffff_ffff]) {
        const label = `${kv_cache_spec_kind}, group ${group_idx}`;
        assert.is(new Rank().verdict(stored({ group_idx, kv_cache_spec_kind })), verdict, label);
        const gone = verdict === 'stored' ? 'removed' : verdict;
        assert.is(new Rank().verdict(removed({ group_idx, kv_cache_spec_kind })), gone, `removed, ${label}`);
      }
    }
  }
});

groups('a kind beats what was learned of the group, in both directions, and is learned instead', () => {
  const rank = new Rank();
  rank.say(stored({ group_idx: 1, kv_cache_spec_kind: 'mamba' }));
  assert.is(rank.verdict(removed({ group_idx: 1, kv_cache_spec_kind: 'full_attention' })), 'removed');
  assert.is(rank.verdict(stored({ group_idx: 1 })), 'non_main_attention_group');
  assert.is(rank.verdict(stored({ group_idx: 1, kv_cache_spec_kind: 'full_attention' })), 'stored');
  assert.is(rank.verdict(stored({ group_idx: 1 })), 'stored');
  assert.is(rank.verdict(stored({ group_idx: 1, kv_cache_spec_kind: 'mamba' })), 'non_main_attention_kind');
  assert.is(rank.verdict(stored({ group_idx: 1 })), 'non_main_attention_group');
});

/** What is told first, and what then becomes of events that name a group without its kind. */
const LEARNED: readonly (readonly [why: string, first: Fields, group: number | null, verdict: string])[] = [
  ['nothing learned, no group', removed(), null, 'stored'],
  ['nothing learned, group 0', removed(), 0, 'stored'],
  ['nothing learned, another group', removed(), 1, 'unlearned_group_idx'],
  ['learned main, index not 0', stored({ group_idx: 3, kv_cache_spec_kind: 'mla_attention' }), 3, 'stored'],
  ['learned main, index 0', stored({ group_idx: 0, kv_cache_spec_kind: 'full_attention' }), 0, 'stored'],
  [
    'learned non-main, index 0',
    stored({ group_idx: 0, kv_cache_spec_kind: 'sliding_window' }),
    0,
    'non_main_attention_group',
  ],
  ['learned non-main, no group', stored({ group_idx: 0, kv_cache_spec_kind: 'sliding_window' }), null, 'stored'],
  ['learned of unknown kind', stored({ group_idx: 3, kv_cache_spec_kind: 'unknown' }), 3, 'non_main_attention_group'],
  ['another group learned', stored({ group_idx: 3, kv_cache_spec_kind: 'full_attention' }), 4, 'unlearned_group_idx'],
  ['a kind without a group teaches nothing', stored({ kv_cache_spec_kind: 'mamba' }), 0, 'stored'],
  ['a group without a kind teaches nothing', stored({ group_idx: 3 }), 3, 'unlearned_group_idx'],
  [
    'a removal never teaches',
    removed({ group_idx: 3, kv_cache_spec_kind: 'full_attention' }),
    3,
    'unlearned_group_idx',
  ],
  ['a removal never teaches of group 0', removed({ group_idx: 0, kv_cache_spec_kind: 'mamba' }), 0, 'stored'],
  [
    'host-tier events teach',
    stored({ medium: 'CPU', group_idx: 3, kv_cache_spec_kind: 'full_attention' }),
    3,
    'stored',
  ],
  [
    'events of another owner teach nothing',
    stored({ ownership: 'kvcr', group_idx: 3, kv_cache_spec_kind: 'full_attention' }),
    3,
    'unlearned_group_idx',
  ],
  [
    'remote events teach nothing',
    stored({ locality: 'REMOTE', group_idx: 3, kv_cache_spec_kind: 'full_attention' }),
    3,
    'unlearned_group_idx',
  ],
  [
    'events of an unknown medium teach nothing',
    stored({ medium: 'HBM', group_idx: 0, kv_cache_spec_kind: 'mamba' }),
    0,
    'stored',
  ],
  [
    'disk events teach nothing',
    stored({ medium: 'DISK', group_idx: 3, kv_cache_spec_kind: 'full_attention' }),
    3,
    'unlearned_group_idx',
  ],
  [
    'external events teach nothing',
    stored({ medium: 'SHARED', group_idx: 0, kv_cache_spec_kind: 'mamba' }),
    0,
    'stored',
  ],
];

for (const [why, first, group_idx, verdict] of LEARNED) {
  groups(why, () => {
    const rank = new Rank();
    rank.say(first);
    assert.is(rank.verdict(stored({ group_idx })), verdict);
    assert.is(rank.verdict(stored({ group_idx, medium: 'CPU' })), verdict, 'host tier');
    assert.is(rank.verdict(removed({ group_idx })), verdict === 'stored' ? 'removed' : verdict, 'removal');
  });
}

groups('an event that is dropped for its namespace has taught its group before', () => {
  const rank = primed();
  const event = { parent_block_hash: AMBIGUOUS_HASH, group_idx: 3, kv_cache_spec_kind: 'full_attention' };
  assert.is(rank.verdict(stored(event)), 'ambiguous_cache_namespace');
  assert.is(rank.verdict(stored({ group_idx: 3 })), 'stored');
});

groups('disk and external events pass whatever their group and kind', () => {
  for (const medium of [...TIERS.disk, ...TIERS.external]) {
    for (const fields of [{ kv_cache_spec_kind: 'mamba' }, { kv_cache_spec_kind: 'x' }, { group_idx: SLIDING_GROUP }]) {
      assert.is(primed().verdict(stored({ medium, ...fields })), 'stored', medium);
      assert.is(primed().verdict(removed({ medium, ...fields })), 'removed', medium);
    }
  }
});

groups('ranks and workers do not share their groups', () => {
  const teacher = new Rank();
  const others = [new Rank(teacher.workerId, 1), new Rank()];
  teacher.say(stored({ group_idx: 3, kv_cache_spec_kind: 'full_attention' }));
  for (const other of others) assert.is(other.verdict(stored({ group_idx: 3 })), 'unlearned_group_idx');
  for (const other of others) other.say(stored({ group_idx: 3, kv_cache_spec_kind: 'mamba' }));
  assert.is(teacher.verdict(stored({ group_idx: 3 })), 'stored');
});

groups('a clear leaves groups known', () => {
  const rank = primed();
  rank.say(cleared());
  assert.is(rank.verdict(stored({ group_idx: SLIDING_GROUP })), 'non_main_attention_group');
});

groups('256 groups are remembered; those may change their kind, others are not learned', () => {
  const rank = new Rank();
  const teach = (group_idx: number, kv_cache_spec_kind = 'full_attention') =>
    rank.verdict(stored({ group_idx, kv_cache_spec_kind }));
  for (let group = 1; group <= 256; group++) assert.is(teach(group), 'stored');
  assert.is(teach(257), 'stored', 'its kind still lets it pass');
  assert.is(rank.verdict(stored({ group_idx: 256 })), 'stored');
  assert.is(rank.verdict(stored({ group_idx: 257 })), 'unlearned_group_idx');
  teach(1, 'mamba');
  assert.is(rank.verdict(stored({ group_idx: 1 })), 'non_main_attention_group');
});

groups.run();

const namespaces = suite('cache namespace');

const TAG = 'dynamo-cache-salt:tenant-a';
const utf8 = (text: string) => new TextEncoder().encode(text);

/** Ways in which an event names its namespace, or does not. */
const OWN: readonly (readonly [why: string, fields: Fields, namespace: string | null])[] = [
  ['nothing said', {}, null],
  ['an explicit salt', { cache_salt: 'tenant-a' }, 'tenant-a'],
  ['a tagged salt among the extra keys', { extra_keys: [[TAG]] }, 'tenant-a'],
  ['a tagged salt as binary', { extra_keys: [[utf8(TAG)]] }, 'tenant-a'],
  ['binary that is no UTF-8 ends the search', { extra_keys: [[Uint8Array.of(0xff), TAG]] }, null],
  ['the first tagged salt counts', { extra_keys: [[TAG, 'dynamo-cache-salt:tenant-b']] }, 'tenant-a'],
  ['an explicit salt beats a tagged one', { cache_salt: 'tenant-b', extra_keys: [[TAG]] }, 'tenant-b'],
  ['an empty explicit salt is none, whatever the extra keys say', { cache_salt: '', extra_keys: [[TAG]] }, null],
  ['a tag behind the LoRA name', { lora_name: 'lora', extra_keys: [['lora', TAG]] }, 'tenant-a'],
  ['a LoRA that is named like a tag', { lora_name: TAG, extra_keys: [[TAG]] }, null],
  ['a LoRA that is named like the tag before it', { lora_name: TAG, extra_keys: [[TAG, TAG]] }, 'tenant-a'],
  ['a tag of nothing', { extra_keys: [['dynamo-cache-salt:']] }, null],
  ['a raw salt', { extra_keys: [['tenant-a']] }, null],
  ['a tag in the second block', { block_hashes: [1, 2], extra_keys: [null, [TAG]] }, null],
];

for (const [why, fields, namespace] of OWN) {
  namespaces(`own: ${why}`, () => {
    const rank = new Rank();
    const said = rank.store(1, fields);
    assert.is(said[0], namespace);
    assert.is(rank.inherited(1), namespace, 'and so for the block behind it');
  });
}

namespaces('a child without a salt inherits, through any number of generations, and may teach', () => {
  const rank = new Rank();
  assert.equal(rank.store(1, { cache_salt: 'tenant-a' }), ['tenant-a', null]);
  for (const hash of [2, 3, 4]) {
    assert.equal(rank.store(hash, { parent_block_hash: hash - 1 }), ['tenant-a', null], `block ${hash}`);
  }
});

namespaces('all blocks of an event have its namespace', () => {
  const rank = new Rank();
  rank.say(stored({ block_hashes: [1, 2, 3], cache_salt: 'tenant-a' }));
  for (const hash of [1, 2, 3]) assert.is(rank.inherited(hash), 'tenant-a');
});

namespaces('a child that says the namespace again is no conflict', () => {
  const rank = new Rank();
  rank.store(1, { cache_salt: 'tenant-a' });
  for (let round = 0; round < 2; round++) {
    assert.equal(rank.store(2, { parent_block_hash: 1, cache_salt: 'tenant-a' }), ['tenant-a', null]);
    assert.equal(rank.store(2, { parent_block_hash: 1 }), ['tenant-a', null]);
    assert.equal(rank.store(2, { parent_block_hash: 1, cache_salt: '' }), ['tenant-a', null], 'an empty salt inherits');
  }
});

namespaces('a block of an unknown parent is unsalted', () => {
  assert.equal(new Rank().store(2, { parent_block_hash: 1 }), [null, null]);
  const rank = new Rank();
  rank.store(7, { cache_salt: 'tenant-a' });
  assert.equal(rank.store(2, { parent_block_hash: 1 }), [null, null], 'though others are salted');
});

namespaces('a removal forgets its hashes and no others', () => {
  const rank = new Rank();
  rank.say(stored({ block_hashes: [1, 2, 3], cache_salt: 'tenant-a' }));
  rank.say(removed({ block_hashes: [1, 3, 4] }));
  assert.equal(
    [1, 2, 3].map((hash) => rank.inherited(hash)),
    [null, 'tenant-a', null],
  );
  assert.equal(rank.store(1, { cache_salt: 'tenant-b' }), ['tenant-b', null], 'nothing contradicts it now');
});

namespaces('the events of one message count one after the other', () => {
  const rank = new Rank();
  rank.sayAll([
    stored({ block_hashes: [1, 2], cache_salt: 'tenant-a' }),
    stored({ block_hashes: [3], cache_salt: 'tenant-b' }),
    removed({ block_hashes: [2] }),
    stored({ block_hashes: [4, 5], parent_block_hash: 3 }),
    removed({ block_hashes: [5] }),
  ]);
  assert.equal(
    [1, 2, 3, 4, 5].map((hash) => rank.inherited(hash)),
    ['tenant-a', null, 'tenant-b', 'tenant-b', null],
  );
});

namespaces('a host-tier removal forgets as well, a dropped one does not', () => {
  const rank = new Rank();
  for (const [fields, kept] of [
    [{ medium: 'CPU' }, false],
    [{ medium: 'cpu' }, true],
    [{ locality: 'REMOTE' }, true],
    [{ ownership: 'kvcr' }, true],
    [{ kv_cache_spec_kind: 'mamba' }, true],
    [{ group_idx: 9 }, true],
    [{ medium: 'DISK' }, true],
    [{ medium: 'SHARED' }, true],
  ] as const) {
    rank.store(1, { cache_salt: 'tenant-a' });
    rank.say(removed({ block_hashes: [1], ...fields }));
    assert.is(rank.inherited(1), kept ? 'tenant-a' : null, JSON.stringify(fields));
    rank.say(cleared());
  }
});

namespaces('a clear forgets everything of its rank, contradictions too', () => {
  const rank = primed();
  rank.store(1, { cache_salt: 'tenant-a' });
  rank.say(cleared());
  assert.is(rank.inherited(1), null);
  assert.is(rank.inherited(AMBIGUOUS_HASH), null);
  assert.equal(rank.store(AMBIGUOUS_HASH, { cache_salt: 'tenant-a' }), ['tenant-a', null]);
});

namespaces('a child of an ambiguous block is dropped unless it names a namespace', () => {
  const rank = primed();
  const parent_block_hash = AMBIGUOUS_HASH;
  assert.is(rank.store(2, { parent_block_hash }), 'ambiguous_cache_namespace');
  assert.is(rank.store(2, { parent_block_hash, medium: 'CPU' }), 'ambiguous_cache_namespace', 'host tier');
  assert.is(rank.store(2, { parent_block_hash, cache_salt: '' }), 'ambiguous_cache_namespace', 'an empty salt is none');
  assert.is(rank.inherited(2), null, 'and has left nothing behind');
  assert.equal(rank.store(2, { parent_block_hash, cache_salt: 'tenant-a' }), ['tenant-a', 'ambiguous-namespace']);
  assert.is(rank.inherited(2), 'tenant-a');
});

namespaces('a salt that is not its parent’s is indexed under the own one and may not teach', () => {
  const rank = new Rank();
  rank.store(1, { cache_salt: 'tenant-a' });
  const said = rank.store(2, { parent_block_hash: 1, cache_salt: 'tenant-b' });
  assert.equal(said, ['tenant-b', 'ambiguous-namespace']);
  assert.is(rank.inherited(2), 'tenant-b');
  assert.is(rank.inherited(1), 'tenant-a');
});

namespaces('a salted child of a block that is not known to be salted may teach', () => {
  const rank = primed();
  rank.store(1);
  assert.equal(rank.store(2, { parent_block_hash: 1, cache_salt: 'tenant-a' }), ['tenant-a', null]);
});

namespaces(
  'another namespace for a tagged hash: indexed under the new one, may not teach, ambiguous from then on',
  () => {
    const rank = new Rank();
    rank.store(1, { cache_salt: 'tenant-a' });
    assert.equal(rank.store(1, { cache_salt: 'tenant-b' }), ['tenant-b', 'ambiguous-namespace']);
    assert.equal(rank.store(1, { cache_salt: 'tenant-a' }), ['tenant-a', 'ambiguous-namespace'], 'for good');
    assert.equal(rank.store(1), [null, 'ambiguous-namespace'], 'and for unsalted stores');
    assert.is(rank.inherited(1), 'ambiguous_cache_namespace');
  },
);

namespaces('one ambiguous block of an event keeps the whole event from teaching', () => {
  const rank = primed();
  const fields = { block_hashes: [1, AMBIGUOUS_HASH, 2], cache_salt: 'tenant-a' };
  assert.equal(rank.store(1, fields), ['tenant-a', 'ambiguous-namespace']);
  assert.equal(
    [1, 2].map((hash) => rank.inherited(hash)),
    ['tenant-a', 'tenant-a'],
    'the others stay tagged',
  );
});

namespaces('a removal does not forget that a hash is ambiguous', () => {
  const rank = primed();
  rank.say(removed({ block_hashes: [AMBIGUOUS_HASH] }));
  assert.is(rank.inherited(AMBIGUOUS_HASH), 'ambiguous_cache_namespace');
});

namespaces('an unsalted store of a tagged hash is a conflict in the device tier', () => {
  for (const medium of TIERS.device) {
    const rank = new Rank();
    rank.store(1, { cache_salt: 'tenant-a' });
    assert.equal(rank.store(1, { medium }), [null, 'ambiguous-namespace']);
    assert.is(rank.inherited(1), 'ambiguous_cache_namespace');
  }
});

namespaces('in the host tier it says nothing, for what is offloaded is announced without its salt', () => {
  for (const medium of TIERS.host_pinned) {
    const rank = new Rank();
    rank.store(1, { cache_salt: 'tenant-a' });
    assert.equal(rank.store(1, { medium }), [null, null]);
    assert.is(rank.inherited(1), 'tenant-a');
    assert.equal(rank.store(2, { parent_block_hash: 1, medium }), ['tenant-a', null], 'but inherits');
  }
});

namespaces('a salt in the host tier counts like one in the device tier', () => {
  const rank = new Rank();
  assert.equal(rank.store(1, { cache_salt: 'tenant-a', medium: 'CPU' }), ['tenant-a', null]);
  assert.is(rank.inherited(1), 'tenant-a');
  assert.equal(rank.store(1, { cache_salt: 'tenant-b', medium: 'CPU' }), ['tenant-b', 'ambiguous-namespace']);
  assert.is(rank.inherited(1), 'ambiguous_cache_namespace');
});

namespaces('disk and external events have their own namespace alone, and leave nothing behind', () => {
  for (const medium of [...TIERS.disk, ...TIERS.external]) {
    const rank = primed();
    rank.store(1, { cache_salt: 'tenant-a' });
    assert.equal(rank.store(2, { parent_block_hash: 1, medium }), [null, null], 'no inheritance');
    assert.equal(rank.store(3, { parent_block_hash: AMBIGUOUS_HASH, medium }), [null, null], 'no ambiguity');
    assert.equal(rank.store(4, { cache_salt: 'tenant-b', medium }), ['tenant-b', null]);
    assert.is(rank.inherited(4), null, 'no tag');
    rank.store(1, { cache_salt: 'tenant-b', medium });
    assert.is(rank.inherited(1), 'tenant-a', 'no conflict');
  }
});

namespaces('a dropped store neither tags nor contradicts', () => {
  for (const fields of [
    { medium: 'cpu' },
    { locality: 'REMOTE' },
    { ownership: 'kvcr' },
    { kv_cache_spec_kind: 'sliding_window' },
    { group_idx: 9 },
  ]) {
    const rank = new Rank();
    rank.store(1, { cache_salt: 'tenant-a' });
    rank.store(1, { cache_salt: 'tenant-b', ...fields });
    rank.store(2, { cache_salt: 'tenant-b', ...fields });
    assert.equal([rank.inherited(1), rank.inherited(2)], ['tenant-a', null], JSON.stringify(fields));
  }
});

namespaces('an ineligible event tags and contradicts, and keeps its own reason', () => {
  const rank = new Rank();
  assert.equal(rank.store(1, { cache_salt: 'tenant-a', is_eagle: true }), ['tenant-a', 'speculative']);
  assert.is(rank.inherited(1), 'tenant-a');
  assert.equal(rank.store(1, { cache_salt: 'tenant-b', is_eagle: true }), ['tenant-b', 'speculative']);
  assert.is(rank.inherited(1), 'ambiguous_cache_namespace');
});

namespaces('ranks and workers do not share their namespaces', () => {
  const teller = new Rank();
  const others = [new Rank(teller.workerId, 1), new Rank()];
  teller.store(1, { cache_salt: 'tenant-a' });
  for (const other of others) assert.is(other.inherited(1), null);
  for (const other of others) assert.equal(other.store(1, { cache_salt: 'tenant-b' }), ['tenant-b', null]);
  for (const other of others) other.say(removed({ block_hashes: [1] }));
  for (const other of others) other.say(cleared());
  assert.is(teller.inherited(1), 'tenant-a');
});

namespaces('hashes of 32 bytes are known by their low 64 bits', () => {
  const digest = new Uint8Array(32);
  digest[31] = 1;
  const rank = new Rank();
  rank.say(stored({ block_hashes: [digest], cache_salt: 'tenant-a' }));
  assert.is(rank.inherited(1), 'tenant-a');
  const fields = { block_hashes: [new Uint8Array(32).fill(7)], parent_block_hash: digest };
  assert.equal(rank.store(0, fields), ['tenant-a', null]);
});

namespaces('negative hashes are those of their bits', () => {
  const rank = new Rank();
  rank.store(-1, { cache_salt: 'tenant-a' });
  assert.equal(rank.store(2, { parent_block_hash: 2n ** 64n - 1n }), ['tenant-a', null]);
});

namespaces.run();
