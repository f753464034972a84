// Whether exactly one master serves and publishes, and which generation of the wire it speaks.
import type { MasterEvidence } from '../evidence.js';
import { type Check, failed, ok, skipped, type Verdict } from '../finding.js';
import { STORE } from '../words.js';

const GENERATIONS = {
  A: 'generation A: removals may be silent, and reconciles find them',
  B: 'generation B',
  C: 'generation C: every removal is announced',
} as const;

export const masterState: Check = {
  code: 'master-state',
  title: 'one master serves, with events on',
  run: ({ store }) => {
    if (store === null) return [];
    const verdicts = store.masters.map(ofMaster);
    const asked = store.masters.filter(({ status }) => status !== null);
    const serving = asked.filter(({ status }) => status!.state !== 'standby');
    if (asked.length === 0 || serving.length === 1) return verdicts;
    const seen = serving.length === 0 ? 'every master is a standby' : `${serving.length} masters serve`;
    const fix =
      serving.length === 0
        ? 'Wait for the election to end; name every master of the cluster under sharedCache.masters.'
        : 'The masters of sharedCache.masters must be of one cluster, of which one leads: take the others out.';
    return [...verdicts, failed(STORE, seen, fix)];
  },
};

function ofMaster({ endpoint, status, heard }: MasterEvidence): Verdict {
  const subject = endpoint.http ?? endpoint.events;
  if (status === null) return skipped(subject, 'its status was not to be had');
  if (status.state === 'standby') return skipped(subject, 'a standby: it publishes nothing until it leads');
  if (status.state === 'events-off') {
    return failed(
      subject,
      'it runs with KV events off',
      'Start it with --enable_kv_events, --kv_events_bind_endpoint and --kv_events_backend_id, in a build with -DENABLE_KV_EVENTS=ON; if it is, its log says why it could not bind.',
    );
  }
  if (heard.keyless > 0) {
    return failed(
      subject,
      `${heard.keyless} of its events name no object`,
      'Start it with --kv_events_emit_object_key=true.',
    );
  }
  return ok(subject, GENERATIONS[status.generation]);
}
