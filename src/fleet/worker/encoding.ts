// Every encoding that vLLM's KV events have had, chosen by name: arrays that grew field by field, tagged maps, hashes as integers or bytes, a rank
// behind the batch or none (spec/kv-events.md 1.4, 1.5 and 1.7, vllm-store.md 8).
import { Encoder } from '@msgpack/msgpack';
import { ConfigError } from '../../errors.js';
import { low64Of } from '../../wire/block-digests.js';
import type { Geometry, Group } from './geometry.js';
import type { BlockRemoved, BlocksPut, BlocksStored, KvEvent } from './kv-events.js';

/** What may stand behind the fields that every release has. */
type TailField = 'group' | 'kind' | 'window' | 'nil' | 'images' | 'locality' | 'ownership' | 'suffix';

/** How arrays are laid out. */
interface ArrayForm {
  /** Elements of a stored event before its tail, the tag included: 5 to 9. */
  readonly elements: number;
  readonly tail: readonly TailField[];
  /** Of removed events; unless said, the same but for what only stored ones have. */
  readonly removedTail?: readonly TailField[];
}

/** Stored events of so many elements carry the medium, and so do removed ones. */
const ELEMENTS_WITH_MEDIUM = 7;

const ARRAY_FORMS = {
  'array-5': { elements: 5, tail: [] },
  'array-6': { elements: 6, tail: [] },
  'array-7': { elements: 7, tail: [] },
  'array-8': { elements: 8, tail: [] },
  'array-9': { elements: 9, tail: [] },
  'array-group': { elements: 9, tail: ['group'] },
  'array-kind': { elements: 9, tail: ['kind'] },
  'array-group-kind': { elements: 9, tail: ['group', 'kind'] },
  'array-group-kind-window': { elements: 9, tail: ['group', 'kind', 'window'] },
  'array-images': {
    elements: 9,
    tail: ['images', 'group', 'kind', 'window'],
    removedTail: ['group', 'kind', 'window'],
  },
  'array-suffix': {
    elements: 9,
    tail: ['nil', 'group', 'kind', 'window', 'suffix'],
    removedTail: ['group', 'kind', 'window'],
  },
  'array-fixed-4': { elements: 9, tail: ['group', 'kind', 'window', 'locality'] },
  'array-fixed-5': { elements: 9, tail: ['group', 'kind', 'window', 'locality', 'ownership'] },
} as const satisfies Record<string, ArrayForm>;

/** How an event is written. `map` is vLLM's of June 2026 on. */
export type EventForm = 'map' | keyof typeof ARRAY_FORMS;
/** All forms of events. */
export const EVENT_FORMS: readonly EventForm[] = ['map', ...(Object.keys(ARRAY_FORMS) as (keyof typeof ARRAY_FORMS)[])];

/** How hashes are written: their low 64 bits unsigned or signed, or all 32 bytes. */
export type HashForm = 'u64' | 'i64' | 'bytes';
/** All forms of hashes. */
export const HASH_FORMS: readonly HashForm[] = ['u64', 'i64', 'bytes'];

/** How a simulated worker writes its event messages. */
export interface Encoding {
  readonly form: EventForm;
  readonly hashes: HashForm;
  /** Whether the rank stands behind the events; without it every rank is 0. */
  readonly rank: boolean;
  readonly batch: 'array' | 'map';
}

/** The newest of vLLM. */
export const DEFAULT_ENCODING: Encoding = { form: 'map', hashes: 'u64', rank: true, batch: 'array' };

/**
 * Reads an encoding as people write it: a form, and what differs from the newest, like `array-9:i64:no-rank`.
 * @throws ConfigError `encoding`
 */
export function parseEncoding(text: string): Encoding {
  const encoding: { -readonly [K in keyof Encoding]: Encoding[K] } = { ...DEFAULT_ENCODING };
  for (const word of text.split(':')) {
    if ((EVENT_FORMS as readonly string[]).includes(word)) encoding.form = word as EventForm;
    else if ((HASH_FORMS as readonly string[]).includes(word)) encoding.hashes = word as HashForm;
    else if (word === 'no-rank') encoding.rank = false;
    else if (word === 'map-batch') encoding.batch = 'map';
    else {
      throw new ConfigError(
        'encoding',
        `"${word}" is no encoding; write one of ${[...EVENT_FORMS, ...HASH_FORMS, 'no-rank', 'map-batch'].join(', ')}, or several with : between`,
      );
    }
  }
  return encoding;
}

/** An encoding as `parseEncoding` reads it. */
export function encodingText({ form, hashes, rank, batch }: Encoding): string {
  return [form, hashes, ...(rank ? [] : ['no-rank']), ...(batch === 'map' ? ['map-batch'] : [])].join(':');
}

const encoder = new Encoder({ useBigInt64: true });
/** What is added to a time without a fraction, so that it is a float on the wire: half a microsecond. */
const FRACTION = 5e-7;

/** Writes batches of one engine. */
export class BatchEncoder {
  readonly #encoding: Encoding;
  readonly #groups: readonly Group[];
  readonly #mainGroup: number;

  constructor(encoding: Encoding, { groups, mainGroup }: Pick<Geometry, 'groups' | 'mainGroup'>) {
    this.#encoding = encoding;
    this.#groups = groups;
    this.#mainGroup = mainGroup;
  }

  /**
   * The payload of a batch; null when none of its events has a place in this encoding. Engines of a time without groups in events announced
   * the main group alone: other groups' blocks would be taken for its own.
   * @param seconds since 1970
   */
  encode(events: readonly KvEvent[], dpRank: number, seconds: number): Uint8Array | null {
    const written = events.filter((event) => this.#hasPlace(event)).map((event) => this.#event(event));
    if (written.length === 0) return null;
    const time = Number.isInteger(seconds) ? seconds + FRACTION : seconds;
    const { rank, batch } = this.#encoding;
    if (batch === 'map')
      return encoder.encode({ ts: time, events: written, ...(rank ? { data_parallel_rank: dpRank } : {}) });
    return encoder.encode(rank ? [time, written, dpRank] : [time, written]);
  }

  #hasPlace(event: KvEvent): boolean {
    const { form } = this.#encoding;
    if (event.kind === 'cleared' || form === 'map') return true;
    const { elements, tail } = ARRAY_FORMS[form];
    // Without a medium a block in the store would be taken for one on the GPU.
    if (event.kind === 'put' && elements < ELEMENTS_WITH_MEDIUM) return false;
    return event.group === this.#mainGroup || tail.length > 0;
  }

  #event(event: KvEvent): unknown {
    const { form } = this.#encoding;
    if (event.kind === 'cleared') return form === 'map' ? { type: 'AllBlocksCleared' } : ['AllBlocksCleared'];
    if (event.kind !== 'removed')
      return form === 'map' ? this.#storedMap(event) : this.#storedArray(event, ARRAY_FORMS[form]);
    return form === 'map' ? this.#removedMap(event) : this.#removedArray(event, ARRAY_FORMS[form]);
  }

  /** Fields without a default are always there; those with one only when they say something. */
  #storedMap(event: BlocksStored | BlocksPut): Record<string, unknown> {
    const { kind, window } = this.#groups[event.group]!;
    const { medium, lora, extraKeys } = provenanceOf(event);
    return {
      type: 'BlockStored',
      block_hashes: event.digests.map((digest) => this.#hash(digest)),
      parent_block_hash: event.parent && this.#hash(event.parent),
      token_ids: event.tokens,
      block_size: event.blockSize,
      lora_id: lora?.id ?? null,
      medium,
      lora_name: lora?.name ?? null,
      ...(extraKeys === null ? {} : { extra_keys: extraKeys }),
      group_idx: event.group,
      kv_cache_spec_kind: kind,
      ...(window === null ? {} : { kv_cache_spec_sliding_window: window }),
    };
  }

  #removedMap({ digest, group }: BlockRemoved): Record<string, unknown> {
    return { type: 'BlockRemoved', block_hashes: [this.#hash(digest)], medium: 'GPU', group_idx: group };
  }

  #storedArray(event: BlocksStored | BlocksPut, { elements, tail }: ArrayForm): unknown[] {
    const { medium, lora, extraKeys } = provenanceOf(event);
    const fields = [
      'BlockStored',
      event.digests.map((digest) => this.#hash(digest)),
      event.parent && this.#hash(event.parent),
      event.tokens,
      event.blockSize,
      lora?.id ?? null,
      medium,
      lora?.name ?? null,
      extraKeys,
    ];
    return [...fields.slice(0, elements), ...tail.map((field) => this.#tailField(field, event))];
  }

  #removedArray(event: BlockRemoved, { elements, tail, removedTail = tail }: ArrayForm): unknown[] {
    const medium = elements < ELEMENTS_WITH_MEDIUM ? [] : ['GPU'];
    const behind = removedTail.map((field) => this.#tailField(field, event));
    return ['BlockRemoved', [this.#hash(event.digest)], ...medium, ...behind];
  }

  #tailField(field: TailField, event: BlocksStored | BlocksPut | BlockRemoved): unknown {
    const { kind, window } = this.#groups[event.group]!;
    switch (field) {
      case 'group':
        return event.group;
      case 'kind':
        return kind;
      case 'window':
        return window;
      case 'images':
        return event.kind === 'removed' ? [] : event.digests.map(() => null);
      case 'locality':
        return 'LOCAL';
      case 'suffix':
        return 'later';
      default:
        return null;
    }
  }

  #hash(digest: Uint8Array): bigint | Uint8Array {
    const { hashes } = this.#encoding;
    if (hashes === 'bytes') return digest;
    const low64 = low64Of(digest);
    return hashes === 'u64' ? low64 : BigInt.asIntN(64, low64);
  }
}

/** What an event says of where its blocks are and what made their hashes. The connector writes its medium in small letters. */
function provenanceOf(event: BlocksStored | BlocksPut): Pick<BlocksStored, 'lora'> & {
  readonly medium: string;
  readonly extraKeys: BlocksStored['extraKeys'] | null;
} {
  if (event.kind === 'put') return { medium: 'cpu', lora: null, extraKeys: null };
  return { medium: 'GPU', lora: event.lora, extraKeys: event.extraKeys };
}
