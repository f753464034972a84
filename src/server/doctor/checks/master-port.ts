// Whether the masters' event sockets are where they are configured. A standby binds none.
import { type Check, skipped } from '../finding.js';
import { portVerdict } from '../port-verdict.js';

const ADVICE = {
  setting: "the master's events",
  enable: 'Start the master with --enable_kv_events, --kv_events_bind_endpoint and --kv_events_backend_id.',
};

export const masterPort: Check = {
  code: 'master-port',
  title: "the masters' event sockets are at the configured ports",
  run: ({ store }) =>
    (store?.masters ?? []).map(({ endpoint, status, events }) =>
      status?.state === 'standby' && events.found === 'nobody'
        ? skipped(endpoint.events, 'a standby binds no event socket')
        : portVerdict(endpoint.events, events, ADVICE),
    ),
};
