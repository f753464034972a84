// A port for a socket that is to be bound later: a standby must be able to say where its events will come from. Someone else may take it in between;
// binding then fails and says so.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

export async function freePort(host: string): Promise<number> {
  const server = createServer();
  server.listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
