// The event plane of the server: opened from its configuration, and which number a worker has on it.
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { PlaneStreams } from '../live/plane/route/plane-streams.js';
import { openPlaneSubscriber } from '../live/plane/transport/index.js';
import type { Router } from '../router/router.js';
import { planeIdFrom } from '../router/worker-info.js';
import type { ServerConfig } from './config.js';
import type { ServerLog, WorkerSpec } from './types.js';

/** Longest part of a host's name in a router's. */
const HOST_SHOWN = 64;

/** A worker's number on the plane; null where it has none, or its id is no number. */
export function planeIdOf({ id, plane }: Pick<WorkerSpec, 'id' | 'plane'>): bigint | null {
  return plane == null ? null : planeIdFrom(plane.workerId ?? id);
}

/**
 * Opens the plane, without workers: the registry adds them. Null without one. It connects in the background, now and after every loss.
 * @throws ConfigError of the transport: a package that is missing, a file that can't be read
 */
export async function openPlane(
  router: Router,
  { eventPlane, model }: Pick<ServerConfig, 'eventPlane' | 'model'>,
  log: ServerLog,
): Promise<PlaneStreams | null> {
  if (eventPlane === null) return null;
  const { share, every, atLeast, goodFor } = eventPlane.load;
  return PlaneStreams.open(router, {
    subscriber: await planeSubscriber(eventPlane, model!, share),
    load: share ? { name: startName(eventPlane.name), every, atLeast, goodFor } : null,
    log: (level, text) => log[level]({ part: 'plane' }, text),
  });
}

/**
 * The transport of a configuration, not opened yet.
 * @param share with the sockets for load that ZMQ needs
 * @throws ConfigError of the transport
 */
export function planeSubscriber(
  { url, tls, retention, load }: NonNullable<ServerConfig['eventPlane']>,
  model: string,
  share: boolean,
): ReturnType<typeof openPlaneSubscriber> {
  return openPlaneSubscriber(url, {
    model,
    stream: retention,
    ...(tls === null ? {} : { tls: given(tls) }),
    loadBind: share ? load.bind : null,
    loadPeers: share ? load.peers : [],
  });
}

/** A router's name that no start of another one, nor of this one, has. */
function startName(name: string | null): string {
  return `${name ?? hostname().slice(0, HOST_SHOWN)}-${randomBytes(6).toString('hex')}`;
}

function given(tls: NonNullable<NonNullable<ServerConfig['eventPlane']>['tls']>): Record<string, string> {
  return Object.fromEntries(Object.entries(tls).filter((entry): entry is [string, string] => entry[1] !== null));
}
