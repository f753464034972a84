// Entry for Deno: a subscriber and a dealer of src/live/zmtp, run against the sockets that the test binds in Node. Prints a line of JSON for
// all that they are told, and ends when a message says so, by closing both, which must leave nothing that keeps it alive.
import { ZmtpDealer, ZmtpSubscriber } from '../../build/js/src/live/zmtp/socket.js';

const [publisher, router, curve] = Deno.args;
const options = {
  reconnectMs: 2,
  reconnectMaxMs: 20,
  heartbeatMs: 30,
  heartbeatTimeoutMs: 2_000,
  curve: JSON.parse(curve),
};
const text = new TextDecoder();
const said = (who) => (what) => console.log(JSON.stringify({ who, what }));

/** Long frames are told of by their length. */
const short = (frame) => (frame.length > 100 ? `${frame.length} bytes` : text.decode(frame));
const handlers = (who, after) => ({
  onMessage(frames) {
    said(who)(frames.map(short).join('|'));
    after('message', frames);
  },
  onEvent(event) {
    if (event.kind === 'retry' || event.cause === 'refused') return;
    said(who)(event.kind === 'lost' ? `lost ${event.cause}` : event.kind);
    after(event.kind, []);
  },
});

const subscriber = new ZmtpSubscriber(
  publisher,
  'kv',
  handlers('subscriber', (_kind, frames) => {
    if (frames.length === 0 || text.decode(frames[1]) !== 'stop') return;
    subscriber.close();
    dealer.close();
  }),
  options,
);
const dealer = new ZmtpDealer(
  router,
  handlers('dealer', (kind) => {
    if (kind === 'connected') dealer.send([new Uint8Array(0), new TextEncoder().encode('start')]);
  }),
  options,
);
subscriber.open();
dealer.open();
