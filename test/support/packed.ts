// The package as users get it: what `npm pack` would put in, the tarball itself, and an empty folder into which it is installed. Dependencies are those that
// package-lock.json pins, from npm's cache where it has them.
import { execFileSync, type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly engines: Readonly<Record<string, string>>;
}

export const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest;

/** What `npm pack` says. */
export interface Packed {
  readonly filename: string;
  /** Bytes of the tarball, and of all files. */
  readonly size: number;
  readonly unpackedSize: number;
  readonly integrity: string;
  readonly files: readonly { readonly path: string; readonly size: number; readonly mode: number }[];
}

function pack(...args: string[]): Packed {
  // No scripts: the tests run on what is built.
  const said = execFileSync('npm', ['pack', '--json', '--ignore-scripts', ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return (JSON.parse(said) as [Packed])[0];
}

export const dryPacked = (): Packed => pack('--dry-run');

/** Entries with code: what `exports` calls them, their JavaScript, their declarations. */
export const entries = Object.entries(manifest.exports).flatMap(([path, target]) =>
  typeof target === 'string' ? [] : [{ name: join(manifest.name, path), types: target.types, file: target.default }],
);

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly optional?: boolean }>>;
}

/** An empty folder with the tarball in it. */
export class PackedFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'moonroute-packed-'));
  readonly packed: Packed;

  constructor() {
    this.packed = pack('--pack-destination', this.path);
  }

  get tarball(): string {
    return join(this.path, this.packed.filename);
  }

  /** An application in a folder of its own that has the package installed, with its optional dependencies or without. */
  install(name: string, { optional }: { optional: boolean }): App {
    const folder = join(this.path, name);
    mkdirSync(folder);
    const dependencies = { [manifest.name]: `file:${this.tarball}` };
    const root = { name, version: '1.0.0', private: true, type: 'module', dependencies };
    const { version, dependencies: needs, optionalDependencies, bin, engines } = manifest;
    const self = { version, resolved: `file:${this.tarball}`, integrity: this.packed.integrity };
    const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lock;
    const used = Object.entries(lock.packages).filter(([path, { dev }]) => path !== '' && dev !== true);
    const packages = {
      '': root,
      [`node_modules/${manifest.name}`]: { ...self, dependencies: needs, optionalDependencies, bin, engines },
      ...Object.fromEntries(used),
    };
    const write = (file: string, value: unknown) => writeFileSync(join(folder, file), JSON.stringify(value));
    write('package.json', root);
    write('package-lock.json', { name, version: '1.0.0', lockfileVersion: 3, requires: true, packages });
    const omit = optional ? [] : ['--omit=optional'];
    execFileSync('npm', ['ci', '--prefer-offline', '--no-audit', '--no-fund', '--silent', ...omit], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    return new App(folder);
  }

  remove(): void {
    rmSync(this.path, { recursive: true });
  }
}

/** A folder with an application in it. */
export class App {
  constructor(readonly path: string) {}

  write(file: string, text: string): void {
    writeFileSync(join(this.path, file), text);
  }

  run(command: string, ...args: string[]): SpawnSyncReturns<string> {
    // What people see without a terminal, whatever the tests run in.
    const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined };
    return spawnSync(command, args, { cwd: this.path, env, encoding: 'utf8', maxBuffer: 64 << 20 });
  }

  /** Standard output of what must end well. */
  says(command: string, ...args: string[]): string {
    const { status, stdout, stderr } = this.run(command, ...args);
    if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}:\n${stdout}${stderr}`);
    return stdout;
  }
}

/** A file of the project, from wherever a command runs. */
export const ofProject = (path: string): string => resolve(path);
