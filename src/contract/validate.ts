// The 28 rules that a descriptor must keep before anything is credited under it, as one table in the order of
// spec/kv-events.md 6.2. The lowest-numbered broken rule is the one reported: a rule about groups is checked on all groups
// before the next rule is (the reference goes group by group; what is accepted is the same).
//
// Shape comes between rules 3 and 4. Rules 1 to 3 read only the field that they judge, because a descriptor of another schema
// or revision may rightly have other fields, and "unsupported schema" is the more useful answer. The whole shape (types,
// required and unknown fields) is read next, and then rules 4 to 28 judge values.
//
// Six rules are there for learning alone: what events can't show, no edge can tell. Where digests are derived they refuse nothing, and what
// they find is noted in the contract. Its fields follow from the descriptor alone, so equal fingerprints are equal contracts in every mode.
import { ContractError } from '../errors.js';
import { checkHashing } from './check-hashing.js';
import {
  type Contract,
  type ContractGroup,
  canonicalJson,
  type Descriptor,
  type DescriptorIdentity,
  type GroupDescriptor,
  type GroupKind,
  type Hashing,
  MAX_GROUPS,
  MAX_PREFIX_BYTES,
  MAX_PREFIXES,
  readDescriptor,
  readIdentity,
  SCHEMA_VERSION,
  shown,
  utf8Bytes,
} from './descriptor.js';
import { derivedHashFault, hashRuleOf, learnedHashFault } from './hash-rule.js';
import { defaultRevisions, derivedAdapterOf, findRevision, isAdapterOf, type RevisionSet } from './revisions.js';

/** The only tenant whose store events are read. The wire also writes it as the empty text (5.6 row 7). */
export const DEFAULT_TENANT = 'default';

/**
 * Largest span and largest alignment, in tokens. The reference allows 2^32 - 1; the core counts tokens in signed 32-bit
 * integers, and no prompt comes near either number.
 */
export const MAX_SPAN = 2 ** 31 - 1;

/**
 * Longest hash block whose digest can be derived, in tokens. The engine hashes a pickle, whose writer cuts what is past 64 KiB into frames of
 * their own; so many tokens, of 7 bytes at most, fit the first one together with the longest LoRA name and salt.
 */
export const MAX_DERIVED_HASH_SPAN = 4096;

/** What is known of a contract beyond its fields. */
interface Verdict {
  /** Edges may be learned under its way of hashing. */
  readonly learnedHash: boolean;
  /** The first of the teaching rules that it breaks. */
  readonly unlearned: ContractRule | undefined;
}

/** Every contract that was made here: no JSON can get into it, and a copy of a contract is none. */
const validated = new WeakMap<object, Verdict>();

/** What a descriptor is held against. */
export interface ValidateOptions {
  /** The vLLM revisions to accept; default: the pinned one. */
  readonly revisions?: RevisionSet | undefined;
  /** The Mooncake tenant that the workers write under; only the default one is supported. */
  readonly tenant?: string | undefined;
  /** Where digests are to come from. Default `learned`; the others ask less of the geometry, and take more ways of hashing. */
  readonly hashing?: Hashing | undefined;
}

/** One rule of 6.2: its number there, its code, and the message that its error begins with. */
export interface ContractRule {
  readonly number: number;
  readonly code: string;
  readonly message: string;
  /**
   * Set where only learning needs the rule: without it no group is the main one, or events do not show every boundary that counts. Such a rule
   * refuses nothing where digests are derived.
   */
  readonly teaching?: 'main-group' | 'boundaries';
}

interface Rule<Subject> extends ContractRule {
  /** What to do about it. */
  readonly advice: string;
  /** What was seen, if the rule is broken. */
  readonly broken: (subject: Subject, revisions: RevisionSet) => string | undefined;
}

const identityRules: readonly Rule<DescriptorIdentity>[] = [
  {
    number: 1,
    code: 'unsupported-schema',
    message: 'unsupported Mooncake Store schema',
    advice: `Publish schema_version ${SCHEMA_VERSION}`,
    broken: (d) => (d.schema_version === SCHEMA_VERSION ? undefined : `schema_version is ${d.schema_version}`),
  },
  {
    number: 2,
    code: 'unsupported-adapter',
    message: 'unsupported Mooncake Store adapter',
    advice: 'Run an accepted vLLM revision, or accept this one with its case file',
    broken: (d, revisions) =>
      revisions.some((entry) => isAdapterOf(entry, d.adapter))
        ? undefined
        : `adapter is ${shown(d.adapter)}, accepted are ${revisions.map(({ adapter }) => adapter).join(', ')}`,
  },
  {
    number: 3,
    code: 'unsupported-revision',
    message: 'unsupported vLLM revision',
    advice: 'Run an accepted vLLM revision under its own adapter, or accept this one with its case file',
    broken: (d, revisions) => {
      const entry = findRevision(revisions, d.vllm_revision);
      return entry !== undefined && isAdapterOf(entry, d.adapter)
        ? undefined
        : `vllm_revision is ${shown(d.vllm_revision)} with adapter ${shown(d.adapter)}`;
    },
  },
];

const rules: readonly Rule<Descriptor>[] = [
  {
    number: 4,
    code: 'unsupported-hash-contract',
    message: 'unsupported Mooncake Store hash contract',
    advice: 'Run vLLM with sha256 prefix caching, integer event hashes and PYTHONHASHSEED=0',
    broken: ({ hash }) => learnedHashFault(hash),
  },
  {
    number: 5,
    code: 'unsupported-input-contract',
    message: 'unsupported Mooncake Store input contract',
    advice: 'Only text input with normalised namespaces and LoRA names is supported',
    broken: ({ input }) => {
      const name = (['text_only', 'normalized_namespaces', 'lora'] as const).find((name) => !input[name]);
      return name && `input.${name} is false`;
    },
  },
  {
    number: 6,
    code: 'zero-block-span',
    message: 'zero Mooncake Store block span',
    advice: 'Publish the spans that the engine runs with',
    broken: (d) => {
      if (d.main_event_block_size === 0) return 'main_event_block_size is 0';
      return d.coordinator.lcm_block_size === 0 ? 'coordinator.lcm_block_size is 0' : undefined;
    },
  },
  {
    number: 7,
    code: 'unsupported-speculation',
    message: 'unsupported speculative or block-drop semantics',
    advice: 'Serve without speculative decoding (Eagle, MTP), or without shared-store hints',
    broken: ({ coordinator }) => {
      const name = (['speculative', 'drop_blocks'] as const).find((name) => coordinator[name]);
      return name && `coordinator.${name} is true`;
    },
  },
  {
    number: 8,
    code: 'unsupported-group-count',
    message: 'unsupported Mooncake Store group count',
    advice: `Publish 1 to ${MAX_GROUPS} store groups`,
    broken: ({ groups }) => countOutside(groups.length, 'store groups'),
  },
  {
    // A GPU group without a store group (a scratch ring) is listed as null, so the list may be longer than `groups`; the
    // engine itself has no more than 64 groups of any kind (6.3).
    number: 9,
    code: 'unsupported-group-projection',
    message: 'unsupported GPU group projection',
    advice: `Publish 1 to ${MAX_GROUPS} entries, one for each GPU group`,
    broken: (d) => countOutside(d.gpu_to_store_group.length, 'gpu_to_store_group entries'),
  },
  {
    number: 10,
    code: 'incomplete-group-projection',
    message: 'GPU group projection is not ordered and complete',
    advice: 'Name every store group exactly once, in order',
    broken: (d) => {
      const projected = d.gpu_to_store_group.filter((group) => group !== null);
      const complete = projected.length === d.groups.length && projected.every((group, i) => group === i);
      return complete
        ? undefined
        : `gpu_to_store_group names ${projected.join(', ') || 'no group'}, of ${d.groups.length} store groups`;
    },
  },
  {
    number: 11,
    code: 'main-group-not-projected',
    teaching: 'main-group',
    message: 'main event group is not projected',
    advice: 'Publish the GPU index of the first full-attention group',
    broken: (d) =>
      mainGroup(d) === undefined
        ? `main_event_group ${d.main_event_group} has no entry in gpu_to_store_group`
        : undefined,
  },
  {
    number: 12,
    code: 'main-span-not-full-attention',
    teaching: 'main-group',
    message: 'main GPU event span does not identify a full-attention store group',
    advice:
      'Publish the GPU index and the block size of the first full-attention group; a model without one gets no hints',
    broken: (d) => {
      const main = mainGroup(d)!;
      return main.kind === 'full_attention' && main.block_size === d.main_event_block_size
        ? undefined
        : `store group ${main.group_id} is ${main.kind} of block_size ${main.block_size}, main_event_block_size is ${d.main_event_block_size}`;
    },
  },
  {
    number: 13,
    code: 'main-group-not-first',
    teaching: 'main-group',
    message: 'main event group is not the first full-attention group',
    advice: 'Publish the GPU index of the first full-attention group',
    broken: (d) => {
      const first = d.groups.find(({ kind }) => kind === 'full_attention')!;
      return mainGroup(d) === first
        ? undefined
        : `main_event_group is ${d.main_event_group}, the first is store group ${first.group_id}`;
    },
  },
  {
    number: 14,
    code: 'unobservable-hash-span',
    teaching: 'boundaries',
    message: 'unobservable hash span',
    advice: 'Learned edges see main-block ends only, so main_event_block_size must be a multiple of hash_block_size',
    broken: (d) => {
      const span = hashSpan(d);
      return isMultiple(d.main_event_block_size, span)
        ? undefined
        : `hash_block_size is ${span}, main_event_block_size is ${d.main_event_block_size}`;
    },
  },
  {
    number: 15,
    code: 'unordered-groups',
    message: 'store groups are not ordered and contiguous',
    advice: 'Number the groups 0, 1, 2, … in store order',
    broken: onGroups((group, _, i) => (group.group_id === i ? undefined : `group_id is ${group.group_id}`)),
  },
  {
    number: 16,
    code: 'invalid-spans',
    message: 'invalid physical, hash, or coordinator spans',
    advice:
      'hash_block_size must be one for all groups and divide block_size, which must divide coordinator.lcm_block_size',
    broken: onGroups((group, d) => {
      const { block_size: block, hash_block_size: hash } = group;
      if (block === 0) return 'block_size is 0';
      if (hash !== hashSpan(d)) return `hash_block_size is ${hash}, in groups[0] it is ${hashSpan(d)}`;
      if (!isMultiple(block, hash)) return `block_size ${block} is no multiple of hash_block_size ${hash}`;
      const lcm = d.coordinator.lcm_block_size;
      return isMultiple(lcm, block) ? undefined : `block_size ${block} does not divide lcm_block_size ${lcm}`;
    }),
  },
  {
    number: 17,
    code: 'unsupported-full-attention',
    message: 'unsupported full-attention semantics',
    advice: 'Only plain full attention is supported, without a window or a Mamba mode',
    broken: onGroupsOf('full_attention', (group) =>
      foreignSemantics(group, 'FullAttention', ['sliding_window', 'mamba_cache_mode']),
    ),
  },
  {
    number: 18,
    code: 'unobservable-full-attention',
    teaching: 'boundaries',
    message: 'unobservable full-attention boundaries',
    advice: 'Learned edges see main-block ends only, so the block size must be a multiple of main_event_block_size',
    broken: onGroupsOf('full_attention', (group, d) =>
      isMultiple(group.block_size, d.main_event_block_size)
        ? undefined
        : `block_size is ${group.block_size}, main_event_block_size is ${d.main_event_block_size}`,
    ),
  },
  {
    number: 19,
    code: 'unsupported-sliding-window-semantics',
    message: 'unsupported sliding-window semantics',
    advice: 'Only the plain sliding window is supported, without a Mamba mode',
    broken: onGroupsOf('sliding_window', (group) => foreignSemantics(group, 'SlidingWindow', ['mamba_cache_mode'])),
  },
  {
    number: 20,
    code: 'missing-sliding-window',
    message: 'missing sliding window',
    advice: 'Publish sliding_window in tokens for a sliding_window group',
    broken: onGroupsOf('sliding_window', (group) =>
      windowOf(group) === null ? `sliding_window is ${shown(group.sliding_window)}` : undefined,
    ),
  },
  {
    number: 21,
    code: 'unsupported-sliding-window',
    message: 'unsupported sliding window',
    advice: `The window counts the query token, so it must be 2 to ${MAX_SPAN} tokens`,
    broken: onGroupsOf('sliding_window', (group) => {
      const window = windowOf(group)!;
      return window > 1 && window <= MAX_SPAN ? undefined : `sliding_window is ${window}`;
    }),
  },
  {
    number: 22,
    code: 'unobservable-sliding-window',
    teaching: 'boundaries',
    message: 'unobservable interior sliding-window boundaries',
    advice:
      'Learned edges see main-block ends only: make block_size a multiple of main_event_block_size, or the window fit one block',
    broken: onGroupsOf('sliding_window', (group, d) => {
      const needed = Math.ceil((windowOf(group)! - 1) / group.block_size);
      return isMultiple(group.block_size, d.main_event_block_size) || needed === 1
        ? undefined
        : `an endpoint needs ${needed} blocks of ${group.block_size}, main_event_block_size is ${d.main_event_block_size}`;
    }),
  },
  {
    number: 23,
    code: 'unsupported-mamba',
    message: 'unsupported Mamba semantics',
    advice: 'Run vLLM with the Mamba cache mode align',
    broken: onGroupsOf(
      'mamba',
      (group) =>
        foreignSemantics(group, 'Mamba', ['sliding_window']) ??
        (group.mamba_cache_mode === 'align' ? undefined : `mamba_cache_mode is ${shown(group.mamba_cache_mode)}`),
    ),
  },
  {
    number: 24,
    code: 'missing-prefixes',
    message: 'missing required object prefixes',
    advice: 'Publish every key prefix that the worker looks up for this group',
    broken: onGroups((group) => (group.key_prefixes.length === 0 ? 'key_prefixes is empty' : undefined)),
  },
  {
    number: 25,
    code: 'invalid-prefix',
    message: 'invalid Mooncake Store object prefix',
    advice: `A prefix is 1 to ${MAX_PREFIX_BYTES} bytes of UTF-8 and does not end in @`,
    broken: onGroups((group) => {
      const at = group.key_prefixes.findIndex((prefix) => !isValidPrefix(prefix));
      return at === -1 ? undefined : `key_prefixes[${at}] is ${shown(group.key_prefixes[at])}`;
    }),
  },
  {
    number: 26,
    code: 'too-many-prefixes',
    message: 'too many required object prefixes',
    advice: 'Serve this layout without shared-store hints',
    broken: ({ groups }) =>
      groups.reduce((sum, group) => sum + group.key_prefixes.length, 0) > MAX_PREFIXES
        ? `the groups have more than ${MAX_PREFIXES} together`
        : undefined,
  },
  {
    number: 27,
    code: 'duplicate-prefix',
    message: 'duplicate required object prefix',
    advice: 'Publish each prefix once, in one group: a key must tell which group its object belongs to',
    broken: ({ groups }) => {
      const seen = new Set<string>();
      for (const prefix of groups.flatMap((group) => group.key_prefixes)) {
        if (seen.has(prefix)) return `${shown(prefix)} occurs twice`;
        seen.add(prefix);
      }
      return undefined;
    },
  },
  {
    // Rule 16 makes every block size divide lcm_block_size, so only the main event span may add to it, and that only where rule 12 is broken.
    number: 28,
    code: 'alignment-overflow',
    message: 'Mooncake Store alignment overflow',
    advice: `The least common multiple of all spans must be at most ${MAX_SPAN} tokens`,
    broken: ({ coordinator, main_event_block_size: main }) => {
      const lcm = coordinator.lcm_block_size;
      // A product too large to be exact is still far too large.
      if ((lcm / greatestDivisor(lcm, main)) * main <= MAX_SPAN) return undefined;
      const seen = `coordinator.lcm_block_size is ${lcm}`;
      return isMultiple(lcm, main) ? seen : `${seen}, main_event_block_size is ${main}`;
    },
  },
];

/** The rules under which digests are derived. */
const derivedRules: readonly Rule<Descriptor>[] = rules
  .filter(({ teaching }) => teaching === undefined)
  .map((rule) =>
    rule.number === 4
      ? {
          ...rule,
          advice:
            'Run vLLM with prefix caching by sha256 or sha256_cbor, set PYTHONHASHSEED to the same text for all engines (0, for example), and publish that as pythonhashseed-0',
          broken: ({ hash, vllm_revision }, revisions) =>
            derivedHashFault(hash, findRevision(revisions, vllm_revision)!.date),
        }
      : rule,
  );

/** The rules that make events teach. Each relies on those before it, and on the derived ones. */
const teachingRules: readonly Rule<Descriptor>[] = rules.filter(({ teaching }) => teaching !== undefined);

/** The rules in order, for documentation and tests. */
export const contractRules: readonly ContractRule[] = [...identityRules, ...rules];

/**
 * Checks a worker's published descriptor and returns the contract that shared credit may be given under.
 * @param json the descriptor as a parsed JSON value, of any shape
 * @throws ContractError with the code of the first broken rule (`contractRules`), or `malformed-descriptor`, `unknown-field`,
 *   `unknown-group-kind` for its shape, or `unsupported-tenant`, which is checked first; where digests are derived also
 *   `underivable-hash-span`, checked last
 * @throws ConfigError `hashing` for a mode that there is not
 */
export function validateContract(json: unknown, options: ValidateOptions = {}): Contract {
  const { revisions = defaultRevisions, tenant = DEFAULT_TENANT, hashing = 'learned' } = options;
  checkHashing(hashing);
  if (tenant !== DEFAULT_TENANT && tenant !== '') {
    throw new ContractError(
      'unsupported-tenant',
      `unsupported Mooncake tenant: tenant is ${shown(tenant)}. Let the workers write under ${shown(DEFAULT_TENANT)}.`,
    );
  }
  enforce(identityRules, readIdentity(json), revisions);
  const descriptor = readDescriptor(json);
  if (hashing === 'learned') enforce(rules, descriptor, revisions);
  else {
    enforce(derivedRules, descriptor, revisions);
    checkDerivable(descriptor);
  }
  const unlearned = firstBroken(teachingRules, descriptor, revisions)?.rule;
  const contract = contractOf(descriptor, unlearned);
  validated.set(contract, { learnedHash: learnedHashFault(descriptor.hash) === undefined, unlearned });
  return contract;
}

/** The first rule for which no events teach under a contract of `validateContract`; null where they do. */
export function unlearnedRule(contract: Contract): ContractRule | null {
  return validated.get(contract)?.unlearned ?? null;
}

/**
 * Whether this very object was made by `validateContract` in this process, and would be for `hashing` too: what is good for deriving may teach
 * nothing, and the other way round.
 */
export function isValidatedContract(value: unknown, hashing: Hashing = 'learned'): value is Contract {
  if (typeof value !== 'object' || value === null) return false;
  const verdict = validated.get(value);
  if (verdict === undefined) return false;
  if (hashing === 'learned') return verdict.learnedHash && verdict.unlearned === undefined;
  return (value as Contract).hashBlockSize <= MAX_DERIVED_HASH_SPAN;
}

function enforce<Subject>(table: readonly Rule<Subject>[], subject: Subject, revisions: RevisionSet): void {
  const first = firstBroken(table, subject, revisions);
  if (first === undefined) return;
  const { code, message, advice, number } = first.rule;
  throw new ContractError(code, `${message}: ${first.seen}. ${advice} (contract rule ${number}).`);
}

/** The first rule that is broken, and what was seen. */
function firstBroken<Subject>(table: readonly Rule<Subject>[], subject: Subject, revisions: RevisionSet) {
  for (const rule of table) {
    const seen = rule.broken(subject, revisions);
    if (seen !== undefined) return { rule, seen };
  }
  return undefined;
}

function checkDerivable(descriptor: Descriptor): void {
  const span = hashSpan(descriptor);
  if (span <= MAX_DERIVED_HASH_SPAN) return;
  throw new ContractError(
    'underivable-hash-span',
    `hash span too long to derive digests: hash_block_size is ${span}, at most ${MAX_DERIVED_HASH_SPAN} tokens are supported. Run vLLM with smaller blocks, or with hashing learned.`,
  );
}

function contractOf(descriptor: Descriptor, unlearned: ContractRule | undefined): Contract {
  const sorted: Descriptor = {
    ...descriptor,
    groups: descriptor.groups.map((group) => ({ ...group, key_prefixes: [...group.key_prefixes].sort() })),
  };
  const groups = sorted.groups.map(
    (group): ContractGroup =>
      Object.freeze({
        groupId: group.group_id,
        kind: group.kind,
        blockSize: group.block_size,
        slidingWindow: windowOf(group),
        keyPrefixes: Object.freeze(group.key_prefixes),
      }),
  );
  return Object.freeze({
    revision: descriptor.vllm_revision,
    adapter: descriptor.adapter,
    verified: descriptor.adapter !== derivedAdapterOf(descriptor.vllm_revision),
    mainEventBlockSize: descriptor.main_event_block_size,
    hashBlockSize: hashSpan(descriptor),
    lcmBlockSize: descriptor.coordinator.lcm_block_size,
    partialHashHits: descriptor.coordinator.partial_hash_hits,
    gpuToStoreGroup: Object.freeze(descriptor.gpu_to_store_group),
    mainEventGroup: unlearned?.teaching === 'main-group' ? null : descriptor.main_event_group,
    hashRule: hashRuleOf(descriptor.hash),
    learnable: unlearned === undefined,
    groups: Object.freeze(groups),
    // Rules 4, 8, 9, 25 and 26 bound its length.
    fingerprint: canonicalJson(sorted, Number.POSITIVE_INFINITY),
  });
}

type GroupCheck = (group: GroupDescriptor, descriptor: Descriptor, index: number) => string | undefined;

/** A rule that every group must keep; reports the first group that does not. */
function onGroups(check: GroupCheck): Rule<Descriptor>['broken'] {
  return (descriptor) => {
    for (const [i, group] of descriptor.groups.entries()) {
      const seen = check(group, descriptor, i);
      if (seen !== undefined) return `in groups[${i}] (${group.kind}) ${seen}`;
    }
    return undefined;
  };
}

/** A rule for the groups of one kind. */
function onGroupsOf(kind: GroupKind, check: GroupCheck): Rule<Descriptor>['broken'] {
  return onGroups((group, descriptor, i) => (group.kind === kind ? check(group, descriptor, i) : undefined));
}

/** What shows that a group is not exactly `family`'s spec under its manager, or has a field of another kind. */
function foreignSemantics(
  group: GroupDescriptor,
  family: string,
  foreign: readonly ('sliding_window' | 'mamba_cache_mode')[],
): string | undefined {
  if (group.spec !== `${family}Spec`) return `spec is ${shown(group.spec)}`;
  if (group.manager !== `${family}Manager`) return `manager is ${shown(group.manager)}`;
  const name = foreign.find((name) => (group[name] ?? null) !== null);
  return name && `${name} is ${shown(group[name])}`;
}

function countOutside(count: number, what: string): string | undefined {
  // The reader stops one past the limit, so a larger count is not known exactly.
  return count >= 1 && count <= MAX_GROUPS
    ? undefined
    : `there are ${count === 0 ? 'no' : `more than ${MAX_GROUPS}`} ${what}`;
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

function isMultiple(value: number, of: number): boolean {
  return of > 0 && value % of === 0;
}

function isValidPrefix(prefix: string): boolean {
  // Characters bound bytes from below, so an endless text is never encoded. A lone surrogate has no UTF-8 form.
  if (prefix === '' || prefix.length > MAX_PREFIX_BYTES || prefix.endsWith('@')) return false;
  return utf8Bytes(prefix) <= MAX_PREFIX_BYTES && !/\p{Surrogate}/u.test(prefix);
}

function windowOf(group: GroupDescriptor): number | null {
  return group.sliding_window ?? null;
}

/** The one hash span of all groups (rule 16). */
function hashSpan(descriptor: Descriptor): number {
  return descriptor.groups[0]!.hash_block_size;
}

/** The store group of `main_event_group`, if it has one. */
function mainGroup(descriptor: Descriptor): GroupDescriptor | undefined {
  const index = descriptor.gpu_to_store_group[descriptor.main_event_group] ?? null;
  return index === null ? undefined : descriptor.groups[index];
}
