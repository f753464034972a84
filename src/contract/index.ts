// The contract room's public face: what a worker publishes, what may be trusted of it, and under which vLLM revisions.
export {
  type AgreementOptions,
  agreeOnContract,
  MAX_DESCRIPTOR_BYTES,
  MAX_REASON_CHARS,
  MAX_WORLD_SIZE,
} from './agree.js';
export { type DeriveOptions, deriveDescriptor } from './derive.js';
export {
  type Contract,
  type ContractGroup,
  type Descriptor,
  type GroupDescriptor,
  type GroupKind,
  HASHINGS,
  type Hashing,
  type HashRule,
  MAX_GROUPS,
  MAX_PREFIX_BYTES,
  MAX_PREFIXES,
} from './descriptor.js';
export { descriptorFromCase, type OracleCaseGeometry, type OracleCaseGroup } from './from-case.js';
export { MODEL_TYPES } from './model-layers.js';
export {
  type AcceptedRevision,
  acceptRevision,
  adapterOf,
  defaultRevisions,
  derivedAdapterOf,
  FIRST_EXTRA_KEYS_DATE,
  findRevision,
  type OracleVerdict,
  PINNED_REVISION,
  type RevisionClaim,
  type RevisionSet,
} from './revisions.js';
export {
  type ContractRule,
  contractRules,
  DEFAULT_TENANT,
  MAX_DERIVED_HASH_SPAN,
  MAX_SPAN,
  unlearnedRule,
  type ValidateOptions,
  validateContract,
} from './validate.js';
