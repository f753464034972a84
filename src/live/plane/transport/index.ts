// Opens a plane's transport by its URL: `nats://` or `tls://` for NATS with JetStream, `tcp://` for ZMQ. The packages that they need are optional
// and are loaded here.
import type { PlanePublisher, PlaneSubscriber } from '../transport.js';
import { readAddress, readAddresses } from './address.js';
import { loadNats } from './nats-package.js';
import { NatsPublisher } from './nats-publisher.js';
import { NatsSubscriber } from './nats-subscriber.js';
import type { PlanePublisherOptions, PlaneSubscriberOptions } from './options.js';
import { ZmqPublisher } from './zmq-publisher.js';
import { ZmqSubscriber } from './zmq-subscriber.js';

export type { PlanePublisherOptions, PlaneSubscriberOptions, PlaneTls, StreamLimits } from './options.js';
export { MAX_PAYLOAD, MAX_PENDING, STREAM_LIMITS } from './options.js';

/**
 * A worker's side. Over NATS it connects in the background, for as long as it takes; over ZMQ its sockets are bound when this resolves.
 * @throws ConfigError `plane-url`, `plane-model`, `plane-stream`; `nats-missing`; `zeromq-missing`, `bind-failed`
 */
export async function openPlanePublisher(url: string, options: PlanePublisherOptions): Promise<PlanePublisher> {
  const address = readAddress(url);
  if (address.kind === 'zmq') return ZmqPublisher.open(address, options);
  const publisher = new NatsPublisher(await loadNats(), address, options);
  publisher.open();
  return publisher;
}

/**
 * A router's side: one cluster of NATS, or the publishers of ZMQ. It connects when it is opened, in the background, for as long as it takes.
 * @throws ConfigError `plane-url`, `plane-model`, `plane-stream`, `endpoint`; `nats-missing`
 */
export async function openPlaneSubscriber(
  urls: string | readonly string[],
  options: PlaneSubscriberOptions,
): Promise<PlaneSubscriber & { readonly loadUrl: string | null }> {
  const addresses = readAddresses(urls);
  if (!('kind' in addresses)) return new ZmqSubscriber(addresses, options);
  return new NatsSubscriber(await loadNats(), addresses, options);
}
