// What a document leaves to its surroundings: file names relative to its folder, secrets in environment variables, addresses in one spelling.
import { resolve } from 'node:path';
import { ConfigError } from '../errors.js';
import type { ConfigPlace, ServerConfig } from './config.js';
import { type ConfigDocument, CURVE_PATTERN, CURVE_WORDS, KEY_PATTERN, KEY_WORDS } from './config-schema.js';

type Secret = string | { readonly env: string };

/**
 * The document with all that filled in.
 * @throws ConfigError `config-secret` for a variable that is not set, or holds no key
 */
export function resolved(
  { $schema, ...document }: ConfigDocument,
  { folder = '.', env = {} }: ConfigPlace,
): ServerConfig {
  const { listen, tokenizer, auth, curve, eventPlane, sharedCache, workers } = document;
  const key = (path: string) => (secret: Secret, at: number) =>
    secretOf(secret, `${path}.${at}`, env, KEY_PATTERN, KEY_WORDS);
  return {
    ...document,
    // As sockets have it: an IPv6 address without the brackets of URLs.
    listen: { ...listen, host: listen.host.replace(/^\[(.*)\]$/, '$1') },
    sharedCache: {
      ...sharedCache,
      masters: sharedCache.masters.map(({ events, http }) => ({ events, http: http === null ? null : bare(http) })),
    },
    workers: workers.map((worker) => ({
      ...worker,
      url: bare(worker.url),
      contract:
        worker.contract !== null && typeof worker.contract === 'object' && 'file' in worker.contract
          ? { file: resolve(folder, worker.contract.file) }
          : worker.contract,
    })),
    tokenizer:
      tokenizer === null
        ? null
        : {
            ...tokenizer,
            file: resolve(folder, tokenizer.file),
            chatTemplate: tokenizer.chatTemplate === null ? null : resolve(folder, tokenizer.chatTemplate),
          },
    auth: {
      clientKeys: auth.clientKeys.map(key('auth.clientKeys')),
      adminKeys: auth.adminKeys.map(key('auth.adminKeys')),
    },
    eventPlane:
      eventPlane === null
        ? null
        : {
            ...eventPlane,
            url: planeUrlOf(eventPlane.url, env),
            tls: eventPlane.tls === null ? null : filesOf(eventPlane.tls, folder),
          },
    curve:
      curve === null
        ? null
        : {
            ...curve,
            secretKey: secretOf(curve.secretKey, 'curve.secretKey', env, CURVE_PATTERN, CURVE_WORDS),
          },
  };
}

type PlaneTls = NonNullable<NonNullable<ConfigDocument['eventPlane']>['tls']>;

function filesOf({ caFile, certFile, keyFile }: PlaneTls, folder: string): PlaneTls {
  const from = (name: string | null) => (name === null ? null : resolve(folder, name));
  return { caFile: from(caFile), certFile: from(certFile), keyFile: from(keyFile) };
}

function planeUrlOf(
  url: NonNullable<ConfigDocument['eventPlane']>['url'],
  env: Readonly<Record<string, string | undefined>>,
): string | string[] {
  if (typeof url === 'string' || Array.isArray(url)) return url;
  return secretOf(url, 'eventPlane.url', env, /^(nats|tls|tcp):\/\/\S+$/, 'a URL of the plane');
}

/** An address without a slash at its end. */
function bare(url: string): string {
  return url.replace(/\/$/, '');
}

function secretOf(
  secret: Secret,
  path: string,
  env: Readonly<Record<string, string | undefined>>,
  pattern: RegExp,
  words: string,
): string {
  if (typeof secret === 'string') return secret;
  const value = env[secret.env];
  if (value !== undefined && pattern.test(value)) return value;
  const seen =
    value === undefined ? 'is not set' : value === '' ? 'is empty' : `holds ${value.length} other characters`;
  throw new ConfigError(
    'config-secret',
    `${path} is to come from the environment variable ${secret.env}, which ${seen}; let it hold ${words}.`,
  );
}
