// Entry for Deno: both sides of an event plane over NATS, with the packages that Node uses. Publishes, reads, asks and answers, prints a line of JSON
// for what came, and ends by closing both, which must leave nothing that keeps it alive.
import { openPlanePublisher, openPlaneSubscriber } from '../../build/js/src/live/plane/transport/index.js';

const [url, count, ca] = Deno.args;
const rank = { workerId: 7n, dpRank: 1 };
const options = { model: 'deno', ...(ca === undefined ? {} : { tls: { caFile: ca } }) };
const publisher = await openPlanePublisher(url, { ...options, ranks: [rank] });
await publisher.serve((question) => Uint8Array.of(...question, 9));
const subscriber = await openPlaneSubscriber(url, options);
const numbers = [];
const notices = [];
const all = new Promise((resolve) => {
  const opened = subscriber.open({
    onMessage({ payload }) {
      numbers.push(payload[0]);
      if (numbers.length === Number(count)) resolve(opened);
    },
    onNotice: ({ kind, detail }) => notices.push(detail ?? kind),
    onLoad() {},
  });
});
const taken = await Promise.all([...Array(Number(count)).keys()].map((n) => publisher.publish(rank, Uint8Array.of(n))));
await all;
const answer = [...(await subscriber.ask(rank, Uint8Array.of(1), 5000))];
console.log(JSON.stringify({ taken: taken.every(Boolean), numbers, answer, notices }));
await subscriber.close();
await publisher.close();
