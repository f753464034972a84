// The kinds of KV-cache group whose events describe a prompt's main attention: those hold every block of the prefix, so only
// they may be indexed or learned from (spec/kv-events.md 1.10).

const MAIN_ATTENTION_KINDS: ReadonlySet<string> = new Set(['full_attention', 'mla_attention', 'sink_full_attention']);

/** Whether `kv_cache_spec_kind`, as it stands on the wire, names a main-attention group. */
export function isMainAttention(kind: string): boolean {
  return MAIN_ATTENTION_KINDS.has(kind);
}
