// What the master's admin port answers (spec/mooncake-events.md 6): a request in, a reply out, no socket. A standby answers 503 where the real one does.
// Bodies that the spec does not give word for word follow the master's documentation of its HTTP service.
import type { PublisherCounts } from './event-queue.js';
import type { StoreModel } from './store-model.js';
import type { Generation } from './types.js';

/** The leader that a master of an HA pair knows. */
export interface LeaderView {
  readonly address: string;
  readonly viewVersion: number;
}

/** What the replies are about. */
export interface AdminView {
  readonly generation: Generation;
  /** Null on a standby. */
  readonly store: StoreModel | null;
  /** Null when events are off. */
  readonly counts: Readonly<PublisherCounts> | null;
  /** Null without HA. */
  readonly leader: LeaderView | null;
}

export interface AdminReply {
  readonly status: number;
  readonly type: string;
  readonly body: readonly Uint8Array[];
}

/** Keys in one piece of the key list: what is joined and encoded at once. */
const KEYS_PER_PIECE = 4_096;
const TEXT = 'text/plain; charset=utf-8';
const METRICS = 'text/plain; version=0.0.4';
const JSON_TYPE = 'application/json; charset=utf-8';
const INACTIVE = 'service plane is not active';

type Handler = (view: AdminView, query: string) => AdminReply;
type ServingHandler = (store: StoreModel, query: string, view: AdminView) => AdminReply;

const GET: Readonly<Record<string, Handler>> = {
  '/kv_events/status': serving((_, __, { generation, counts }) => json(200, statusOf(generation, counts))),
  '/get_all_keys': serving((store) => ({ status: 200, type: METRICS, body: lines(store.readableKeys()) })),
  '/batch_query_keys': batchQueryKeys,
  '/query_key': serving(queryKey),
  '/get_all_segments': serving((store) => ({ status: 200, type: METRICS, body: lines(store.segments) })),
  '/health': (view) => json(200, healthOf(view)),
  '/role': ({ store }) => text(200, store === null ? 'standby' : 'leader'),
  '/ha_status': ({ store }) => text(200, store === null ? 'standby' : 'serving'),
  '/leader': ({ leader }) =>
    json(200, leader === null ? { present: false } : { present: true, ...leaderFields(leader) }),
  '/metrics': ({ store }) => ({ status: 200, type: METRICS, body: [encoded(metricsOf(store))] }),
};

const POST: Readonly<Record<string, Handler>> = { '/api/v1/remove_all': serving(removeAll) };

/** @param target the request's path and query as they came */
export function adminReply(view: AdminView, method: string, target: string): AdminReply {
  const { path, query } = splitTarget(target);
  const handlers = method === 'GET' ? GET : method === 'POST' ? POST : {};
  const handler = Object.hasOwn(handlers, path) ? handlers[path] : undefined;
  return handler === undefined ? text(404, 'Not Found') : handler(view, query);
}

export function splitTarget(target: string): { path: string; query: string } {
  const at = target.indexOf('?');
  return at < 0 ? { path: target, query: '' } : { path: target.slice(0, at), query: target.slice(at + 1) };
}

function serving(handler: ServingHandler): Handler {
  return (view, query) => (view.store === null ? text(503, INACTIVE) : handler(view.store, query, view));
}

function statusOf(generation: Generation, counts: Readonly<PublisherCounts> | null): Record<string, boolean | number> {
  return {
    enabled: counts !== null,
    published_batches: counts?.publishedBatches ?? 0,
    published_events: counts?.publishedEvents ?? 0,
    dropped_events: counts?.droppedEvents ?? 0,
    ...(generation === 'C'
      ? { skipped_keyless_events: counts?.skippedKeylessEvents ?? 0 }
      : { skipped_unparsed_keys: counts?.skippedUnparsedKeys ?? 0 }),
    ...(generation === 'B' ? { invalid_event_hashes: counts?.invalidEventHashes ?? 0 } : {}),
  };
}

/** Default tenant, memory replicas only; grants a lease. The key is taken as it came, percent signs and all. */
function queryKey(store: StoreModel, query: string): AdminReply {
  const key = parameter(query, 'key') ?? '';
  const view = store.read(key) ? store.replicas(key) : null;
  if (view === null) return text(404, 'OBJECT_NOT_FOUND');
  const rows = view.memory.map((segment) => JSON.stringify(bufferOf(segment, view.size)));
  return { status: 200, type: METRICS, body: lines(rows) };
}

/** Default tenant; keys are decoded first and then split at commas; grants no lease. */
function batchQueryKeys({ store }: AdminView, query: string): AdminReply {
  if (store === null) return json(503, { success: false, error: INACTIVE });
  const keys = decoded(parameter(query, 'keys') ?? '')
    .split(',')
    .filter((key) => key !== '');
  if (keys.length === 0) {
    return json(400, { success: false, error: 'No keys provided. Use ?keys=key1,key2,...' });
  }
  const data: Record<string, unknown> = {};
  for (const key of keys) data[key] = replicasOf(store, key);
  return json(200, { success: true, data });
}

function replicasOf(store: StoreModel, key: string): Record<string, unknown> {
  const view = store.replicas(key);
  if (view === null) return { ok: false, error: 'OBJECT_NOT_FOUND' };
  const { size, memory, disk, localDisk } = view;
  const local = localDisk.map((segment) => ({
    client_id: store.clientOf(segment) ?? segment,
    object_size: size,
    transport_endpoint: segment,
  }));
  return {
    ok: true,
    values: memory.map((segment) => bufferOf(segment, size)),
    ...(disk ? { disk_values: [{ file_path: `/simulated/${key}`, object_size: size }] } : {}),
    ...(local.length > 0 ? { local_disk_values: local } : {}),
  };
}

/** There is no memory behind it, hence the address 0. */
function bufferOf(segment: string, size: number): Record<string, string | number> {
  return { size_: size, buffer_address_: 0, protocol_: 'tcp', transport_endpoint_: segment };
}

function removeAll(store: StoreModel, query: string): AdminReply {
  const force = ['true', '1'].includes(parameter(query, 'force') ?? '');
  const tenant = decoded(parameter(query, 'tenant_id') ?? '');
  const removed = store.removeAll({ force, ...(tenant === '' ? {} : { tenant }) });
  return json(200, { success: true, removed_count: removed });
}

function healthOf({ store, leader }: AdminView): Record<string, unknown> {
  return {
    status: 'ok',
    role: store === null ? 'standby' : 'leader',
    ha_state: store === null ? 'standby' : 'serving',
    service_ready: store !== null,
    ...(leader === null ? {} : leaderFields(leader)),
  };
}

function leaderFields({ address, viewVersion }: LeaderView): Record<string, string | number> {
  return { leader_address: address, view_version: viewVersion };
}

function metricsOf(store: StoreModel | null): string {
  const capacity = store?.capacityBytes ?? 0;
  const rows: readonly (readonly [name: string, help: string, value: number])[] = [
    ['master_key_count', 'Total number of keys managed by the master', store?.objectCount ?? 0],
    ['master_allocated_bytes', 'Total bytes currently allocated across all segments', store?.usedBytes ?? 0],
    [
      'master_total_capacity_bytes',
      'Total capacity across all mounted segments',
      Number.isFinite(capacity) ? capacity : 0,
    ],
  ];
  return rows.map(([name, help, value]) => `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${name} ${value}\n`).join('');
}

/** The parameter as it came; null when it is not given. */
function parameter(query: string, name: string): string | null {
  for (const pair of query.split('&')) if (pair.startsWith(`${name}=`)) return pair.slice(name.length + 1);
  return null;
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value.replaceAll('+', ' '));
  } catch {
    return value;
  }
}

function json(status: number, value: unknown): AdminReply {
  return { status, type: JSON_TYPE, body: [encoded(JSON.stringify(value))] };
}

function text(status: number, value: string): AdminReply {
  return { status, type: TEXT, body: [encoded(value)] };
}

/** One item a line, in pieces. */
function lines(items: readonly string[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < items.length; at += KEYS_PER_PIECE)
    pieces.push(encoded(`${items.slice(at, at + KEYS_PER_PIECE).join('\n')}\n`));
  return pieces;
}

function encoded(value: string): Uint8Array {
  return Buffer.from(value, 'utf8');
}
