// A contract as the core evaluates it: groups merged into units, spans counted in blocks of the edges that are walked, prefixes numbered. Learned edges
// end where main event blocks do; derived ones at every hash block, so that they see all that vLLM sees.
// Rules: assembly/README.md "Lookup"; spec/vllm-store.md 5 (groups with equal specs form one unit).
import type { Contract, ContractGroup, Hashing } from '../contract/descriptor.js';

/** Blocks that must be complete together. `mask`: bit g = store group g. Spans in blocks of the evaluation. */
interface Unit {
  mask: bigint;
  span: number;
  extra: number;
}

/** How far a prompt can restart, in blocks of one size. */
export interface Evaluation {
  /** Tokens. */
  readonly blockSize: number;
  /** Endpoints are multiples of so many blocks. */
  readonly step: number;
  readonly partial: boolean;
  /** Groups whose object at the endpoint itself is all that is needed. */
  readonly endMask: bigint;
  /** `extra` = 1: reaches over a run by a partial tail. */
  readonly fullUnits: readonly Unit[];
  /** `extra` = blocks of the window. */
  readonly windowUnits: readonly Unit[];
}

/** What `encodePlan` lays out for the core. */
export interface Plan {
  readonly groups: number;
  /** Along learned edges; null where events can't teach. */
  readonly learned: Evaluation | null;
  /** Along derived edges; null where none are made. */
  readonly derived: Evaluation | null;
  /** Prefix id = position; those of one group stand together. */
  readonly prefixes: readonly { readonly group: number; readonly text: string }[];
}

const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));
const lcm = (a: number, b: number): number => (a / gcd(a, b)) * b;

/** Blocks of its own span that a window looks back over; the window counts the query token too. */
export function windowBlocks(group: Pick<ContractGroup, 'blockSize' | 'slidingWindow'>): number {
  return Math.ceil(((group.slidingWindow ?? 1) - 1) / group.blockSize);
}

/** The plan of a contract that was validated for this way of hashing. */
export function planOf(contract: Contract, hashing: Hashing = 'learned'): Plan {
  const { groups, mainEventBlockSize, hashBlockSize } = contract;
  const prefixes = groups.flatMap((group) => group.keyPrefixes.map((text) => ({ group: group.groupId, text })));
  return {
    groups: groups.length,
    learned: hashing !== 'derived' && contract.learnable ? evaluationOf(contract, mainEventBlockSize) : null,
    derived: hashing !== 'learned' ? evaluationOf(contract, hashBlockSize) : null,
    prefixes,
  };
}

/** The evaluation in blocks of `b` tokens. */
function evaluationOf(contract: Contract, b: number): Evaluation {
  const { hashBlockSize, partialHashHits: partial, groups } = contract;
  const fullUnits: Unit[] = [];
  const windowUnits: Unit[] = [];
  let endMask = 0n;
  let step = partial ? 1 : lcm(contract.lcmBlockSize, b) / b;
  for (const group of groups) {
    const bit = 1n << BigInt(group.groupId);
    if (!partial) step = lcm(step, lcm(group.blockSize, b) / b);
    if (group.kind === 'full_attention') {
      merge(
        fullUnits,
        bit,
        group.blockSize / b,
        partial && group.blockSize > hashBlockSize && group.blockSize > b ? 1 : 0,
      );
    } else if (group.kind === 'sliding_window') {
      if (partial) step = lcm(step, lcm(group.blockSize, b) / b);
      const needed = windowBlocks(group);
      if (needed === 1) endMask |= bit;
      else merge(windowUnits, bit, group.blockSize / b, needed);
    } else endMask |= bit;
  }
  return { blockSize: b, step, partial, endMask, fullUnits, windowUnits };
}

function merge(units: Unit[], bit: bigint, span: number, extra: number): void {
  const same = units.find((unit) => unit.span === span && unit.extra === extra);
  if (same === undefined) units.push({ mask: bit, span, extra });
  else same.mask |= bit;
}

const NOTHING: Evaluation = {
  blockSize: 0,
  step: 0,
  partial: false,
  endMask: 0n,
  fullUnits: [],
  windowUnits: [],
};
const EVALUATION_BYTES = 32;
const UNIT_BYTES = 16;

/** The plan's bytes as assembly/contract.ts reads them. `seed`: 64 random bits for the core's hash tables. */
export function encodePlan({ groups, learned, derived, prefixes }: Plan, seed: bigint): Uint8Array {
  const evaluations = [learned ?? NOTHING, derived ?? NOTHING];
  const texts = prefixes.map(({ text }) => new TextEncoder().encode(text));
  const units = evaluations.reduce((sum, one) => sum + one.fullUnits.length + one.windowUnits.length, 0);
  const size =
    16 +
    EVALUATION_BYTES * evaluations.length +
    UNIT_BYTES * units +
    texts.reduce((sum, text) => sum + 8 + ((text.length + 3) & ~3), 0);
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, groups, true);
  view.setUint32(4, prefixes.length, true);
  view.setBigUint64(8, seed, true);
  let at = 16;
  for (const { blockSize, step, partial, endMask, fullUnits, windowUnits } of evaluations) {
    const header = [blockSize, step, partial ? 1 : 0, fullUnits.length, windowUnits.length];
    for (const [i, field] of header.entries()) view.setUint32(at + i * 4, field, true);
    view.setBigUint64(at + 24, endMask, true);
    at += EVALUATION_BYTES;
    for (const { mask, span, extra } of [...fullUnits, ...windowUnits]) {
      view.setBigUint64(at, mask, true);
      view.setUint32(at + 8, span, true);
      view.setUint32(at + 12, extra, true);
      at += UNIT_BYTES;
    }
  }
  for (const [i, text] of texts.entries()) {
    view.setUint32(at, prefixes[i]!.group, true);
    view.setUint32(at + 4, text.length, true);
    bytes.set(text, at + 8);
    at += 8 + ((text.length + 3) & ~3);
  }
  return bytes;
}
