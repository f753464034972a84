// Whether events come from every rank. Silence of an idle rank is none's fault; after a completion that was answered it is.
import type { Evidence, RankEvidence, WorkerEvidence } from '../evidence.js';
import { type Check, failed, ok, skipped, type Verdict } from '../finding.js';
import { count, rankName } from '../words.js';

export const eventsArrive: Check = {
  code: 'events-arrive',
  title: 'events arrive from every rank',
  run: (evidence) => evidence.workers.flatMap((worker) => worker.ranks.map((rank) => ofRank(evidence, worker, rank))),
};

function ofRank({ seconds }: Evidence, worker: WorkerEvidence, rank: RankEvidence): Verdict {
  const subject = rankName(worker, rank);
  const { messages, missed, stored } = rank.heard;
  if (rank.events === null)
    return skipped(
      subject,
      worker.spec.plane == null ? 'configured without events' : 'its events come over the event plane',
    );
  if (messages > 0 && missed > 0) {
    return failed(
      subject,
      `${count(messages, 'message')}, and ${count(missed, 'message')} missed between them`,
      "The publisher drops messages above its high-water mark: raise hwm in vLLM's kv-events-config, and see whether the network keeps up. With a replay endpoint nothing is lost for good.",
    );
  }
  if (messages > 0) return ok(subject, `${count(messages, 'message')}; stored events that count: ${stored}`);
  if (!rank.events.connected) return skipped(subject, 'no connection (see events-port)');
  if (rank.probe === null) return skipped(subject, `nothing in ${seconds} s; if the pool is idle, say --probe`);
  if (rank.probe.fault !== null)
    return failed(
      subject,
      `the small completion failed: ${rank.probe.fault}`,
      'Send it one by hand, and mend what it answers.',
    );
  return failed(
    subject,
    'connected, the small completion was answered, and no event came',
    'See whether prefix caching is on (--enable-prefix-caching) and enable_kv_cache_events is true; whether another process publishes at this port; and with several ranks, whether their ports are in order.',
  );
}
