// The third process of the proxy's suite: a router with its HTTP app over workers elsewhere, whose configuration is the argument. Says where it
// listens, and goes on until its input ends.
import { checkConfig } from '../src/server/config.js';
import { startService } from '../src/server/service.js';

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const { url } = await startService(checkConfig(JSON.parse(process.argv[2]!)), { log: silent });
console.log(JSON.stringify({ url }));
process.stdin.resume().on('end', () => process.exit());
