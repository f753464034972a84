// Whether a request may be given shared credit: only if its prompt is proven to be text alone, because the store's hashes are
// learned from tokens, LoRA name and namespace and know nothing else. The rule is spec/kv-events.md 3.3.
//
// The proof is not a property of the request but its membership in a set that only this module has: no JSON can set it, none
// can show it, and a copy made elsewhere (spread, structuredClone, another process) is unproven. Here absent means no.
import { describe, isAbsent } from '../wire/values.js';

/** Why a request is not eligible. */
export type RequestReason =
  | 'opaque-input' //       a field whose content the hashes cover and the router can't see
  | 'speculative' //        the model speculates (Eagle): its hashes cover token pairs
  | 'multimodal-blocks' //  the lookup's blocks carry multimodal information
  | 'not-proven'; //        nobody has proven that the prompt is text alone

/** The judgement of one request. */
export interface RequestJudgement {
  readonly eligible: boolean;
  /** Null exactly when eligible. */
  readonly reason: RequestReason | null;
  /** The reason for people, which names the field; null exactly when eligible. Never shows a request's content. */
  readonly text: string | null;
}

/** What the caller knows besides the request. */
export interface RequestFacts {
  /** Whether the model is speculative. Anything but false and absent counts as yes. */
  readonly speculative?: boolean | null | undefined;
  /** Multimodal information of the blocks that are to be looked up. */
  readonly blockMmInfos?: readonly unknown[] | null | undefined;
}

/** Fields that disqualify a request whenever they are there, even empty. */
export const OPAQUE_FIELDS = [
  'prompt_embeds',
  'multi_modal_data',
  'multi_modal_uuids',
  'mm_routing_info',
  'encoder_result',
  'mm_processor_kwargs',
  'media_io_kwargs',
] as const;

const ELIGIBLE: RequestJudgement = Object.freeze({ eligible: true, reason: null, text: null });
const proven = new WeakSet<object>();

/** Records that the caller has parsed this request and knows its prompt to be text alone. Can't be taken back. */
export function proveTextOnly(request: object): void {
  proven.add(request);
}

/** Whether this very object, or the one it was cloned from by `cloneRequest`, was proven to be text alone. */
export function isProvenTextOnly(request: object): boolean {
  return proven.has(request);
}

/**
 * A shallow copy that keeps the proof. It keeps the prototype and hidden properties too, so that no disqualifying field gets lost
 * on the way.
 */
export function cloneRequest<T extends object>(request: T): T {
  const clone = Object.create(Object.getPrototypeOf(request), Object.getOwnPropertyDescriptors(request)) as T;
  if (proven.has(request)) proven.add(clone);
  return clone;
}

/** Judges a request. A field that disqualifies is named even if the request is unproven, since it tells more. */
export function judgeRequest(request: object, facts: RequestFacts = {}): RequestJudgement {
  const opaque = findOpaque(request);
  if (opaque !== null) return no('opaque-input', `${opaque}; only requests without this field get shared credit`);
  const { speculative, blockMmInfos } = facts;
  if (!isAbsent(speculative) && speculative !== false) {
    return no(
      'speculative',
      `speculative is ${shown(speculative)}; shared credit needs a model that does not speculate`,
    );
  }
  if (!isAbsent(blockMmInfos) && !(Array.isArray(blockMmInfos) && blockMmInfos.every(isAbsent))) {
    return no(
      'multimodal-blocks',
      `blockMmInfos is ${shown(blockMmInfos)} that is not all nil; shared credit needs text alone`,
    );
  }
  if (!proven.has(request)) {
    return no('not-proven', 'the request was not proven to be text alone; call proveTextOnly after parsing it');
  }
  return ELIGIBLE;
}

function no(reason: RequestReason, text: string): RequestJudgement {
  return { eligible: false, reason, text };
}

/** The first disqualifying field and what it holds. Looks along the whole prototype chain, since a nil may shadow a value. */
function findOpaque(request: object): string | null {
  for (let holder: object | null = request; holder !== null; holder = Object.getPrototypeOf(holder) as object | null) {
    for (const field of OPAQUE_FIELDS) {
      const property = Object.getOwnPropertyDescriptor(holder, field);
      if (property === undefined) continue;
      // What a getter returns may change between now and then, so it counts as a value.
      if (!('value' in property)) return `${field} is a getter`;
      if (!isAbsent(property.value)) return `${field} is ${shown(property.value)}`;
    }
  }
  return null;
}

/** A value's kind. Of texts only the length, because they are a user's. */
function shown(value: unknown): string {
  return typeof value === 'string' ? `a text of ${value.length} characters` : describe(value);
}
