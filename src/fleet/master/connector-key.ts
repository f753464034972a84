// What generation B reads out of the keys of the vLLM and vLLM-Ascend connectors and puts into its events (spec/mooncake-events.md 0 and 8):
//   [cache_prefix@]model@tp_rank:N@pcpN@dcpN@pp_rank:N[@group:N]@HEX
//   model@pcpN@dcpN@head_or_tp_rank:N@pp_rank:N@HEX            model@pcpN@dcpN@head_or_tp_rank:N@HEX@LAYER
// Everything before the model is the cache prefix in the first form; a model's name may contain `@` in the other two.

/** A key's parts by their names on the wire, in their order there; what a form lacks is left out. */
export interface ConnectorKey {
  readonly model: string;
  readonly hash: string;
  /** The low 64 bits of `hash`; null when it is not hexadecimal. */
  readonly seqHash: bigint | null;
  readonly group: string | null;
  readonly cachePrefix: string;
  readonly ranks: readonly (readonly [field: string, value: number])[];
}

const VLLM = /^(?:(.*)@)?([^@]+)@tp_rank:(\d+)@pcp(\d+)@dcp(\d+)@pp_rank:(\d+)(?:@group:(\d+))?@([^@]+)$/;
const ASCEND = /^(.+)@pcp(\d+)@dcp(\d+)@head_or_tp_rank:(\d+)@pp_rank:(\d+)@([^@]+)$/;
const ASCEND_LAYER = /^(.+)@pcp(\d+)@dcp(\d+)@head_or_tp_rank:(\d+)@([^@]+)@(\d+)$/;
const HEX = /^(?:0[xX])?[0-9a-fA-F]*?([0-9a-fA-F]{1,16})$/;

/** Null for keys that no connector writes. */
export function connectorKey(key: string): ConnectorKey | null {
  let match = VLLM.exec(key);
  if (match !== null) {
    const [, cachePrefix = '', model, tp, pcp, dcp, pp, group = null, hash] = match;
    const ranks = named(['tp_rank', tp], ['pcp_rank', pcp], ['dcp_rank', dcp], ['pp_rank', pp]);
    return { model: model!, hash: hash!, seqHash: low64(hash!), group, cachePrefix, ranks };
  }
  match = ASCEND.exec(key);
  if (match !== null) {
    const [, model, pcp, dcp, head, pp, hash] = match;
    const ranks = named(['head_or_tp_rank', head], ['pcp_rank', pcp], ['dcp_rank', dcp], ['pp_rank', pp]);
    return { model: model!, hash: hash!, seqHash: low64(hash!), group: null, cachePrefix: '', ranks };
  }
  match = ASCEND_LAYER.exec(key);
  if (match === null) return null;
  const [, model, pcp, dcp, head, hash, layer] = match;
  const ranks = named(['head_or_tp_rank', head], ['pcp_rank', pcp], ['dcp_rank', dcp], ['layer_id', layer]);
  return { model: model!, hash: hash!, seqHash: low64(hash!), group: null, cachePrefix: '', ranks };
}

function named(...parts: readonly (readonly [string, string | undefined])[]): [string, number][] {
  return parts.map(([field, digits]) => [field, Number(digits)]);
}

function low64(hash: string): bigint | null {
  const digits = HEX.exec(hash)?.[1];
  return digits === undefined ? null : BigInt(`0x${digits}`);
}
