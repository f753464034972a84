// Entry for Deno: the router's HTTP app behind Deno's own server, over workers elsewhere. Says its address on standard output, and then, line by line as
// JSON, how every request ended. Argument: the configuration.
import { Router } from '../../build/js/src/index.js';
import { LiveStreams } from '../../build/js/src/live/index.js';
import { createApp, listen } from '../../build/js/src/server/app.js';
import { checkConfig } from '../../build/js/src/server/config.js';
import { Activity } from '../../build/js/src/server/http/activity.js';
import { createPromptReader } from '../../build/js/src/server/prompts.js';
import { createRegistry } from '../../build/js/src/server/registry.js';

const config = checkConfig(JSON.parse(Deno.args[0]));
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const log = { ...silent, error: (fields, text) => console.error(text, JSON.stringify(fields)) };
const router = await Router.create({ index: { bytes: 4 << 20 } });
const live = LiveStreams.open(router);
const registry = createRegistry({ router, live, config, log: silent });
await registry.reload(config.workers);
const activity = new Activity();
const service = {
  ...{ config, router, live, registry, log, activity },
  prompts: createPromptReader({ config, registry, log }),
  observers: [
    {
      ended: ({ outcome, status, cachedTokens, generatedTokens, worker }) => {
        const { open } = router.stats().leases;
        console.log(JSON.stringify({ outcome, status, cachedTokens, generatedTokens, worker: worker.id, open }));
      },
      fault: () => undefined,
    },
  ],
  notReady: () => null,
  drain: (ms) => activity.drain(ms),
  get active() {
    return activity.active;
  },
};
const { url } = await listen(createApp(service), config, log);
console.log(JSON.stringify({ url }));
