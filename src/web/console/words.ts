// What the router's codes mean, in a few words. Every code that the router may give has its words here, or the page does not compile; codes of other
// rooms are shown as they are. Pure.
import type { AdmissionCode } from '../../router/admission.js';
import type { SharedZeroCode } from '../../router/zero-credit.js';
import type { DerivationState } from '../../server/derivation.js';

const ZERO: Readonly<Record<SharedZeroCode, string>> = {
  'shared-cache-off': 'no shared store is configured',
  'policy-does-not-read': 'the policy does not look at the store',
  'decode-role': 'a decode router does not look at the store',
  'gpu-events-off': 'workers’ events are not read',
  speculative: 'the model decodes speculatively',
  'multiplier-zero': 'shared blocks count nothing for this request',
  'opaque-input': 'the request has a field that the router can’t see through',
  'multimodal-blocks': 'the prompt is not text alone',
  'not-proven': 'nobody has proven that the prompt is text alone',
  'body-disagrees': 'the request names another salt or adapter than its caller',
  'unknown-adapter': 'no worker lists the adapter',
  'contract-disagrees': 'the worker is under another contract than most',
  'contract-invalid': 'the worker’s contract can’t be used',
  'contract-unverified': 'the contract was derived from public facts, and that is not allowed',
  stopped: 'the cache was stopped',
  pending: 'a change of contract is being read',
  'no-contract': 'no contract is in force',
  'contract-too-large': 'the contract has more groups or prefixes than fit',
  ineligible: 'the prompt is not proven to be text alone',
  'block-size': 'its blocks have another size than the contract’s',
  'empty-prompt': 'the prompt is empty',
  'too-short': 'the prompt is shorter than one block and a token',
  'request-too-long': 'the prompt is longer than one lookup reads',
  'hashes-missing': 'fewer hashes were given than the prompt has blocks',
  'not-learned': 'no worker has announced the next block yet',
  conflict: 'workers contradict each other about the next block',
  'residency-empty': 'nothing is known of the store right now',
  'object-missing': 'the next block is not in the store',
  'digest-ambiguous': 'two objects share the block’s hash',
  'endpoint-alignment': 'the model’s next restart point is not stored',
  'unseen-boundary': 'the model may restart where no event tells',
  'last-token': 'all but the last token was credited already',
  'contract-unfit': 'the contract was validated for another way of hashing',
  'tokens-missing': 'only hashes were given, and hashes are derived from tokens',
  'hashes-unproven': 'no event has yet shown that the worker hashes as its contract says',
  'hashes-refuted': 'a worker hashes otherwise than its contract says',
  'not-derived': 'the prompt is too long for the core’s tables',
  withheld: 'engines restored less of this prefix than was credited',
  'held-locally': 'the worker itself holds all that the store could restore',
  'store-slower': 'fetching would take as long as computing',
};

const ADMISSION: Readonly<Record<AdmissionCode, string>> = {
  admitted: 'in force',
  'contract-disagrees': 'disagrees',
  'no-contract': 'none',
  'contract-invalid': 'invalid',
  'contract-unverified': 'unverified',
};

const DERIVATION: Readonly<Record<DerivationState, string>> = {
  off: 'off',
  'no-contract': 'no contract',
  unproven: 'not proven',
  proving: 'being proven',
  proven: 'proven',
  trusted: 'trusted',
  refuted: 'refuted',
};

/** Why no shared block is credited. */
export function zeroWords(code: string): string {
  return (ZERO as Readonly<Record<string, string>>)[code] ?? code;
}

/** How far derived hashes are trusted. */
export function derivationWords(state: DerivationState): string {
  return DERIVATION[state];
}

export function admissionWords(code: AdmissionCode): string {
  return ADMISSION[code];
}
