// What to say of a port that should be an event socket.
import type { PortEvidence } from './evidence.js';
import { failed, ok, type Verdict } from './finding.js';

/** How to have events there, and how the setting is called. */
export interface PortAdvice {
  readonly setting: string;
  readonly enable: string;
}

export function portVerdict(
  subject: string,
  { endpoint, connected, lost, found }: PortEvidence,
  advice: PortAdvice,
): Verdict {
  const { setting, enable } = advice;
  switch (found) {
    case 'events':
      if (connected) return ok(subject, `${endpoint} is an event socket`);
      return failed(
        subject,
        `${endpoint} was an event socket, and the connection is lost (${lost?.detail ?? 'no reason said'})`,
        'See whether the process restarts again and again, and whether something on the way cuts idle connections.',
      );
    case 'http':
      return failed(
        subject,
        `${endpoint} answers as an HTTP server, not as an event socket: the wrong port`,
        `Set ${setting} to the port of the event publisher (vLLM's default 5557), not that of the HTTP server. ${enable}`,
      );
    case 'replay':
      return failed(
        subject,
        `${endpoint} is a replay socket (ROUTER), not an event socket (PUB): the wrong port`,
        `Set ${setting} to the publisher's endpoint; the replay endpoint belongs into replay.`,
      );
    case 'nobody':
      return failed(
        subject,
        `nothing listens at ${endpoint} (${lost?.detail ?? 'refused'}): events are off, or it is the wrong port`,
        `${enable} If it does, set ${setting} to where it binds.`,
      );
    case 'other':
      return failed(
        subject,
        `${endpoint} is no event socket (${lost === null ? 'no connection in time' : `${lost.cause}: ${lost.detail}`})`,
        `Check ${setting}, firewalls between here and there, and whether the socket wants CURVE keys.`,
      );
  }
}
