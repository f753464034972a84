// Why a tier or the store gives a candidate nothing: stable codes, and texts a person can act on (design.md 2, promise 2).
import type { ReasonCode } from '../cache/reasons.js';
import type { RequestReason } from '../events/request.js';
import type { AdmissionCode } from './admission.js';
import type { NotReadCode } from './roles.js';

/** Why no shared block is credited. */
export type SharedZeroCode =
  | NotReadCode //                       this router keeps no shared cache
  | 'multiplier-zero' //                 the request wants none to count
  | RequestReason //                     the request's provenance is not proven
  | 'body-disagrees' //                  its body names another salt or adapter than the caller
  | 'unknown-adapter' //                 no worker lists the LoRA name
  | Exclude<AdmissionCode, 'admitted'> // the rank is not under the contract in force
  | ReasonCode //                        the cache's own reason
  | 'withheld' //                        engines have restored less of this prefix than was credited
  | 'held-locally' //                    the rank itself holds all that the store could restore
  | 'store-slower'; //                   fetching would take as long as computing (`ttft`)

/** Why a tier of a worker holds nothing that counts. */
export type LocalZeroCode =
  | 'gpu-events-off' // no events of workers are read
  | 'too-short' //      no full block before the last token
  | 'unhashable' //     LoRA name or salt can't be hashed
  | 'nothing-left' //   the tiers before it hold every block that counts
  | 'not-held'; //      the next block is not known to be there

/** A reason. */
export interface ZeroReason<Code extends string = SharedZeroCode> {
  readonly code: Code;
  readonly text: string;
}
