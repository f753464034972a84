// Checked reading of a case file's JSON: a value together with the place where it stands, so that whatever is wrong with it
// can be named by file, case and field.
import { MoonrouteError } from '../errors.js';

/** A case file that can't be used. `code` is `case-file-json`, `case-file-format` or `case-field`. */
export class CaseFileError extends MoonrouteError {
  readonly file: string;
  /** Name or number of the case, null when the whole file is meant. */
  readonly caseName: string | null;
  /** Path of the field inside the case, null when the whole case or file is meant. */
  readonly field: string | null;

  constructor(code: string, message: string, where: { file: string; caseName?: string; field?: string }) {
    const { file, caseName = null, field = null } = where;
    super(code, [file, caseName, field, message].filter((part) => part !== null).join(': '));
    this.file = file;
    this.caseName = caseName;
    this.field = field;
  }
}

/** A value of a case together with where it stands. Its readers return the value or throw a CaseFileError (`case-field`). */
export class CaseField {
  constructor(
    readonly value: unknown,
    private readonly where: { file: string; caseName: string },
    private readonly path: string,
  ) {}

  fail(problem: string): CaseFileError {
    const field = this.path;
    return new CaseFileError('case-field', `${show(this.value)} is wrong: ${problem}`, { ...this.where, field });
  }

  at(name: string): CaseField {
    if (!isRecord(this.value)) throw this.fail('expected an object');
    return new CaseField(this.value[name], this.where, this.path ? `${this.path}.${name}` : name);
  }

  list(name: string, most = Number.POSITIVE_INFINITY): CaseField[] {
    const field = this.at(name);
    if (!Array.isArray(field.value)) throw field.fail('expected a list');
    if (field.value.length > most) throw field.fail(`more than ${most} items`);
    return field.items(field.value);
  }

  tuple(length: number): CaseField[] {
    if (!Array.isArray(this.value) || this.value.length !== length) throw this.fail(`expected ${length} items`);
    return this.items(this.value);
  }

  integer(least: number, most = Number.MAX_SAFE_INTEGER): number {
    const { value } = this;
    if (!Number.isSafeInteger(value) || (value as number) < least || (value as number) > most) {
      throw this.fail(`expected an integer from ${least} to ${most}`);
    }
    return value as number;
  }

  text(): string {
    if (typeof this.value !== 'string') throw this.fail('expected text');
    return this.value;
  }

  textOrNull(): string | null {
    return this.value === null ? null : this.text();
  }

  none(): null {
    if (this.value !== null) throw this.fail('expected null');
    return null;
  }

  digest(): string {
    if (!/^[0-9a-f]{64}$/.test(this.text())) throw this.fail('expected 64 lower-case hex digits');
    return this.text();
  }

  oneOf<T>(choices: readonly T[]): T {
    const found = choices.find((choice) => choice === this.value);
    if (found === undefined) throw this.fail(`expected one of ${choices.join(', ')}`);
    return found;
  }

  private items(values: readonly unknown[]): CaseField[] {
    return values.map((value, i) => new CaseField(value, this.where, `${this.path}[${i}]`));
  }
}

/** Whether a JSON value is an object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A few words for a JSON value. */
export function show(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (isRecord(value)) return `an object with ${Object.keys(value).slice(0, 8).join(', ') || 'no fields'}`;
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
