// Whether each event socket is that of the rank that it is configured for.
import { type Check, failed, ok, skipped } from '../finding.js';
import { listText, rankName } from '../words.js';

export const eventsRank: Check = {
  code: 'events-rank',
  title: 'each socket speaks for its own rank',
  run: ({ workers }) =>
    workers.flatMap((worker) =>
      worker.ranks.map((rank) => {
        const subject = rankName(worker, rank);
        const said = Object.keys(rank.heard.dpRanks);
        if (said.length === 0) return skipped(subject, 'nothing was heard');
        const others = said.filter((name) => name !== String(rank.dpRank));
        if (others.length === 0) return ok(subject, `rank ${rank.dpRank}`);
        return failed(
          subject,
          `configured as rank ${rank.dpRank}, and its messages name rank ${listText(others)}`,
          "Correct dpRanks.start and the order of the events endpoints: rank r is at the first one's port + r.",
        );
      }),
    ),
};
