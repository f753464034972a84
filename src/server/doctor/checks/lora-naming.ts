// Whether adapters have one name: the one that events carry must be the one that the worker lists, for it enters the hashes.
import type { WorkerEvidence } from '../evidence.js';
import { type Check, failed, ok, skipped, type Verdict } from '../finding.js';
import { addTallies, count, listText } from '../words.js';

/** Events name an adapter by number, and no name: the releases of before. */
const UNNAMED = 'lora-name-missing';

export const loraNaming: Check = {
  code: 'lora-naming',
  title: 'adapters are named alike in events and in /v1/models',
  run: ({ workers }) => workers.map(ofWorker),
};

function ofWorker({ spec, ranks, models }: WorkerEvidence): Verdict {
  const named = Object.keys(addTallies(ranks.map(({ heard }) => heard.adapters)));
  const inKeys = Object.keys(addTallies(ranks.map(({ heard }) => heard.untagged.adapters)));
  const unnamed = addTallies(ranks.map(({ heard }) => heard.ineligible))[UNNAMED] ?? 0;
  const listed = models?.adapters ?? null;
  if (unnamed > 0) {
    return failed(
      spec.id,
      `${count(unnamed, 'event')} with the number of an adapter and not its name`,
      'Update vLLM: events name adapters since early 2026.',
    );
  }
  if (inKeys.length > 0) {
    return failed(
      spec.id,
      `/v1/models lists ${listText(inKeys)}, and events carry that name among the extra keys without saying that it is the adapter's`,
      'Update vLLM: events must say lora_name; until then prompts of adapters teach nothing. A salt that is named like an adapter looks the same: rename it.',
    );
  }
  if (named.length === 0 && (listed === null || listed.length === 0))
    return skipped(spec.id, 'no adapter was heard of');
  if (listed === null) return skipped(spec.id, `events name ${listText(named)}; /v1/models was not to be had`);
  const unknown = named.filter((name) => !listed.includes(name));
  if (unknown.length > 0) {
    return failed(
      spec.id,
      `events name ${listText(unknown)}, and /v1/models lists ${listText(listed) || 'no adapter'}`,
      'Requests must ask for the adapter under the name that enters the hashes: give --lora-modules the same name on every worker, and load it there.',
    );
  }
  const silent = listed.filter((name) => !named.includes(name));
  const rest = silent.length === 0 ? '' : `; nothing heard of ${listText(silent)}`;
  return named.length === 0
    ? skipped(spec.id, `no event of ${listText(listed)} was heard`)
    : ok(spec.id, `${listText(named)}${rest}`);
}
