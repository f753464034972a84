// Whether the replay sockets answer: without them every lost message costs a rank its part of the index.
import type { ReplayEvidence } from '../evidence.js';
import { type Check, failed, ok, skipped, type Verdict } from '../finding.js';
import { rankName } from '../words.js';

export const replay: Check = {
  code: 'replay',
  title: 'replay sockets answer',
  run: ({ workers }) =>
    workers.flatMap((worker) =>
      worker.ranks.map((rank) =>
        rank.replay === null
          ? skipped(
              rankName(worker, rank),
              'configured without replay: a lost message empties the rank’s part of the index',
            )
          : ofSocket(rankName(worker, rank), rank.replay),
      ),
    ),
};

const FIX = "Set replay to the replay_endpoint of the worker's kv-events-config, or to null where it has none.";

function ofSocket(subject: string, { endpoint, found, answered, detail }: ReplayEvidence): Verdict {
  if (answered) return ok(subject, `${endpoint} answers`);
  if (found === 'events')
    return failed(subject, `${endpoint} is an event socket (PUB), not a replay socket: the wrong port`, FIX);
  if (found === 'http') return failed(subject, `${endpoint} answers as an HTTP server: the wrong port`, FIX);
  if (found === 'nobody') return failed(subject, `nothing listens at ${endpoint} (${detail ?? 'refused'})`, FIX);
  if (found === 'replay')
    return failed(
      subject,
      `${endpoint} connects and does not answer`,
      `${FIX} A busy engine answers late: try again with more --seconds.`,
    );
  return failed(subject, `${endpoint} is no replay socket (${detail ?? 'no connection in time'})`, FIX);
}
