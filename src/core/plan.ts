// A contract as the core evaluates it: groups merged into units, spans counted in main event blocks, prefixes numbered.
// Rules: assembly/README.md "Lookup"; spec/vllm-store.md 5 (groups with equal specs form one unit).
import type { Contract, ContractGroup } from '../contract/descriptor.js';

/** Blocks that must be complete together. `mask`: bit g = store group g. Spans in main event blocks. */
interface Unit {
  mask: bigint;
  span: number;
  extra: number;
}

/** What `encodePlan` lays out for the core. */
export interface Plan {
  readonly groups: number;
  readonly blockSize: number;
  /** Endpoints are multiples of so many main event blocks. */
  readonly step: number;
  readonly partial: boolean;
  /** Groups whose object at the endpoint itself is all that is needed. */
  readonly endMask: bigint;
  /** `extra` = 1: reaches over a run by a partial tail. */
  readonly fullUnits: readonly Unit[];
  /** `extra` = blocks of the window. */
  readonly windowUnits: readonly Unit[];
  /** Prefix id = position; those of one group stand together. */
  readonly prefixes: readonly { readonly group: number; readonly text: string }[];
}

const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));
const lcm = (a: number, b: number): number => (a / gcd(a, b)) * b;

/** Blocks of its own span that a window looks back over; the window counts the query token too. */
export function windowBlocks(group: Pick<ContractGroup, 'blockSize' | 'slidingWindow'>): number {
  return Math.ceil(((group.slidingWindow ?? 1) - 1) / group.blockSize);
}

/** The plan of a validated contract. */
export function planOf(contract: Contract): Plan {
  const { mainEventBlockSize: b, hashBlockSize, partialHashHits: partial, groups } = contract;
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
  const prefixes = groups.flatMap((group) => group.keyPrefixes.map((text) => ({ group: group.groupId, text })));
  return { groups: groups.length, blockSize: b, step, partial, endMask, fullUnits, windowUnits, prefixes };
}

function merge(units: Unit[], bit: bigint, span: number, extra: number): void {
  const same = units.find((unit) => unit.span === span && unit.extra === extra);
  if (same === undefined) units.push({ mask: bit, span, extra });
  else same.mask |= bit;
}

/** The plan's bytes as assembly/contract.ts reads them. `seed`: 64 random bits for the core's hash tables. */
export function encodePlan(plan: Plan, seed: bigint): Uint8Array {
  const texts = plan.prefixes.map(({ text }) => new TextEncoder().encode(text));
  const size =
    48 +
    16 * (plan.fullUnits.length + plan.windowUnits.length) +
    texts.reduce((sum, text) => sum + 8 + ((text.length + 3) & ~3), 0);
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  const header = [
    plan.groups,
    plan.prefixes.length,
    plan.blockSize,
    plan.step,
    plan.partial ? 1 : 0,
    plan.fullUnits.length,
    plan.windowUnits.length,
    0,
  ];
  for (const [i, field] of header.entries()) view.setUint32(i * 4, field, true);
  view.setBigUint64(32, plan.endMask, true);
  view.setBigUint64(40, seed, true);
  let at = 48;
  for (const unit of [...plan.fullUnits, ...plan.windowUnits]) {
    view.setBigUint64(at, unit.mask, true);
    view.setUint32(at + 8, unit.span, true);
    view.setUint32(at + 12, unit.extra, true);
    at += 16;
  }
  for (const [i, text] of texts.entries()) {
    view.setUint32(at, plan.prefixes[i]!.group, true);
    view.setUint32(at + 4, text.length, true);
    bytes.set(text, at + 8);
    at += 8 + ((text.length + 3) & ~3);
  }
  return bytes;
}
