// From what the schema finds wrong to one sentence: the setting by its path, what was seen (never a secret), what should stand there.
import type { z } from 'zod';
import { shown } from '../contract/descriptor.js';
import { ConfigError } from '../errors.js';
import { configJsonSchema } from './config-json-schema.js';
import { routerRefusal } from './config-router.js';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** Settings whose values are never shown, and those below them. */
const SECRET = ['auth', 'curve'];
/** A name is taken for a misspelt one if so many of its letters, or fewer, differ. */
const MOST_DIFFERENT = 3;

/** The refusal of a document; of several faults the first. */
export function refusalOf(
  issues: readonly Issue[],
  given: object,
  origins: ReadonlyMap<string, string> = new Map(),
): ConfigError {
  const issue = deepest(issues[0]!);
  if (issue.code === 'unrecognized_keys') return unknown([...issue.path, issue.keys[0]!]);
  // What is the router's is refused in the field's own words.
  const name = dotted(issue.path);
  const origin = origins.get(name);
  const ofRouter = routerRefusal(issue.path, given, origin);
  if (ofRouter !== null) return ofRouter;
  const seen = SECRET.includes(String(issue.path[0])) ? secretShown(valueAt(given, issue.path)) : shownAt(given, issue);
  const from = origin === undefined ? '' : ` (from ${origin})`;
  return new ConfigError(codeOf(issue.path), `${name} is ${seen}${from}; give ${issue.message}.`);
}

/** A path as people write it. */
export function dotted(path: Path): string {
  return path.map(String).join('.');
}

/** The error code of a setting: its path without list positions. */
export function codeOf(path: Path): string {
  const names = path.filter((part) => typeof part === 'string');
  return names.map((name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)).join('-');
}

/** Where a value may have several forms, the fault in the form that it has: an object's unknown or wrong setting, say. */
function deepest(issue: Issue): Issue {
  if (issue.code !== 'invalid_union') return issue;
  const isUnknown = ({ code }: Issue) => code === 'unrecognized_keys';
  const alike = issue.errors.filter((form) => form.some((fault) => fault.path.length > 0 || isUnknown(fault)));
  const form = alike.find((faults) => !faults.some(isUnknown)) ?? alike[0];
  if (form === undefined) return issue;
  const fault = form.find(isUnknown) ?? form[0]!;
  return deepest({ ...fault, path: [...issue.path, ...fault.path] });
}

function shownAt(given: object, issue: Issue): string {
  const value = valueAt(given, issue.path);
  if (value === undefined) return 'missing';
  return shown(typeof value === 'string' ? withoutPassword(value) : value);
}

/** Who signs in at a URL, and with what, is nobody else's business. */
export function withoutPassword(text: string): string {
  return text.replace(/\/\/[^/\s]*@/g, '//…@');
}

function secretShown(value: unknown): string {
  if (value === undefined) return 'missing';
  return typeof value === 'string' ? `a text of ${value.length} characters` : shown(value);
}

function valueAt(given: unknown, path: Path): unknown {
  let value = given;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = Reflect.get(value, part);
  }
  return value;
}

function unknown(path: Path): ConfigError {
  const name = String(path.at(-1));
  const known = settingsAt(path.slice(0, -1)).filter((setting) => setting !== '$schema');
  const where = path.length === 1 ? 'the settings' : `the settings of ${dotted(path.slice(0, -1))}`;
  if (known.includes(name)) {
    return new ConfigError(
      'setting-excluded',
      `${dotted(path)} excludes what stands beside it; of ${known.join(', ')} give one.`,
    );
  }
  const close = known
    .map((setting) => ({ setting, distance: differences(name.toLowerCase(), setting.toLowerCase()) }))
    .filter(({ distance }) => distance <= MOST_DIFFERENT)
    .sort((a, b) => a.distance - b.distance)[0];
  const meant = close === undefined ? '' : ` Is ${dotted([...path.slice(0, -1), close.setting])} meant?`;
  const seen = shown(dotted(path));
  return new ConfigError('unknown-setting', `unknown setting ${seen}; ${where} are ${known.join(', ')}.${meant}`);
}

interface Described {
  readonly properties?: Readonly<Record<string, Described>>;
  readonly items?: Described;
  readonly anyOf?: readonly Described[];
}

/** Names of the settings below a path. */
function settingsAt(path: Path): string[] {
  let at: Described[] = [configJsonSchema() as Described];
  const forms = (described: Described): Described[] =>
    (described.anyOf ?? [described]).flatMap((form) => (form.anyOf ? forms(form) : [form]));
  for (const part of path) {
    at = at.flatMap(forms).flatMap(({ properties, items }) => {
      const below = typeof part === 'number' ? items : properties?.[String(part)];
      return below === undefined ? [] : [below];
    });
  }
  return at.flatMap(forms).flatMap(({ properties = {} }) => Object.keys(properties));
}

/** Letters to change, add or leave out to make one name of the other (Levenshtein). */
function differences(one: string, other: string): number {
  // Longer names than any setting's are not compared letter by letter.
  if (Math.abs(one.length - other.length) > MOST_DIFFERENT) return Number.POSITIVE_INFINITY;
  let row = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (const [i, letter] of [...one].entries()) {
    const next = [i + 1];
    for (let j = 0; j < other.length; j++) {
      const swap = row[j]! + (letter === other[j] ? 0 : 1);
      next.push(Math.min(swap, row[j + 1]! + 1, next[j]! + 1));
    }
    row = next;
  }
  return row[other.length]!;
}
