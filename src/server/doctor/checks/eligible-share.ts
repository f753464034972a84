// How many of the events that count may teach the shared cache, and what speaks against the others.
import { type Check, failed, ok, skipped } from '../finding.js';
import { addTallies, count, shareText, sumOf, tallyText } from '../words.js';

export const eligibleShare: Check = {
  code: 'eligible-share',
  title: 'events may teach the shared cache',
  run: ({ target, workers }) =>
    workers.map(({ spec, ranks }) => {
      if (target.sharedCache.type === 'none') return skipped(spec.id, 'no shared cache is configured');
      const stored = ranks.reduce((sum, { heard }) => sum + heard.stored, 0);
      const eligible = ranks.reduce((sum, { heard }) => sum + heard.eligible, 0);
      const reasons = addTallies(ranks.map(({ heard }) => heard.ineligible));
      const dropped = addTallies(ranks.map(({ heard }) => heard.dropped));
      if (stored === 0 && sumOf(dropped) > 0) {
        return failed(
          spec.id,
          `all of ${count(sumOf(dropped), 'event')} were dropped (${tallyText(dropped)})`,
          'The router uses blocks of the main attention group on the device. See docs/doctor.md for these reasons; an engine that publishes no such events can only be routed by load.',
        );
      }
      if (stored === 0) return skipped(spec.id, 'no stored event was heard');
      const against = sumOf(reasons) === 0 ? '' : `; against the others: ${tallyText(reasons)}`;
      const seen = `${shareText(eligible, stored)} of ${count(stored, 'stored event')}${against}`;
      if (eligible > 0) return ok(spec.id, seen);
      return failed(
        spec.id,
        seen,
        'Only prompts whose hashes cover text, adapter and a tagged salt teach. See docs/doctor.md for these reasons; salt-naming and lora-naming may say more.',
      );
    }),
};
