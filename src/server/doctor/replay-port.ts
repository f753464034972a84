// Asks a replay socket for batches that are yet to come: it has none, and answers with the end marker alone, which costs the engine next to nothing.
import { WireError } from '../../errors.js';
import { type SocketEvent, ZmtpDealer } from '../../live/zmtp/socket.js';
import { readReplayReply, replayRequest } from '../../wire/replay.js';
import { answersHttp, isPublisher, socketOptions } from './event-port.js';
import type { PortKind, ReplayEvidence } from './evidence.js';
import type { CollectParts } from './parts.js';

/** No engine gets so far. */
const YET_TO_COME = 2n ** 62n;
/** A busy engine answers late. */
const ANSWER_MS = 3000;

interface Attempt {
  readonly connected: boolean;
  readonly answered: boolean;
  readonly refused: boolean;
  readonly detail: string | null;
}

export async function askReplay(endpoint: string, parts: CollectParts): Promise<ReplayEvidence> {
  const { connected, answered, refused, detail } = await attempt(endpoint, parts);
  const found = connected ? 'replay' : refused ? 'nobody' : await otherKind(endpoint, parts);
  return { endpoint, found, answered, detail };
}

async function otherKind(endpoint: string, parts: CollectParts): Promise<PortKind> {
  if (await answersHttp(endpoint, parts)) return 'http';
  return (await isPublisher(endpoint, parts)) ? 'events' : 'other';
}

function attempt(endpoint: string, parts: CollectParts): Promise<Attempt> {
  const { clock, signal } = parts;
  return new Promise((resolve) => {
    let connected = false;
    const end = (answered: boolean, refused: boolean, detail: string | null): void => {
      cancel();
      signal.removeEventListener('abort', giveUp);
      socket.close();
      resolve({ connected, answered, refused, detail });
    };
    const giveUp = (): void => end(false, false, 'no answer in time');
    const cancel = clock.after(ANSWER_MS, giveUp);
    signal.addEventListener('abort', giveUp);
    const onEvent = (event: SocketEvent): void => {
      if (event.kind === 'lost') end(false, event.cause === 'refused', event.detail);
      else if (event.kind === 'connected') {
        connected = true;
        socket.send(replayRequest(YET_TO_COME));
      }
    };
    const onMessage = (frames: Uint8Array[]): void => {
      try {
        if (readReplayReply(frames).kind === 'end') end(true, false, null);
      } catch (error) {
        if (!(error instanceof WireError)) throw error;
        end(false, false, error.message);
      }
    };
    const socket = new ZmtpDealer(endpoint, { onMessage, onEvent }, socketOptions(parts));
    socket.open();
  });
}
