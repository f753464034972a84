// Whether the events are on, and the configured port is theirs.
import { type Check, skipped } from '../finding.js';
import { portVerdict } from '../port-verdict.js';
import { rankName } from '../words.js';

const ADVICE = {
  setting: "the worker's events",
  enable:
    'Start vLLM with --kv-events-config \'{"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "tcp://*:5557"}\'; rank r publishes at the port + r.',
};

export const eventsPort: Check = {
  code: 'events-port',
  title: 'events are on, at the configured port',
  run: ({ workers }) =>
    workers.flatMap((worker) =>
      worker.ranks.map((rank) =>
        rank.events === null
          ? skipped(rankName(worker, rank), 'configured without events: routed by load alone')
          : portVerdict(rankName(worker, rank), rank.events, ADVICE),
      ),
    ),
};
