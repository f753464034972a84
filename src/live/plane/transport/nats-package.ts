// The packages of NATS, which are optional: loaded when a plane is at a nats:// URL, with an error that says what to do where they are missing.
import { ConfigError } from '../../../errors.js';

export type TransportPackage = typeof import('@nats-io/transport-node');
export type JetStreamPackage = typeof import('@nats-io/jetstream');

export interface NatsPackages {
  readonly transport: TransportPackage;
  readonly jetstream: JetStreamPackage;
}

/** @throws ConfigError `nats-missing` */
export async function loadNats(): Promise<NatsPackages> {
  try {
    const [transport, jetstream] = await Promise.all([import('@nats-io/transport-node'), import('@nats-io/jetstream')]);
    return { transport, jetstream };
  } catch (error) {
    throw new ConfigError(
      'nats-missing',
      `a plane over NATS needs packages that can't be loaded: ${(error as Error).message}. Install them (npm install @nats-io/transport-node @nats-io/jetstream).`,
    );
  }
}
