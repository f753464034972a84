// What a worker's `/v1/models` lists: names of the one model, and LoRA adapters. vLLM gives an adapter the model as `parent`, and every further name
// of the model the same `root`; whatever else is listed is taken for an adapter, which at worst costs credit.
import { isAbsent } from '../wire/values.js';

/** One entry. */
export interface ModelCard {
  readonly id: string;
  readonly parent: string | null;
  readonly root: string | null;
}

/** The entries by what they are. */
export interface ModelNames {
  readonly models: readonly string[];
  readonly adapters: readonly string[];
}

/** Most entries that are looked at, and the longest name. */
const MAX_CARDS = 1024;
const MAX_NAME = 512;

/** Reads the body of an answer; null for what is none. Entries without a usable name are left out. */
export function readModels(text: string): readonly ModelCard[] | null {
  let data: unknown;
  try {
    data = (JSON.parse(text) as { data?: unknown } | null)?.data;
  } catch {
    return null;
  }
  if (!Array.isArray(data)) return null;
  const cards = new Map<string, ModelCard>();
  for (const entry of data.slice(0, MAX_CARDS) as readonly unknown[]) {
    if (isAbsent(entry)) continue;
    const { id, parent, root } = entry as Readonly<Record<string, unknown>>;
    if (isName(id) && !cards.has(id)) {
      cards.set(id, { id, parent: isName(parent) ? parent : null, root: isName(root) ? root : null });
    }
  }
  return [...cards.values()];
}

/** The model's first name: that of an entry which is nobody's child. */
export function firstModel(cards: readonly ModelCard[]): string | null {
  return cards.find(({ parent }) => parent === null)?.id ?? null;
}

/** Tells models from adapters. `base` is the model that is served. */
export function sortModels(cards: readonly ModelCard[], base: string | null): ModelNames {
  const root = cards.find(({ id, parent }) => id === base && parent === null)?.root ?? null;
  const isModel = (card: ModelCard): boolean =>
    card.parent === null && (card.id === base || (root !== null && card.root === root));
  return {
    models: cards.filter(isModel).map(({ id }) => id),
    adapters: cards.filter((card) => !isModel(card)).map(({ id }) => id),
  };
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_NAME;
}
