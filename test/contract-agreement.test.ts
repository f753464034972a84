// Rank agreement of spec/kv-events.md 6.3: every refusal with its message and code, the order of the checks, and the two forms
// in which a rank may send its descriptor.
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type AgreementOptions,
  agreeOnContract,
  type Descriptor,
  MAX_DESCRIPTOR_BYTES,
  MAX_REASON_CHARS,
  validateContract,
} from '../src/contract/index.js';
import { ContractError } from '../src/errors.js';
import { type Mutable, refusalOf, smallDescriptor, validDescriptor } from './support/descriptor.js';

interface Reply {
  rank: unknown;
  dp_rank: unknown;
  descriptor: unknown;
}

/** Sorted keys and no spaces, written apart from the code under test. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

function replies(count: number, descriptor: () => unknown = validDescriptor): Reply[] {
  return Array.from({ length: count }, (_, rank) => ({ rank, dp_rank: 0, descriptor: descriptor() }));
}

const disagreement = (sent: readonly unknown[], options: Partial<AgreementOptions> = {}) =>
  refusalOf(() => agreeOnContract(sent, { worldSize: sent.length, ...options }));

test('ranks that publish the same descriptor agree, whatever their order and the form they send', () => {
  const expected = validateContract(validDescriptor());
  const sent = replies(4);
  sent[1]!.descriptor = canonical(validDescriptor());
  sent[2]!.descriptor = Object.fromEntries(Object.entries(validDescriptor()).reverse());
  assert.equal(agreeOnContract(sent.reverse(), { worldSize: 4 }), expected);
  assert.equal(agreeOnContract(replies(1), { worldSize: 1, registeredBlockSize: 16 }), expected);
  assert.equal(agreeOnContract(replies(1024), { worldSize: 1024 }), expected);
});

test('the data-parallel rank is the one that was asked', () => {
  const sent = replies(2).map((reply) => ({ ...reply, dp_rank: 3 }));
  agreeOnContract(sent, { worldSize: 2, dpRank: 3 });
  assert.is(disagreement(sent).code, 'unexpected-rank');
});

test('text may be escaped as Python does or not at all, and means the same', () => {
  const named = () => {
    const descriptor = smallDescriptor();
    descriptor.groups[0]!.key_prefixes = ['pool@modèle\u007f𝒳@tp_rank:0'];
    return descriptor;
  };
  const raw = canonical(named());
  const escaped = raw.replace('è', '\\u00e8').replace('\u007f', '\\u007f').replace('𝒳', '\\ud835\\udcb3');
  assert.is.not(raw, escaped);
  const sent = replies(3, named);
  sent[1]!.descriptor = raw;
  sent[2]!.descriptor = escaped;
  assert.equal(agreeOnContract(sent, { worldSize: 3 }), validateContract(named()));
  assert.is(disagreement(replies(1, () => raw.replace('è', '\\u00E8'))).code, 'descriptor-not-canonical');
});

interface Refusal {
  readonly name: string;
  readonly code: string;
  readonly message: string;
  readonly send: () => readonly unknown[];
  readonly options?: Partial<AgreementOptions>;
}

/** Two replies, the second one changed. */
function second(change: (reply: Reply, descriptor: Mutable<Descriptor>) => void): () => unknown[] {
  return () => {
    const sent = replies(2);
    change(sent[1]!, sent[1]!.descriptor as Mutable<Descriptor>);
    return sent;
  };
}

const worldSizes = [0, -1, 1.5, 1025, Number.NaN, Number.POSITIVE_INFINITY];
const ranks = [0, 2, -1, 0.5, '1', null, Number.NaN, 2 ** 53];
const mismatch = 'worker metadata disagrees with registered main-event span or schema';

// In the order of the checks.
const refusals: readonly Refusal[] = [
  {
    name: 'two engines behind one endpoint',
    code: 'unsupported-dp-range',
    message: 'collective_rpc does not return all internal DP engines',
    send: () => replies(2),
    options: { dpSize: 2 },
  },
  ...worldSizes.map((worldSize) => ({
    name: `world size ${worldSize}`,
    code: 'unsupported-world-size',
    message: 'worker RPC rank limit',
    send: () => replies(2),
    options: { worldSize },
  })),
  ...[0, 1, 3].map((count) => ({
    name: `${count} replies of 2`,
    code: 'missing-replies',
    message: 'missing worker RPC replies',
    send: () => replies(count),
    options: { worldSize: 2 },
  })),
  {
    name: 'no list',
    code: 'missing-replies',
    message: 'missing worker RPC replies',
    send: () => ({ length: 2 }) as unknown as unknown[],
    options: { worldSize: 2 },
  },
  ...[null, 'text', 7, []].map((reply) => ({
    name: `a reply that is ${JSON.stringify(reply)}`,
    code: 'invalid-reply',
    message: 'invalid worker RPC reply',
    send: () => [{ unsupported: 'x' }, reply],
  })),
  {
    name: 'an unsupported rank',
    code: 'unsupported-worker',
    message: 'a worker did not validate the pinned contract',
    send: () => [{ rank: 0 }, { unsupported: 'Eagle block drop' }],
  },
  {
    name: 'a further key',
    code: 'invalid-reply',
    message: 'invalid worker RPC envelope',
    send: second((reply) => Object.assign(reply, { host: 'a', rank: 0 })),
  },
  {
    name: 'a missing key',
    code: 'invalid-reply',
    message: 'invalid worker RPC envelope',
    send: second((reply) => delete (reply as Partial<Reply>).dp_rank),
  },
  ...ranks.map((rank) => ({
    name: `rank ${String(rank)} beside rank 0 of 2`,
    code: 'unexpected-rank',
    message: 'duplicate or unexpected worker rank',
    send: second((reply) => Object.assign(reply, { rank, descriptor: 'not read' })),
  })),
  ...[1, '0', null].map((dp_rank) => ({
    name: `dp_rank ${JSON.stringify(dp_rank)}`,
    code: 'unexpected-rank',
    message: 'duplicate or unexpected worker rank',
    send: second((reply) => Object.assign(reply, { dp_rank })),
  })),
  ...['', '{', '{"a":1,"a":1}', '{"a": 1}', '{"b":1,"a":1}', '1.0', '[NaN]'].map((descriptor) => ({
    name: `the text ${JSON.stringify(descriptor)}`,
    code: 'descriptor-not-canonical',
    message: 'descriptor is not canonical JSON',
    send: second((reply) => Object.assign(reply, { descriptor })),
  })),
  {
    name: 'a text that is too long',
    code: 'descriptor-too-large',
    message: 'descriptor size limit',
    send: second((reply) => Object.assign(reply, { descriptor: JSON.stringify('x'.repeat(MAX_DESCRIPTOR_BYTES - 1)) })),
  },
  {
    name: 'a text whose bytes are too many',
    code: 'descriptor-too-large',
    message: 'descriptor size limit',
    send: second((reply) => Object.assign(reply, { descriptor: JSON.stringify('é'.repeat(MAX_DESCRIPTOR_BYTES / 2)) })),
  },
  {
    name: 'a value that is too long',
    code: 'descriptor-too-large',
    message: 'descriptor size limit',
    send: second((_, d) => {
      d.groups[0]!.key_prefixes = Array.from({ length: 70 }, (_, i) => `${i}`.padEnd(4000, 'x'));
    }),
  },
  {
    name: 'a value whose bytes are too many',
    code: 'descriptor-too-large',
    message: 'descriptor size limit',
    send: second((_, d) => (d.adapter = 'é'.repeat(MAX_DESCRIPTOR_BYTES / 2))),
  },
  {
    name: 'no object',
    code: 'metadata-disagrees',
    message: mismatch,
    send: second((reply) => Object.assign(reply, { descriptor: [] })),
  },
  {
    name: 'another key set',
    code: 'metadata-disagrees',
    message: mismatch,
    send: second((_, d) => Object.assign(d, { extra: 1 })),
  },
  {
    name: 'a missing field',
    code: 'metadata-disagrees',
    message: mismatch,
    send: second((_, d) => delete (d as Partial<Mutable<Descriptor>>).hash),
  },
  {
    name: 'another schema',
    code: 'metadata-disagrees',
    message: mismatch,
    send: second((_, d) => (d.schema_version = 2)),
  },
  {
    name: 'another adapter',
    code: 'metadata-disagrees',
    message: mismatch,
    send: second((_, d) => (d.adapter = 'vllm-01234567')),
  },
  {
    name: 'another revision',
    code: 'metadata-disagrees',
    message: mismatch,
    send: second((_, d) => (d.vllm_revision = d.vllm_revision.replace('1', '2'))),
  },
  {
    name: 'another span than the registered one',
    code: 'metadata-disagrees',
    message: mismatch,
    send: () => replies(2),
    options: { registeredBlockSize: 32 },
  },
  {
    name: 'other prefixes',
    code: 'ranks-disagree',
    message: 'workers disagree on the resolved store contract',
    send: second((_, d) => d.groups[0]!.key_prefixes.push('pool@another')),
  },
  {
    name: 'the same prefixes in another order',
    code: 'ranks-disagree',
    message: 'workers disagree on the resolved store contract',
    send: second((_, d) => d.groups[0]!.key_prefixes.reverse()),
  },
  {
    name: 'a contract that the rules refuse',
    code: 'missing-prefixes',
    message: 'missing required object prefixes',
    send: () =>
      replies(2, () => {
        const descriptor = smallDescriptor();
        descriptor.groups[0]!.key_prefixes = [];
        return descriptor;
      }),
  },
  {
    name: 'a foreign tenant',
    code: 'unsupported-tenant',
    message: 'unsupported Mooncake tenant',
    send: () => replies(2),
    options: { tenant: 'team-a' },
  },
];

for (const { name, code, message, send, options } of refusals) {
  test(`refused as ${code}: ${name}`, () => {
    const error = disagreement(send(), options);
    assert.is(error.code, code, error.message);
    assert.ok(error.message.startsWith(`${message}: `), error.message);
    assert.ok(error.message.length < 700, `a message of ${error.message.length} characters`);
  });
}

test('an unsupported rank is reported before any fault of another reply', () => {
  assert.is(disagreement([...replies(1), { rank: 'x' }, { unsupported: '' }]).code, 'unsupported-worker');
});

test(`a rank's own reason is repeated on one line, cut to ${MAX_REASON_CHARS} characters`, () => {
  const reason = (unsupported: unknown) => disagreement([{ unsupported }]).message;
  assert.match(reason('Eagle block drop'), 'its reason is "Eagle block drop".');
  assert.match(reason('𝒳'.repeat(MAX_REASON_CHARS + 1)), `"${'𝒳'.repeat(MAX_REASON_CHARS)}"`);
  assert.match(reason('x'.repeat(10_000_000)), `"${'x'.repeat(MAX_REASON_CHARS)}"`);
  assert.not.match(reason('a\nb'), '\n');
  assert.match(reason(null), 'its reason is null');
});

test('values that JSON can not say or that nest without end are refused', () => {
  const endless: unknown[] = [];
  endless.push(endless, endless);
  const values = [
    undefined,
    Number.NaN,
    1n,
    () => 1,
    Symbol('x'),
    { hash: undefined },
    endless,
    new Array(2 ** 32 - 1),
  ];
  for (const descriptor of values) {
    assert.is(disagreement(replies(1, () => descriptor)).code, 'malformed-descriptor');
  }
  const deep = `${'['.repeat(MAX_DESCRIPTOR_BYTES / 2)}${']'.repeat(MAX_DESCRIPTOR_BYTES / 2)}`;
  assert.is(disagreement(replies(1, () => deep)).code, 'malformed-descriptor');
});

test('any replies give a contract or a ContractError', () => {
  const descriptor = fc.oneof(
    fc.jsonValue(),
    fc.json(),
    fc.constant(validDescriptor()),
    fc.constant(canonical(validDescriptor())),
  );
  const reply = fc.oneof(
    fc.anything(),
    fc.record({ rank: fc.nat(2), dp_rank: fc.constant(0), descriptor }),
    fc.record({ unsupported: fc.anything() }),
  );
  const property = fc.property(fc.array(reply, { maxLength: 3 }), (sent) => {
    try {
      agreeOnContract(sent, { worldSize: sent.length });
    } catch (error) {
      if (!(error instanceof ContractError)) throw error;
    }
  });
  fc.assert(property, { numRuns: 1000 });
});

test.run();
