// Whether messages and their events can be read.
import { type Check, failed, ok, skipped } from '../finding.js';
import { count, rankName, sumOf, tallyText } from '../words.js';

export const eventsReadable: Check = {
  code: 'events-readable',
  title: 'messages and events can be read',
  run: ({ workers }) =>
    workers.flatMap((worker) =>
      worker.ranks.map((rank) => {
        const subject = rankName(worker, rank);
        const { messages, unreadable, rejected, faultText } = rank.heard;
        if (messages === 0) return skipped(subject, 'nothing was heard');
        const bad = sumOf(unreadable);
        if (bad + sumOf(rejected) === 0) return ok(subject, `all of ${count(messages, 'message')}`);
        const seen = [
          ...(bad > 0 ? [`${bad} of ${count(messages, 'message')} unreadable (${tallyText(unreadable)})`] : []),
          ...(sumOf(rejected) > 0 ? [`${count(sumOf(rejected), 'event')} rejected (${tallyText(rejected)})`] : []),
        ].join(', ');
        return failed(
          subject,
          `${seen}: ${faultText ?? 'no detail'}`,
          "Is it a vLLM worker's event socket, and not the store's or another engine's? If it is, record it (moonroute record) and report it with its vLLM version.",
        );
      }),
    ),
};
