// What a person should know, in words: read off the same data that the page shows, so that no dashboard has to be understood first. Pure. The list
// is short, worst first: what costs every request its hits stands before what costs some.
import type { ConsoleData, Warning } from './console-data.js';
import type { Column } from './console-series.js';

/** Most warnings; a pool that is wholly down need not say so worker by worker. */
const MOST_WARNINGS = 20;
/** Requests of the last minutes below which shares say nothing. */
const FEWEST_REQUESTS = 20;
/** Part of what was reachable, or predicted, below which it is said. */
const ENOUGH = 0.85;

type Facts = Pick<ConsoleData, 'workers' | 'store' | 'contracts' | 'shares' | 'derivation' | 'prompts'>;

/** @param recent sums of the last minutes */
export function warningsOf(facts: Facts, recent: Readonly<Record<Column, number>>): Warning[] {
  const found = [
    ...poolWarnings(facts),
    ...contractWarnings(facts),
    ...derivationWarnings(facts),
    ...(facts.store?.warnings ?? []).map((text) => ({ code: 'store', text })),
    ...workerWarnings(facts),
    ...promptWarnings(facts),
    ...trendWarnings(recent),
  ];
  if (found.length <= MOST_WARNINGS) return found;
  const kept = found.slice(0, MOST_WARNINGS - 1);
  return [...kept, { code: 'more', text: `And ${found.length - kept.length} more; the tables below show them.` }];
}

function poolWarnings({ workers }: Facts): Warning[] {
  if (workers.length === 0) {
    return [{ code: 'no-workers', text: 'No worker is registered. Name some in the config, or send POST /workers.' }];
  }
  if (workers.some(({ healthy, draining }) => healthy && !draining)) return [];
  return [{ code: 'none-healthy', text: 'No worker is both healthy and taking requests.' }];
}

function contractWarnings({ contracts, shares, workers }: Facts): Warning[] {
  if (!shares || workers.length === 0) return [];
  if (contracts.reason !== null) {
    return [{ code: 'no-contract', text: `No request gets shared credit: ${contracts.reason}` }];
  }
  return workers.flatMap(({ id, ranks }) =>
    ranks
      .filter(({ admission }) => admission !== 'admitted')
      .map(({ dpRank, admission, admissionText }) => ({
        code: 'not-admitted',
        text: `Worker ${nameOf(id, ranks, dpRank)} gets no shared credit: ${admissionText ?? admission}`,
      })),
  );
}

function derivationWarnings({ derivation: { state, text, unprovable } }: Facts): Warning[] {
  if (state === 'refuted') return [{ code: 'hashes-refuted', text }];
  return unprovable ? [{ code: 'hashes-unprovable', text }] : [];
}

function workerWarnings({ workers, shares }: Facts): Warning[] {
  return workers.flatMap(({ id, healthy, contractFault, ranks }) => {
    const own: Warning[] = [];
    if (!healthy) own.push({ code: 'unhealthy', text: `Worker ${id} does not answer its /health.` });
    if (shares && contractFault !== null) {
      own.push({ code: 'contract-fault', text: `Worker ${id} has no usable contract: ${contractFault}` });
    }
    for (const { dpRank, stream, resting } of ranks) {
      const name = nameOf(id, ranks, dpRank);
      if (resting && healthy) {
        own.push({
          code: 'resting',
          text: `Worker ${name} rests for a while, for its last requests failed.`,
        });
      }
      if (stream !== null && !stream.connected) {
        own.push({
          code: 'stream-down',
          text: `No events come from worker ${name}: ${stream.endpoint} is not connected${causes(stream.losses)}.`,
        });
      }
      const unfilled = (stream?.rebuilds['gap'] ?? 0) + (stream?.rebuilds['reconnected'] ?? 0);
      if (stream !== null && unfilled > 0 && stream.replay === 'none') {
        own.push({
          code: 'no-replay',
          text: `Worker ${name} has no replay socket, and lost its index part ${unfilled} times to missed messages.`,
        });
      }
    }
    return own;
  });
}

function promptWarnings({ prompts: { local } }: Facts): Warning[] {
  if (local.state !== 'disagrees') return [];
  return [
    {
      code: 'tokenizer',
      text: `The local tokenizer disagrees with the workers and is not used: ${local.detail ?? 'no detail'}`,
    },
  ];
}

function trendWarnings({
  requests,
  failed,
  achieved,
  reachable,
  predicted,
  reported,
}: Record<Column, number>): Warning[] {
  if (requests < FEWEST_REQUESTS) return [];
  const found: Warning[] = [];
  if (failed > (1 - ENOUGH) * requests) {
    found.push({ code: 'failures', text: `${percent(failed, requests)} of the last ${requests} requests failed.` });
  }
  if (achieved < ENOUGH * reachable) {
    found.push({
      code: 'routing-lost',
      text: `Routing reached ${percent(achieved, reachable)} of the hits that some worker could have had; load outweighs what the caches hold.`,
    });
  }
  if (reported < ENOUGH * predicted) {
    found.push({
      code: 'predicted-too-much',
      text: `Engines report ${percent(reported, predicted)} of the cached tokens that decisions counted on.`,
    });
  }
  return found;
}

/** The rank is named where the worker has several. */
function nameOf(id: string, { length }: readonly unknown[], dpRank: number): string {
  return length > 1 ? `${id} rank ${dpRank}` : id;
}

function percent(part: number, whole: number): string {
  return `${Math.round((100 * part) / whole)} %`;
}

function causes(losses: Readonly<Record<string, number>>): string {
  const [worst] = Object.entries(losses).sort(([, a], [, b]) => b - a);
  return worst === undefined ? '' : ` (${worst[0]}, ${worst[1]} times)`;
}
