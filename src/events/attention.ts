// The kinds of KV-cache group. Only main attention describes a whole prompt, since its groups hold every block of the prefix: so only
// their events may be indexed or learned from (spec/kv-events.md 1.10).

const MAIN_ATTENTION_KINDS: ReadonlySet<string> = new Set(['full_attention', 'mla_attention', 'sink_full_attention']);
const OTHER_KINDS: ReadonlySet<string> = new Set([
  'sliding_window',
  'sliding_window_mla',
  'mamba',
  'chunked_local_attention',
  'encoder_only_attention',
  'cross_attention',
]);

/** What `kv_cache_spec_kind`, as it stands on the wire, names: main attention, another kind, or nothing known. */
export function attentionOf(kind: string): 'main' | 'other' | 'unknown' {
  if (MAIN_ATTENTION_KINDS.has(kind)) return 'main';
  return OTHER_KINDS.has(kind) ? 'other' : 'unknown';
}
