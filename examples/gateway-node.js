// A minimal gateway in Node: `node examples/gateway-node.js POOL.json`, where POOL.json has `workers` and `masters` as gateway.js wants them; without it a
// simulated pool is started, so that there is something to ask. PORT is 8080 by default.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { openGateway } from './gateway.js';
import { simulatedPool } from './simulated-pool.js';

const [file] = process.argv.slice(2);
const pool = file === undefined ? await simulatedPool() : JSON.parse(readFileSync(file, 'utf8'));
const gateway = await openGateway(pool);

const server = createServer(async (request, response) => {
  try {
    const { method, headers } = request;
    const asked = new Request(`http://localhost${request.url}`, {
      method,
      headers,
      body: Readable.toWeb(request),
      duplex: 'half',
    });
    const answer = await gateway.handle(asked);
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    Readable.fromWeb(answer.body)
      .on('error', () => response.destroy())
      .pipe(response);
  } catch (error) {
    if (response.headersSent) response.destroy();
    else response.writeHead(400).end(error.message);
  }
});
server.listen(process.env.PORT ?? 8080, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
