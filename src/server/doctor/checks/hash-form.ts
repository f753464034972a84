// Which form the engine's hashes have on the wire: integers or whole digests. Both are read; what is neither is not.
import { type Check, failed, ok, skipped } from '../finding.js';
import { addTallies, count, sumOf, tallyText } from '../words.js';

const FAULTS = ['hash-type', 'hash-width', 'hash-mixed'];

export const hashForm: Check = {
  code: 'hash-form',
  title: 'hashes come as integers or as 32 bytes',
  run: ({ workers }) =>
    workers.map(({ spec, ranks }) => {
      const rejected = addTallies(ranks.map(({ heard }) => heard.rejected));
      const faults = Object.fromEntries(Object.entries(rejected).filter(([code]) => FAULTS.includes(code)));
      if (sumOf(faults) > 0) {
        return failed(
          spec.id,
          `hashes of ${count(sumOf(faults), 'event')} can't be read (${tallyText(faults)})`,
          'Start vLLM with --prefix-caching-hash-algo sha256; its digests have 32 bytes, or 64 bits with VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES=1.',
        );
      }
      const integers = ranks.reduce((sum, { heard }) => sum + heard.hashForms.integers, 0);
      const digests = ranks.reduce((sum, { heard }) => sum + heard.hashForms.digests, 0);
      if (integers + digests === 0) return skipped(spec.id, 'no hash was heard');
      if (digests === 0) return ok(spec.id, 'integers of 64 bits');
      return ok(
        spec.id,
        integers === 0
          ? 'binary, 32 bytes'
          : `binary in ${count(digests, 'event')}, integers in ${count(integers, 'event')}`,
      );
    }),
};
