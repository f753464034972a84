// The same gateway in Deno: `deno run -A examples/gateway-deno.js POOL.json`.
import { openGateway } from './gateway.js';

const gateway = await openGateway(JSON.parse(await Deno.readTextFile(Deno.args[0])));
const answer = (request) => gateway.handle(request).catch((error) => new Response(error.message, { status: 400 }));
Deno.serve({ hostname: '127.0.0.1', port: Number(Deno.env.get('PORT') ?? 8080) }, answer);
