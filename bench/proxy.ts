// `node build/js/bench/proxy.js [seconds]`: what the proxy adds to a request's time. Prints machine and method.
import { environment } from './harness.js';
import { proxySuite } from './proxy-suites.js';

for (const [what, value] of Object.entries(environment())) console.log(`${what}: ${value}`);
const seconds = process.argv[2] === undefined ? undefined : Number(process.argv[2]);
for (const { suite, note, aim, met } of await proxySuite(seconds)) {
  console.log(`${suite}: ${note}  [aim ${aim}: ${met ? 'met' : 'MISSED'}]`);
}
