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

/** Names under which requests may ask, by what all workers list. */
export class ListedNames {
  readonly #names = new Map<string, { readonly kinds: Set<'model' | 'adapter'>; readonly workers: string[] }>();
  /** Workers that list the model. */
  #serving = 0;

  /** Takes in what one worker lists. */
  add(worker: string, { models, adapters }: ModelNames): void {
    if (models.length > 0) this.#serving++;
    for (const name of models) this.#add(name, 'model', worker);
    for (const name of adapters) this.#add(name, 'adapter', worker);
  }

  /** What a name is; null for one that nobody lists, and for one that is not the same thing everywhere. */
  kindOf(name: string): 'model' | 'adapter' | null {
    const { kinds } = this.#names.get(name) ?? {};
    return kinds?.size === 1 ? [...kinds][0]! : null;
  }

  /** Names that some workers list as an adapter, and others as the model's. */
  disputed(): readonly string[] {
    return [...this.#names].filter(([, { kinds }]) => kinds.size > 1).map(([name]) => name);
  }

  /** The workers that list a name, where a request for it would fail at others; null where the router finds them itself, or all have it. */
  listedBy(name: string): readonly string[] | null {
    const found = this.#names.get(name);
    if (found === undefined) return null;
    const { kinds, workers } = found;
    if (kinds.size > 1) return workers;
    return kinds.has('model') && workers.length < this.#serving ? workers : null;
  }

  #add(name: string, kind: 'model' | 'adapter', worker: string): void {
    const { kinds, workers } = this.#names.get(name) ?? { kinds: new Set(), workers: [] };
    this.#names.set(name, { kinds: kinds.add(kind), workers });
    workers.push(worker);
  }
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_NAME;
}
