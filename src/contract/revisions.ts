// Which vLLM revisions a contract may name. Hints rest on private vLLM behaviour, so a revision counts only with evidence: cases
// that its own coordinator computed and that `moonroute oracle` reproduced without a single over-credit. The default set holds
// the one revision that the project is pinned to (spec/kv-events.md 6.1). Sets are immutable; adding makes a new one.
import { ContractError } from '../errors.js';
import { shown } from './descriptor.js';

/** The revision that the default set accepts and that the project's own case files were computed by. */
export const PINNED_REVISION = '1085b64425a9e6f5ca52876ad32e55fda5665f4e';

/** First day on which vLLM's GPU events tell extra keys (vllm#33304); without them nothing proves that a hash covers text only. */
export const FIRST_EXTRA_KEYS_DATE = '2026-02-20';

/** One accepted vLLM revision and the facts stated about it. */
export interface AcceptedRevision {
  /** Full commit id, 40 lowercase hex digits. */
  readonly revision: string;
  /** `vllm-` and the commit id's first 8 digits. */
  readonly adapter: string;
  /** Day of the commit, YYYY-MM-DD. */
  readonly date: string;
  readonly emitsExtraKeys: true;
  /** How block digests are made. */
  readonly hashRule: 'sha256';
  /** `compact`: an object key ends in one digest, whatever the ratio of block and hash span. */
  readonly keyFormat: 'compact';
}

declare const accepted: unique symbol;

/** The revisions that `validateContract` accepts: start from `defaultRevisions`, add with `acceptRevision`. */
export type RevisionSet = readonly AcceptedRevision[] & { readonly [accepted]: true };

/** What running a case file through the real path gave, as `moonroute oracle FILE --json` prints it. Numbers of cases. */
export interface OracleVerdict {
  readonly cases: number;
  readonly equal: number;
  readonly under: number;
  readonly over: number;
  readonly unsupported: number;
}

/** A request to accept a revision. The facts are stated by the caller; the verdict is what checks them. */
export interface RevisionClaim {
  readonly revision: string;
  readonly date: string;
  readonly emitsExtraKeys: boolean;
  readonly hashRule: string;
  readonly keyFormat: string;
  /** The parsed case file, in the form of data/oracle-cases.json or of the reference's own oracle. */
  readonly caseFile: unknown;
  readonly oracleVerdict: OracleVerdict;
}

/** The adapter's name for a revision. */
export function adapterOf(revision: string): string {
  return `vllm-${revision.slice(0, 8)}`;
}

/** The adapter's name for what was not read from a running engine of the revision, but derived from what is public (derive.ts). */
export function derivedAdapterOf(revision: string): string {
  return `derived-${revision.slice(0, 8)}`;
}

/** Whether a descriptor with this adapter is one of the revision: read from its engine, or derived for it. */
export function isAdapterOf({ revision, adapter }: AcceptedRevision, name: string): boolean {
  return name === adapter || name === derivedAdapterOf(revision);
}

/** Accepts the pinned revision only. */
export const defaultRevisions: RevisionSet = setOf([entryOf(PINNED_REVISION, '2026-09-16')]);

/** The accepted revision with this full id, or undefined. */
export function findRevision(set: RevisionSet, revision: string): AcceptedRevision | undefined {
  return set.find((entry) => entry.revision === revision);
}

/**
 * A new set that also accepts `claim.revision`; `set` is unchanged.
 * @throws ContractError when a fact is not supported, the case file is not this revision's, or the verdict does not bear it out.
 */
export function acceptRevision(set: RevisionSet, claim: RevisionClaim): RevisionSet {
  const { revision, date } = claim;
  if (typeof revision !== 'string' || !/^[0-9a-f]{40}$/.test(revision)) {
    throw refusal('invalid-revision', revision, 'the id is not 40 lowercase hex digits', 'Give the full commit id');
  }
  checkDate(revision, date);
  if (claim.emitsExtraKeys !== true) {
    throw refusal(
      'no-extra-keys',
      revision,
      `emitsExtraKeys is ${shown(claim.emitsExtraKeys)}`,
      'Use a revision whose GPU events carry extra_keys; without them no event proves that its hashes cover text only',
    );
  }
  if (claim.hashRule !== 'sha256') {
    throw refusal('unsupported-hash-rule', revision, `hashRule is ${shown(claim.hashRule)}`, 'Only sha256 is known');
  }
  if (claim.keyFormat !== 'compact') {
    throw refusal(
      'unsupported-key-format',
      revision,
      `keyFormat is ${shown(claim.keyFormat)}`,
      'Only compact is known',
    );
  }
  checkVerdict(revision, countCases(revision, claim.caseFile), claim.oracleVerdict);
  return setOf([...set.filter((entry) => entry.revision !== revision), entryOf(revision, date)]);
}

function entryOf(revision: string, date: string): AcceptedRevision {
  return {
    revision,
    adapter: adapterOf(revision),
    date,
    emitsExtraKeys: true,
    hashRule: 'sha256',
    keyFormat: 'compact',
  };
}

function setOf(entries: readonly AcceptedRevision[]): RevisionSet {
  return Object.freeze(entries.map((entry) => Object.freeze(entry))) as unknown as RevisionSet;
}

function checkDate(revision: string, date: unknown): void {
  const time =
    typeof date === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(date) ? Date.parse(`${date}T00:00:00Z`) : Number.NaN;
  // A day that no month has either fails to parse or comes back as another day.
  if (Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== date) {
    throw refusal('invalid-revision-date', revision, `date is ${shown(date)}`, 'Give the commit day as YYYY-MM-DD');
  }
  if (time < Date.parse(`${FIRST_EXTRA_KEYS_DATE}T00:00:00Z`)) {
    throw refusal(
      'revision-too-old',
      revision,
      `its date ${date} is before ${FIRST_EXTRA_KEYS_DATE}, when GPU events got extra_keys (vllm#33304)`,
      'Use a later vLLM revision',
    );
  }
}

/** Number of cases in a case file that says it was computed by `revision`, in either spelling; both must agree if both are there. */
function countCases(revision: string, caseFile: unknown): number {
  const file = fieldsOf(caseFile);
  const named = [fieldsOf(file['source'])['pinned_revision'], file['vllm_revision']].filter((id) => id !== undefined);
  if (named.length === 0 || named.some((id) => id !== revision)) {
    throw refusal(
      'foreign-case-file',
      revision,
      `the case file names revision ${named.length === 0 ? 'nothing' : named.map(shown).join(' and ')}`,
      "Give a case file whose source.pinned_revision or vllm_revision is this id, computed by this revision's own coordinator",
    );
  }
  const cases = file['cases'];
  if (!Array.isArray(cases) || cases.length === 0) {
    throw refusal(
      'empty-case-file',
      revision,
      `the case file's cases are ${shown(cases)}`,
      'Give a file with cases in it',
    );
  }
  return cases.length;
}

function checkVerdict(revision: string, cases: number, verdict: OracleVerdict): void {
  const { equal, under, over, unsupported } = fieldsOf(verdict);
  const parts = [equal, under, over, unsupported];
  const counts = parts.filter((part): part is number => Number.isSafeInteger(part) && (part as number) >= 0);
  const sum = counts.reduce((total, count) => total + count, 0);
  if (verdict?.cases !== cases || sum !== cases || counts.length !== parts.length) {
    throw refusal(
      'incomplete-oracle-verdict',
      revision,
      `the case file has ${cases} cases, the verdict ${shown(verdict?.cases)}, of which ` +
        `${shown(equal)} equal, ${shown(under)} under, ${shown(over)} over, ${shown(unsupported)} unsupported`,
      'Run `moonroute oracle` on this very file and give its whole result',
    );
  }
  if (verdict.over > 0) {
    throw refusal(
      'oracle-over-credit',
      revision,
      `${verdict.over} of ${cases} cases were credited above what this revision restores`,
      'This revision restores by other rules; do not accept it',
    );
  }
  if (verdict.equal === 0) {
    throw refusal(
      'oracle-nothing-equal',
      revision,
      `none of ${cases} cases was reproduced (${verdict.under} under, ${verdict.unsupported} unsupported)`,
      'Give a case file whose geometries the contract supports',
    );
  }
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function refusal(code: string, revision: unknown, seen: string, advice: string): ContractError {
  return new ContractError(code, `vLLM revision ${shown(revision)} is not accepted: ${seen}. ${advice}.`);
}
