// Whether what a serving master counts as published is what was heard of it.
import type { MasterEvidence } from '../evidence.js';
import { type Check, failed, ok, skipped, type Verdict } from '../finding.js';
import { count, sumOf, tallyText } from '../words.js';

export const masterStream: Check = {
  code: 'master-stream',
  title: "the store's events arrive whole",
  run: ({ store }) => (store?.masters ?? []).map(ofMaster),
};

function ofMaster({ endpoint, status, events, heard, sequenceBefore, sequenceAfter }: MasterEvidence): Verdict {
  const subject = endpoint.events;
  const bad = sumOf(heard.unreadable);
  if (bad > 0) {
    return failed(
      subject,
      `${bad} of ${count(heard.messages, 'message')} unreadable (${tallyText(heard.unreadable)}): ${heard.faultText}`,
      "Is it the master's event socket, and not a worker's? If it is, record it (moonroute record) and report it with the version of Mooncake.",
    );
  }
  if (heard.missed > 0) {
    return failed(
      subject,
      `${count(heard.missed, 'number')} skipped among ${count(heard.messages, 'message')}: events were dropped`,
      'Each gap drops everything known of the store until a reconcile. Raise --kv_events_queue_capacity of the master; see whether the network keeps up.',
    );
  }
  if (events.found !== 'events') return skipped(subject, 'no event socket (see master-port)');
  if (status?.state === 'standby') return skipped(subject, 'a standby publishes nothing');
  const moved = sequenceBefore !== null && sequenceAfter !== null && sequenceAfter > sequenceBefore;
  if (moved && (heard.lastSequence === null || heard.lastSequence <= sequenceBefore)) {
    return failed(
      subject,
      `its counters moved from ${sequenceBefore} to ${sequenceAfter}, and nothing of it was heard`,
      'The socket is not that of this master: events and http of each entry of sharedCache.masters must be those of the same one.',
    );
  }
  if (heard.messages > 0)
    return ok(subject, `${count(heard.messages, 'message')}, ${heard.stored} stored, ${heard.removed} removed`);
  return sequenceAfter === null ? skipped(subject, 'nothing was heard') : ok(subject, 'quiet, as its counters say');
}
