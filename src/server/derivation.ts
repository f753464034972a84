// How far the hashes that the router derives are trusted, as a state and a sentence: what /status, metrics, console and log say of it. Pure.
import type { Contract } from '../contract/descriptor.js';
import type { RouterStats } from '../router/router.js';
import type { ServerConfig } from './config.js';

export const DERIVATION_STATES = [
  'off', //         hashes are learned from workers' events, or no store is read
  'no-contract', // none is in force, so nothing says how to hash
  'unproven', //    no rank's event has agreed yet
  'proving', //     those of some ranks have
  'proven', //      those of all have
  'trusted', //     nobody has to prove anything: sharedCache.trustSeed
  'refuted', //     an event disagreed
] as const;

export type DerivationState = (typeof DERIVATION_STATES)[number];

export interface DerivationView {
  readonly state: DerivationState;
  /** The state in a sentence or two, with what to do where something is wrong. */
  readonly text: string;
  /** Of the ranks under the contract in force, those whose events have agreed. */
  readonly provenRanks: number;
  readonly ranks: number;
  /** No event can ever prove anything under this contract, and nobody vouches for it. */
  readonly unprovable: boolean;
}

/** The part of the configuration that it depends on. */
export type HashingConfig = Pick<ServerConfig['sharedCache'], 'hashing' | 'trustSeed'>;

export const LEARNED: HashingConfig = { hashing: 'learned', trustSeed: false };

const REFUTED =
  'Derived hashes are not credited until the contract changes. Check PYTHONHASHSEED and the hash algorithm of every engine, and what the contracts say of them.';
const UNPROVABLE =
  'The contract has no main event group, so no event can prove how engines hash, and no derived hash is credited. If every engine is known to hash as its contract says, set sharedCache.trustSeed to true.';

/** @param contract the one in force */
export function derivationOf(
  { cache, contracts }: Pick<RouterStats, 'cache' | 'contracts'>,
  contract: Contract | null,
  { hashing, trustSeed }: HashingConfig,
): DerivationView {
  const ranks = contracts.admitted;
  const provenRanks = cache?.derivation?.provenRanks ?? 0;
  const view = (state: DerivationState, text: string, unprovable = false): DerivationView => ({
    state,
    text,
    provenRanks,
    ranks,
    unprovable,
  });
  if (cache === null) return view('off', 'The shared store is not read.');
  if (hashing === 'learned') return view('off', 'Hashes are learned from workers’ events.');
  if (cache.derivation === null || contract === null) return view('no-contract', 'No contract is in force.');
  const { refuted } = cache.derivation;
  if (refuted !== null) return view('refuted', `${refuted} ${REFUTED}`);
  const agreed = `events of ${provenRanks} of ${ranks} ${ranks === 1 ? 'rank' : 'ranks'} have agreed`;
  if (trustSeed) return view('trusted', `Taken on trust (sharedCache.trustSeed); ${agreed}.`);
  if (contract.mainEventGroup === null) return view('unproven', UNPROVABLE, true);
  if (provenRanks === 0) return view('unproven', `${capital(agreed)} so far, and no derived hash is credited.`);
  if (provenRanks < ranks)
    return view('proving', `${capital(agreed)} so far; the others get nothing by derived hashes.`);
  return view('proven', `${capital(agreed)}.`);
}

function capital(text: string): string {
  return text[0]!.toUpperCase() + text.slice(1);
}
