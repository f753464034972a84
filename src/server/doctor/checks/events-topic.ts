// Whether the messages' topics begin as configured: a subscription to another topic hears nothing, for good.
import { type Check, failed, ok, skipped } from '../finding.js';
import { listText, rankName } from '../words.js';

export const eventsTopic: Check = {
  code: 'events-topic',
  title: 'topics begin as configured',
  run: ({ workers }) =>
    workers.flatMap((worker) =>
      worker.ranks.map((rank) => {
        const subject = rankName(worker, rank);
        const { topic } = worker.spec;
        const { topics } = rank.heard;
        const shown = listText(topics.map((name) => JSON.stringify(name)));
        if (topics.length === 0) return skipped(subject, 'nothing was heard');
        if (topics.some((name) => name.startsWith(topic)))
          return ok(subject, topics.every((name) => name === '') ? 'without a topic' : `topic ${shown}`);
        return failed(
          subject,
          `messages come under the topic ${shown}, and ${JSON.stringify(topic)} is subscribed to`,
          "Set the worker's topic to what its kv-events-config says, or leave it empty for all.",
        );
      }),
    ),
};
