// The shape of the configuration, from which config.schema.json is made (scripts/make-schema.mjs). Each check carries the words that a refusal is
// built of: what must stand there. What one setting demands of another is config-rules.ts's.
import { z } from 'zod';
import { HASHINGS } from '../contract/descriptor.js';
import { BUILT_IN_INPUTS, type BuiltInPolicy } from '../router/roles.js';

/** Levels of the log, as pino has them. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

const MAX_PORT = 65_535;
const MAX_BLOCK_SIZE = 65_536;
const MAX_SEED = 2 ** 32 - 1;
/** Longest text of the configuration but for file names: a line of any log can show it. */
const MAX_TEXT = 1024;
const MAX_FILE_NAME = 4096;
/** Workers, masters, networks and keys that can be named: beyond, a list is a mistake or a pool for several routers. */
const MAX_WORKERS = 1024;
const MAX_MASTERS = 16;
const MAX_NETWORKS = 256;
const MAX_KEYS = 256;
/** Other routers, as many as the router keeps the load of. */
const MAX_PEERS = 64;
/** What is put behind it must have room. */
const MAX_ROUTER_NAME = 200;
const PLANE_ID_WORDS = 'a whole number from 0 to 2^64 - 1, in decimal where it is a text';
const MAX_GOOD_FOR_WORDS = 'a whole number from 1 to 60000 (milliseconds)';
/** A rank for each of the router's: see `index.ranks` there. */
const MAX_RANKS = 1024;
/** Longest time that is asked for anywhere, in milliseconds: a day. */
const MAX_TIME = 86_400_000;
const MiB = 2 ** 20;

function text(words: string, pattern: RegExp = /\S/, most = MAX_TEXT) {
  return z.string(words).max(most, `${words}, of at most ${most} characters`).regex(pattern, words);
}

function whole(least: number, most: number, more = '') {
  const words = `a whole number from ${least} to ${most}${more}`;
  return z.int(words).min(least, words).max(most, words);
}

function oneOf<const Names extends readonly [string, ...string[]]>(names: Names) {
  return z.enum(names, { error: `one of ${names.join(', ')}` });
}

function listOf<Item extends z.ZodType>(item: Item, words: string, most: number) {
  return z.array(item, words).max(most, `${words}, at most ${most}`);
}

const flag = () => z.boolean('true or false');
const object = <Shape extends z.core.$ZodShape>(shape: Shape) => z.strictObject(shape, OBJECT);
const OBJECT = {
  error: (issue: z.core.$ZodRawIssue) => (issue.code === 'unrecognized_keys' ? undefined : 'an object'),
};
const time = (least: number) => whole(least, MAX_TIME, ' (milliseconds)');
const weight = () => z.number('a finite number, 0 or more').min(0, 'a finite number, 0 or more');
const unit = () => z.number('between 0 and 1').min(0, 'between 0 and 1').max(1, 'between 0 and 1');

const ADDRESS = '(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9._-]+):[0-9]{1,5}';
const SOCKET_WORDS = 'tcp://HOST:PORT (an IPv6 address in brackets), or ipc:///path';
const socket = () => text(SOCKET_WORDS, new RegExp(`^(tcp://${ADDRESS}|ipc:///.+)$`));
const HTTP_WORDS = 'http://HOST:PORT without a path, user or query';
const http = () => text(HTTP_WORDS, /^http:\/\/(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?\/?$/);
const sockets = (what: string) =>
  z
    .union([socket(), listOf(socket(), `a list of ${SOCKET_WORDS}`, MAX_RANKS).min(1)], {
      error: `${SOCKET_WORDS}; a list with one for each rank; or null`,
    })
    .nullable()
    .default(null)
    .describe(what);

const fileName = () => text('the name of a file', /\S/, MAX_FILE_NAME);
const VARIABLE = 'the name of an environment variable';
const envName = () => object({ env: text(VARIABLE, /^[A-Za-z_][A-Za-z0-9_]*$/) });
/** A secret: the text itself, or the environment variable that holds it. */
const secret = (words: string, pattern: RegExp) =>
  z.union([text(words, pattern), envName()], {
    error: `${words}, or {"env": NAME} with ${VARIABLE} that holds it`,
  });

const PLANE_ADDRESS = '[^\\s@/]+|[^\\s@/]+@[^\\s@/]+';
const PLANE_WORDS = 'nats://HOST:PORT, tls://HOST:PORT, or tcp://HOST:PORT of a publisher';
const planeUrl = () => text(PLANE_WORDS, new RegExp(`^(nats|tls|tcp)://(${PLANE_ADDRESS})$`));

/** What a bearer key may be: it has to stand in a header. */
export const KEY_PATTERN = /^[!-~]+$/;
export const KEY_WORDS = 'a key of printable characters without spaces';
/** CURVE keys as ZeroMQ writes them: 32 bytes in Z85. */
export const CURVE_PATTERN = /^[0-9A-Za-z.\-:+=^!/*?&<>()[\]{}@%$#]{40}$/;
export const CURVE_WORDS = 'a CURVE key of 40 characters (Z85)';
const keys = (what: string) =>
  listOf(secret(KEY_WORDS, KEY_PATTERN), 'a list of keys', MAX_KEYS).default([]).describe(what);

const POLICIES = Object.keys(BUILT_IN_INPUTS) as [BuiltInPolicy, ...BuiltInPolicy[]];

const listen = object({
  host: text('a host name or address')
    .default('127.0.0.1')
    .describe('Address to listen on. Other than loopback needs auth keys.'),
  port: whole(0, MAX_PORT, ' (0 takes any that is free)').default(8080).describe('Port; 0 takes any that is free.'),
});

const router = object({
  overlapScoreCredit: weight().default(1).describe('Worth of a block on the device.'),
  overlapScoreCreditDecay: weight().default(0).describe("How fast that worth falls with a worker's excess load."),
  prefillLoadScale: weight().default(1).describe('Cost of a block to prefill, in blocks of decode load.'),
  decodeActiveRequestWeight: weight().default(0).describe('Cost of an active request, in blocks.'),
  hostCacheHitWeight: unit().default(0.75).describe('Worth of a block in host memory.'),
  diskCacheHitWeight: unit().default(0.25).describe('Worth of a block on disk.'),
  useKvEvents: flag().default(true).describe("Read the workers' KV events."),
  useRemoteIndexer: flag().default(false).describe('Not supported; there for the reference’s configurations.'),
  loadAware: flag().default(false).describe('Route by load alone.'),
  routerTtlSecs: weight().default(120).describe('Accepted, and has no effect: there is no index without events.'),
  temperature: weight().default(0).describe('0 takes the least cost; above it, costlier workers get a share.'),
  seed: whole(0, MAX_SEED)
    .optional()
    .describe('Fixes random choices and tables, for repeatable runs. Leave it out where clients are not trusted.'),
});

const master = object({
  events: socket().describe('Where the master publishes its KV events.'),
  http: http()
    .nullable()
    .default(null)
    .describe('Its admin port, for reconciles; without it evidence ages, and is dropped when too old.'),
});

const sharedCache = object({
  type: oneOf(['none', 'mooncake-store']).default('none').describe('Where prefixes live that any worker can restore.'),
  multiplier: unit().default(0.5).describe('Worth of a block that only the shared cache holds.'),
  masters: listOf(master, 'a list of masters', MAX_MASTERS)
    .default([])
    .describe('Masters of the store, of which one serves.'),
  hashing: oneOf(HASHINGS)
    .default('learned')
    .describe(
      'Where the engine hashes of a prompt come from: learned from workers’ events; derived from its tokens by the rule and seed of the contract; both: derived where they may be, else learned.',
    ),
  trustSeed: flag()
    .default(false)
    .describe(
      'Credit derived hashes before workers’ events have agreed with them. Only if every engine is known to hash as its contract says; needed where a contract has no main event group.',
    ),
  allowUnverifiedContract: flag()
    .default(false)
    .describe(
      'Credit under contracts that were derived from a model’s public configuration (moonroute contract derive). Only after moonroute doctor has called their prefixes verified.',
    ),
  tenant: text("a tenant's name").default('default').describe('Only default is supported.'),
  maxEvidenceAge: time(1000)
    .nullable()
    .default(null)
    .describe(
      'How old evidence may grow unconfirmed, in milliseconds. By default 60,000 for masters that may remove silently, else 600,000.',
    ),
});

const contract = z
  .union(
    [
      z.literal('endpoint'),
      object({ file: fileName().describe('A descriptor, as JSON; relative to the configuration file.') }),
      object({ inline: z.looseObject({}, 'a descriptor (an object)').describe('The descriptor itself.') }),
      z.null(),
    ],
    { error: '"endpoint", {"file": NAME}, {"inline": {…}}, or null' },
  )
  .default('endpoint')
  .describe('Where its contract descriptor comes from; endpoint asks its /moonroute/descriptor.');

const worker = object({
  id: text("a worker's name without spaces or control characters", /^[!-~]+$/).describe('Its name.'),
  url: http().describe('Its OpenAI server.'),
  events: sockets('Where it publishes KV events: of rank 0, from which rank r is at port + r; or one each; or null.'),
  replay: sockets('Where it answers replays, likewise.'),
  topic: z.string('a text').max(MAX_TEXT).default('').describe('What the topics of its events begin with.'),
  dpRanks: object({
    start: whole(0, MAX_RANKS - 1).default(0),
    size: whole(1, MAX_RANKS).default(1),
  })
    .prefault({})
    .describe('Its data-parallel ranks.'),
  contract,
  plane: object({
    workerId: z
      .union([whole(0, Number.MAX_SAFE_INTEGER), text(PLANE_ID_WORDS, /^(0|[1-9][0-9]{0,19})$/)], {
        error: PLANE_ID_WORDS,
      })
      .nullable()
      .default(null)
      .describe('Its number on the plane. By default its id, where that is a whole number.'),
  })
    .nullable()
    .default(null)
    .describe('Its events come over the event plane (eventPlane) instead of from its own socket.'),
});

const eventPlane = object({
  url: z
    .union([planeUrl(), listOf(planeUrl(), `a list of ${PLANE_WORDS}`, MAX_WORKERS).min(1), envName()], {
      error: `${PLANE_WORDS}; a list of them; or {"env": NAME} with ${VARIABLE} that holds it`,
    })
    .describe(
      'NATS servers of one cluster, or the publishers of ZMQ (tcp://HOST:PORT, with ?recover=PORT where questions are answered elsewhere than one port above). With a password, keep it in the environment.',
    ),
  name: text('a name without spaces or control characters', /^[!-~]+$/, MAX_ROUTER_NAME)
    .nullable()
    .default(null)
    .describe(
      'This router’s name among others; something that is new at every start is put behind it. By default the host’s.',
    ),
  tls: object({
    caFile: fileName().nullable().default(null),
    certFile: fileName().nullable().default(null),
    keyFile: fileName().nullable().default(null),
  })
    .nullable()
    .default(null)
    .describe('Files (PEM) for tls://; relative to the configuration file.'),
  retention: object({
    maxAge: whole(100, 30 * MAX_TIME, ' (milliseconds)').default(600_000),
    maxBytes: whole(MiB, 2 ** 50).default(1024 * MiB),
    maxMessages: whole(1, 1_000_000_000).default(1_000_000),
  })
    .prefault({})
    .describe('How much the model’s stream keeps, where this router is the first to make it (NATS).'),
  load: object({
    share: flag().default(true).describe('Tell other routers of the open requests here, and count theirs as load.'),
    every: time(1).default(50).describe('Least time between two reports, in milliseconds.'),
    atLeast: time(1).default(1000).describe('Longest time between two, in milliseconds.'),
    goodFor: time(1)
      .max(60_000, MAX_GOOD_FOR_WORDS)
      .default(3000)
      .describe('How long a report holds, in milliseconds.'),
    bind: z
      .union([socket(), z.null()], { error: `${SOCKET_WORDS}; or null` })
      .default(null)
      .describe('Over ZMQ: where this router tells its load.'),
    peers: listOf(socket(), `a list of ${SOCKET_WORDS}`, MAX_PEERS)
      .default([])
      .describe('Over ZMQ: where the other routers tell theirs.'),
  }).prefault({}),
});

const registration = object({
  networks: listOf(
    text('a network like 10.0.0.0/8 or fd00::/8', /^[0-9A-Fa-f:.]+\/[0-9]{1,3}$/),
    'a list of networks',
    MAX_NETWORKS,
  )
    .nullable()
    .default(null)
    .describe(
      'Networks (CIDR) whose workers POST /workers may add. By default the hosts of configured workers, and loopback.',
    ),
});

const tokenizer = object({
  file: fileName().describe('tokenizer.json of the model; relative to the configuration file.'),
  chatTemplate: fileName()
    .nullable()
    .default(null)
    .describe('Its chat template, or a tokenizer_config.json that has it. Without it chats are tokenised by workers.'),
  timeout: time(1).default(2000).describe("Time for a worker's /tokenize, in milliseconds."),
  cacheEntries: whole(0, 1_000_000).default(4096).describe("Answers of workers' /tokenize that are kept."),
});

const auth = object({
  clientKeys: keys('Bearer keys of clients. None: everybody who can connect.'),
  adminKeys: keys('Bearer keys of administrators. None: nobody while there are client keys, else everybody.'),
});

const curve = object({
  serverKey: text(CURVE_WORDS, CURVE_PATTERN).describe('Public key of all event sockets.'),
  publicKey: text(CURVE_WORDS, CURVE_PATTERN).describe('Our own public key.'),
  secretKey: secret(CURVE_WORDS, CURVE_PATTERN).describe('Our own secret key.'),
});

const limits = object({
  bodyBytes: whole(1024, 1024 * MiB).default(10 * MiB),
  headerBytes: whole(1024, MiB).default(16_384),
  promptTokens: whole(1, 100_000_000).default(1_000_000),
  connections: whole(1, 1_000_000).default(10_000),
  requestTime: time(1).default(600_000).describe('From the request to the last byte of its answer, in milliseconds.'),
  headerTime: time(1).default(10_000).describe('For the headers of a request, in milliseconds.'),
  bodyTime: time(1).default(30_000).describe('For the body of a request, in milliseconds.'),
  drainTime: time(0).default(30_000).describe('For requests under way after SIGTERM, in milliseconds.'),
});

/** The document. Every setting has a default but a worker's `id` and `url`, a master's `events`, and the files and keys of parts that are given. */
export const configSchema = object({
  $schema: z.string('a text').optional().describe('For editors.'),
  model: text("a model's name")
    .nullable()
    .default(null)
    .describe("The one model that is served. By default the first that a worker's /v1/models lists."),
  listen: listen.prefault({}),
  policy: oneOf(POLICIES).default('kv').describe('How a worker is chosen.'),
  blockSize: whole(1, MAX_BLOCK_SIZE).default(16).describe('Tokens of a block, as the workers have it.'),
  router: router.prefault({}).describe('The router’s settings, named and bounded as in the field.'),
  sharedCache: sharedCache.prefault({}),
  strictContracts: flag().default(false).describe('Any disagreement about contracts: no shared credit at all.'),
  role: oneOf(['aggregated', 'prefill', 'decode']).default('aggregated').describe('What the workers do.'),
  workers: listOf(worker, 'a list of workers', MAX_WORKERS).default([]),
  eventPlane: eventPlane
    .nullable()
    .default(null)
    .describe('An event plane: the events of workers that have a plane, and the load of other routers.'),
  registration: registration.prefault({}),
  provenance: object({
    route: flag().default(false).describe('POST /route may claim that a prompt is text alone.'),
  }).prefault({}),
  salt: object({
    mode: oneOf(['prefixed', 'raw'])
      .default('prefixed')
      .describe("How a client's cache_salt reaches the worker; raw salts get no shared credit."),
  }).prefault({}),
  tokenizer: tokenizer.nullable().default(null).describe('Tokenises here; without it, workers are asked.'),
  auth: auth.prefault({}),
  curve: curve.nullable().default(null).describe('Encrypts the event sockets.'),
  limits: limits.prefault({}),
  log: object({ level: oneOf(LOG_LEVELS).default('info') }).prefault({}),
});

/** The document as it may be written. */
export type ConfigInput = z.input<typeof configSchema>;
/** The document with its defaults. */
export type ConfigDocument = z.output<typeof configSchema>;
