// Which tier of a worker an event's medium names. The table is case-sensitive: the lower-case "cpu" of vLLM's store
// connector is deliberately no tier, for what it announces is the master's to tell (spec/kv-events.md 1.8, vllm-store.md 8).

export type Tier = 'device' | 'host_pinned' | 'disk' | 'external';

const TIER_OF_MEDIUM: ReadonlyMap<string, Tier> = new Map([
  ['', 'device'],
  ['GPU', 'device'],
  ['DEVICE', 'device'],
  ['CPU', 'host_pinned'],
  ['CPU_PINNED', 'host_pinned'],
  ['CPU_TIER1', 'host_pinned'],
  ['CPU_TIER2', 'disk'],
  ['DISK', 'disk'],
  ['NVME', 'disk'],
  ['STORAGE', 'disk'],
  ['EXTERNAL', 'external'],
  ['NETWORK', 'external'],
  ['REMOTE', 'external'],
  ['SHARED', 'external'],
]);

/** The tier of a medium as it stands on the wire, absent (null) or empty meaning the device; null when it names none. */
export function tierOf(medium: string | null): Tier | null {
  return TIER_OF_MEDIUM.get(medium ?? '') ?? null;
}
