// Whether a stored event may teach the shared cache: only if its engine hashes were provably computed from tokens, the LoRA
// name and the namespace, and from nothing else. Whatever can't be explained so is a "no" with a reason; such blocks still
// count for GPU overlap. Rule and the 40 cases of its test: spec/kv-events.md 3.1 and 3.2.
import { badScope } from '../core/local-hash.js';
import { isAbsent, isUnsigned64 } from '../wire/values.js';
import type { StoredEvent } from '../wire/vllm.js';
import { CACHE_SALT_PREFIX } from './namespace.js';

/** Why an event is not eligible. */
export type EligibilityReason =
  | 'flagged-ineligible' //   shared_cache_eligible is false or no boolean
  | 'speculative' //          is_eagle is true or no boolean
  | 'token-pairs' //          tokens came as pairs
  | 'lora-id-type' //         lora_id is no unsigned 64-bit integer
  | 'lora-name-missing' //    lora_id names an adapter, lora_name does not
  | 'multimodal' //           block_mm_infos holds something
  | 'extra-keys-shape' //     extra_keys is no list of lists
  | 'extra-key-not-text' //   binary, pair, number or boolean among the extra keys
  | 'extra-key-repeated' //   the LoRA name or the tagged salt twice in one block
  | 'namespace-mismatch' //   a tagged salt that is not the event's namespace
  | 'namespace-misplaced' //  a tagged salt behind the first block
  | 'extra-key-unknown' //    any other text: an untagged salt, an image's hash
  | 'field-repeated' //       a field of provenance said twice
  | 'bad-scope'; //           a LoRA name or namespace that no engine serves

/**
 * Why a stored event of the raw worker stream, where a missing flag means eligible, may not teach; null when it may. `namespace` is the one
 * that the event names itself (namespace.ts): one that it inherits from its parent block stands in none of its extra keys.
 */
export function whyIneligible(event: StoredEvent, namespace: string | null): EligibilityReason | null {
  if (!isAbsent(event.sharedCacheEligible) && event.sharedCacheEligible !== true) return 'flagged-ineligible';
  if (!isAbsent(event.isEagle) && event.isEagle !== false) return 'speculative';
  if (event.tokenPairs) return 'token-pairs';
  if (event.shape.repeats) return 'field-repeated';
  const { loraId, blockMmInfos } = event;
  if (!isAbsent(loraId) && !isUnsigned64(loraId)) return 'lora-id-type';
  if (!isAbsent(loraId) && Number(loraId) !== 0 && !event.loraName) return 'lora-name-missing';
  if (!isAbsent(blockMmInfos) && !(Array.isArray(blockMmInfos) && blockMmInfos.every(isAbsent))) return 'multimodal';
  return (
    (event.shape.nilKeys ? null : whyNotExtraKeys(event.extraKeys, event.loraName || null, namespace)) ??
    (badScope(event.loraName, namespace) ? 'bad-scope' : null)
  );
}

/** Every extra key must be the LoRA name, or in the first block the tagged namespace, each at most once a block. */
function whyNotExtraKeys(
  extraKeys: unknown,
  loraName: string | null,
  namespace: string | null,
): EligibilityReason | null {
  if (isAbsent(extraKeys)) return null;
  if (!Array.isArray(extraKeys)) return 'extra-keys-shape';
  const tag = namespace === null ? null : CACHE_SALT_PREFIX + namespace;
  for (let block = 0; block < extraKeys.length; block++) {
    const keys: unknown = extraKeys[block];
    if (isAbsent(keys)) continue;
    if (!Array.isArray(keys)) return 'extra-keys-shape';
    let seenLora = false;
    let seenTag = false;
    for (const key of keys) {
      if (typeof key !== 'string') return 'extra-key-not-text';
      // A LoRA may be named like the tag, so each is looked for until it has been seen.
      if (key === loraName && !seenLora) seenLora = true;
      else if (key === tag && block === 0 && !seenTag) seenTag = true;
      else if (key === loraName || (key === tag && block === 0)) return 'extra-key-repeated';
      else if (!key.startsWith(CACHE_SALT_PREFIX)) return 'extra-key-unknown';
      else return block === 0 ? 'namespace-mismatch' : 'namespace-misplaced';
    }
  }
  return null;
}
