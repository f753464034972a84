// A nats-server of the test's own: on loopback, with a directory for its stream store, which it may be killed and started on again.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Whether this machine has it. Under CI it must; elsewhere a test that can't run says so and is skipped. */
export const hasNats = spawnSync('nats-server', ['--version']).status === 0;
if (!hasNats && process.env['CI']) throw new Error('nats-server is not installed, and CI may not skip its tests');
if (!hasNats) console.log('notice: nats-server is not installed; tests with a real one are skipped');

/** A certificate for loopback that signs itself, in the directory; files in PEM. */
export function makeCertificate(directory: string): { readonly certificate: string; readonly key: string } {
  const [certificate, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  const { status, stderr } = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
    ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'],
    ...['-keyout', key, '-out', certificate],
  ]);
  if (status !== 0) throw new Error(`openssl made no certificate: ${stderr}`);
  return { certificate, key };
}

/** The server's settings for it. */
export function tlsConfig({ certificate, key }: ReturnType<typeof makeCertificate>): string {
  return `tls { cert_file: ${JSON.stringify(certificate)}, key_file: ${JSON.stringify(key)} }`;
}

const READY_MS = 10_000;
const START_TRIES = 5;

export interface NatsServerOptions {
  /** Lines of its configuration file, besides port and store. */
  readonly config?: string;
  /** Default true. */
  readonly jetstream?: boolean;
}

export class NatsServer {
  readonly #directory: string;
  readonly #options: NatsServerOptions;
  #port = 0;
  #process: ChildProcess | null = null;

  private constructor(directory: string, options: NatsServerOptions) {
    this.#directory = directory;
    this.#options = options;
  }

  static async start(options: NatsServerOptions = {}): Promise<NatsServer> {
    const server = new NatsServer(await mkdtemp(join(tmpdir(), 'moonroute-nats-')), options);
    for (let attempt = 1; ; attempt++) {
      server.#port = await freePort();
      try {
        await server.restart();
        return server;
      } catch (error) {
        // Another may have taken the port.
        if (attempt < START_TRIES) continue;
        await server.close();
        throw error;
      }
    }
  }

  get port(): number {
    return this.#port;
  }
  get url(): string {
    return `nats://127.0.0.1:${this.#port}`;
  }

  /** As a machine that loses power, the disk aside. */
  async kill(): Promise<void> {
    const running = this.#process;
    this.#process = null;
    if (running === null || running.exitCode !== null) return;
    const exit = once(running, 'exit');
    running.kill('SIGKILL');
    await exit;
  }

  /** Starts it on its port and its store. */
  async restart(): Promise<void> {
    await this.kill();
    const file = join(this.#directory, 'server.conf');
    const store = JSON.stringify(join(this.#directory, 'store'));
    const { jetstream = true, config = '' } = this.#options;
    await writeFile(
      file,
      `listen: "127.0.0.1:${this.#port}"\n${jetstream ? `jetstream { store_dir: ${store} }\n` : ''}${config}\n`,
    );
    const process = spawn('nats-server', ['-c', file], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#process = process;
    let said = '';
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`nats-server is not ready after ${READY_MS} ms: ${said}`)),
        READY_MS,
      );
      const end = (settle: () => void) => {
        clearTimeout(timer);
        settle();
      };
      process.stderr.on('data', (chunk: Buffer) => {
        said = (said + chunk.toString()).slice(-10_000);
        if (said.includes('Server is ready')) end(resolve);
      });
      process.on('error', (error) => end(() => reject(error)));
      process.on('exit', (code) => end(() => reject(new Error(`nats-server ended with ${code}: ${said}`))));
    });
  }

  async close(): Promise<void> {
    await this.kill();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
