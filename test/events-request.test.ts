// Which requests may be given shared credit: a row for every field of spec/kv-events.md 3.3, and that no JSON can forge, show or
// carry the proof.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  cloneRequest,
  isProvenTextOnly,
  judgeRequest,
  OPAQUE_FIELDS,
  proveTextOnly,
  type RequestReason,
} from '../src/events/request.js';

/** Names under which JSON might try to set the flag. */
const FLAG_NAMES = ['shared_cache_eligible', 'sce', 'textOnly', 'text_only', 'eligible'];
const ELIGIBLE = { eligible: true, reason: null, text: null };

function proven<T extends object>(request: T): T {
  proveTextOnly(request);
  return request;
}

/** Checks that a request is refused for `reason`, with a text that says `seen`. */
function refused(judged: ReturnType<typeof judgeRequest>, reason: RequestReason, seen: string, message?: string): void {
  assert.is(judged.eligible, false, message);
  assert.is(judged.reason, reason, message);
  assert.match(judged.text ?? '', seen);
}

const plain = () => ({ token_ids: [1, 2, 3], model: 'm' });

test('a proven request of text is eligible, an unproven one is not', () => {
  assert.equal(judgeRequest(proven(plain())), ELIGIBLE);
  refused(judgeRequest(plain()), 'not-proven', 'proveTextOnly');
});

test('proving twice is like proving once, and says nothing about an equal request', () => {
  const request = proven(proven(plain()));
  assert.is(isProvenTextOnly(request), true);
  assert.is(isProvenTextOnly(plain()), false);
});

test('the disqualifying fields are those of the specification', () => {
  assert.equal(OPAQUE_FIELDS, [
    'prompt_embeds',
    'multi_modal_data',
    'multi_modal_uuids',
    'mm_routing_info',
    'encoder_result',
    'mm_processor_kwargs',
    'media_io_kwargs',
  ]);
});

const PRESENT: readonly [value: unknown, seen: string][] = [
  [{}, 'a map'],
  [{ image: ['x'] }, 'a map'],
  [[], 'a list of 0'],
  [[null], 'a list of 1'],
  ['', 'a text of 0 characters'],
  ['secret', 'a text of 6 characters'],
  [false, 'false'],
  [true, 'true'],
  [0, '0'],
  [Number.NaN, 'NaN'],
  [0n, '0'],
  [new Uint8Array(0), 'binary of 0 bytes'],
];

for (const field of OPAQUE_FIELDS) {
  test(`${field} disqualifies with any value, however empty`, () => {
    for (const [value, seen] of PRESENT) {
      const judged = judgeRequest(proven({ ...plain(), [field]: value }));
      refused(judged, 'opaque-input', `${field} is ${seen};`);
      assert.not.match(judged.text ?? '', 'secret');
    }
  });

  test(`${field} that is nil or missing does not disqualify`, () => {
    for (const value of [null, undefined]) {
      assert.equal(judgeRequest(proven({ ...plain(), [field]: value })), ELIGIBLE);
    }
  });

  test(`${field} is found on a prototype, behind a nil, hidden, and behind a getter`, () => {
    const inherited = Object.create({ [field]: {} }) as object;
    const twice = Object.create(inherited) as object;
    const shadowed = Object.assign(Object.create({ [field]: {} }) as object, { [field]: null });
    const merged = Object.assign({}, JSON.parse(`{"__proto__":{"${field}":{}}}`) as object);
    const hidden = Object.defineProperty(plain(), field, { value: {}, enumerable: false });
    const bare = Object.assign(Object.create(null) as object, { [field]: {} });
    for (const request of [inherited, twice, shadowed, merged, hidden, bare]) {
      refused(judgeRequest(proven(request)), 'opaque-input', `${field} is a map`);
      refused(judgeRequest(cloneRequest(proven(request))), 'opaque-input', `${field} is a map`);
    }
    const getter = Object.defineProperty(plain(), field, { get: () => null });
    refused(judgeRequest(proven(getter)), 'opaque-input', `${field} is a getter`);
  });
}

test('a disqualifying field is named even if the request is unproven', () => {
  refused(judgeRequest({ ...plain(), encoder_result: {} }), 'opaque-input', 'encoder_result');
});

test('a field that is set after proving disqualifies', () => {
  const request: Record<string, unknown> = proven(plain());
  request['prompt_embeds'] = '';
  refused(judgeRequest(request), 'opaque-input', 'prompt_embeds');
});

for (const field of ['extra_args', 'kv_hint', 'cache_salt', 'lora_name', 'prefill_result', 'annotations']) {
  test(`${field} does not disqualify`, () => {
    for (const value of [{}, { a: 1 }, [], ['x'], '', 'x', false, 0, 7]) {
      assert.equal(judgeRequest(proven({ ...plain(), [field]: value })), ELIGIBLE);
    }
  });
}

test('a speculative model disqualifies; so does anything that is not plainly false', () => {
  const request = proven(plain());
  for (const speculative of [false, null, undefined]) assert.equal(judgeRequest(request, { speculative }), ELIGIBLE);
  for (const speculative of [true, 1, 0, '', 'false']) {
    refused(judgeRequest(request, { speculative: speculative as boolean }), 'speculative', 'speculative is ');
  }
});

test('multimodal information of any block disqualifies', () => {
  const request = proven(plain());
  for (const blockMmInfos of [undefined, null, [], [null], [null, undefined]]) {
    assert.equal(judgeRequest(request, { blockMmInfos }), ELIGIBLE);
  }
  for (const blockMmInfos of [[{}], [null, { mm_objects: [] }], [[]], [0], [''], [false], {}, 'x', 0]) {
    refused(
      judgeRequest(request, { blockMmInfos: blockMmInfos as unknown[] }),
      'multimodal-blocks',
      'blockMmInfos is ',
      JSON.stringify(blockMmInfos),
    );
  }
});

for (const name of FLAG_NAMES) {
  test(`${name} in JSON has no effect, neither for nor against`, () => {
    for (const value of ['true', 'false', 'null', '1', '"yes"', '{}']) {
      const json = `{"token_ids":[1],"${name}":${value},"__proto__":{"${name}":${value}}}`;
      refused(judgeRequest(JSON.parse(json) as object), 'not-proven', 'not proven');
      refused(judgeRequest(Object.assign({}, JSON.parse(json) as object)), 'not-proven', 'not proven');
      assert.is(isProvenTextOnly(JSON.parse(json) as object), false);
      assert.equal(judgeRequest(proven(JSON.parse(json) as object)), ELIGIBLE);
    }
  });
}

test('proving leaves no trace on the request', () => {
  const request = plain();
  const [json, keys] = [JSON.stringify(request), Reflect.ownKeys(request)];
  proveTextOnly(request);
  assert.is(JSON.stringify(request), json);
  assert.equal(Reflect.ownKeys(request), keys);
  for (const name of FLAG_NAMES) assert.is(name in request, false);
});

test('a frozen request can be proven', () => {
  assert.equal(judgeRequest(proven(Object.freeze(plain()))), ELIGIBLE);
});

test('copies that others make lose the proof', () => {
  const request = proven(plain());
  for (const copy of [
    { ...request },
    Object.assign({}, request),
    structuredClone(request),
    JSON.parse(JSON.stringify(request)) as object,
    Object.create(request) as object,
    new Proxy(request, {}),
  ]) {
    assert.is(isProvenTextOnly(copy), false);
    refused(judgeRequest(copy), 'not-proven', 'not proven');
  }
});

test('cloneRequest keeps the proof, also through clones of clones', () => {
  const request = proven(plain());
  const clone = cloneRequest(cloneRequest(request));
  assert.is.not(clone, request);
  assert.equal(clone, request);
  assert.is(clone.token_ids, request.token_ids);
  assert.equal(judgeRequest(clone), ELIGIBLE);
});

test('cloneRequest proves nothing that was not proven, and proofs do not travel back', () => {
  const request = plain();
  const clone = cloneRequest(request);
  assert.is(isProvenTextOnly(clone), false);
  proveTextOnly(clone);
  assert.is(isProvenTextOnly(request), false);
  proveTextOnly(request);
  assert.is(isProvenTextOnly(cloneRequest(request)), true);
});

test('cloneRequest keeps a key named __proto__ a key', () => {
  const request = proven(JSON.parse('{"a":1,"__proto__":{"prompt_embeds":{}}}') as object);
  const clone = cloneRequest(request);
  assert.is(Object.getPrototypeOf(clone), Object.prototype);
  assert.is(JSON.stringify(clone), JSON.stringify(request));
  assert.equal(judgeRequest(clone), ELIGIBLE);
});

test('a request of a class keeps its class', () => {
  class Request {
    readonly prompt = 'x';
  }
  const clone = cloneRequest(proven(new Request()));
  assert.instance(clone, Request);
  assert.equal(judgeRequest(clone), ELIGIBLE);
});

test.run();
