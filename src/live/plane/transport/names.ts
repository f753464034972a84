// Names on the wire: models, subjects of NATS, topics of ZMQ. A model's name may hold anything, a subject's part may not: other characters than
// letters, digits, `-` and `_` are written as `=` and two hex digits by byte of UTF-8, so that two models never share a name.
import { ConfigError } from '../../../errors.js';
import type { PlaneRank } from '../transport.js';

/** Streams' names become names of directories, which may have 255 bytes. */
const MAX_SAFE_NAME = 200;
const MAX_U64 = (1n << 64n) - 1n;
const MAX_U32 = 0xffff_ffff;
const DECIMAL = /^(0|[1-9]\d{0,19})$/;

export interface PlaneNames {
  /** The model, safe. */
  readonly model: string;
  readonly stream: string;
  /** All subjects that the stream keeps. */
  readonly allEvents: string;
  readonly load: string;
  /** What all topics of ZMQ begin with. */
  readonly topicPrefix: string;
  events(rank: PlaneRank): string;
  recover(rank: PlaneRank): string;
  topic(rank: PlaneRank): string;
  /** The rank of a subject of events; null for any other text. */
  rankOfSubject(subject: string): PlaneRank | null;
  rankOfTopic(topic: string): PlaneRank | null;
}

/** @throws ConfigError `plane-model` for a name that is empty or too long */
export function planeNames(model: string): PlaneNames {
  const safe = safeName(model);
  if (safe.length === 0 || safe.length > MAX_SAFE_NAME) {
    throw new ConfigError(
      'plane-model',
      `the plane's model is ${JSON.stringify(model.slice(0, 80))}, whose name takes ${safe.length} characters on the wire, expected 1 to ${MAX_SAFE_NAME}`,
    );
  }
  const root = `moonroute.${safe}`;
  const eventsPrefix = `${root}.events.`;
  const topicPrefix = `${root}.`;
  return {
    model: safe,
    stream: `MOONROUTE_${safe}`,
    allEvents: `${eventsPrefix}>`,
    load: `${root}.load`,
    topicPrefix,
    events: (rank) => eventsPrefix + rankText(rank),
    recover: (rank) => `${root}.recover.${rankText(rank)}`,
    topic: (rank) => topicPrefix + rankText(rank),
    rankOfSubject: (subject) =>
      subject.startsWith(eventsPrefix) ? readRank(subject.slice(eventsPrefix.length)) : null,
    rankOfTopic: (topic) => (topic.startsWith(topicPrefix) ? readRank(topic.slice(topicPrefix.length)) : null),
  };
}

export function rankText({ workerId, dpRank }: PlaneRank): string {
  return `${workerId}.${dpRank}`;
}

/** Null for anything but two decimal numbers, of 64 and of 32 bits. */
export function readRank(text: string): PlaneRank | null {
  const [worker, rank, ...more] = text.split('.');
  if (worker === undefined || rank === undefined || more.length > 0) return null;
  if (!DECIMAL.test(worker) || !DECIMAL.test(rank)) return null;
  const workerId = BigInt(worker);
  const dpRank = Number(rank);
  return workerId > MAX_U64 || dpRank > MAX_U32 ? null : { workerId, dpRank };
}

function safeName(model: string): string {
  let safe = '';
  for (const byte of new TextEncoder().encode(model)) {
    const character = String.fromCharCode(byte);
    safe += /[A-Za-z0-9_-]/.test(character) ? character : `=${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return safe;
}
