// The files of a recording: takes the recorder's steps in order and tells what has landed. The file that is written has the name that was
// asked for; a part that is done gets a number before its ending, rising and with leading zeros, so that a shell lists all parts in the
// order of time. Only the owner may read them, for they hold what people asked. Nothing that is there already is overwritten.
import { type FileHandle, open, readdir, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { constants, createGzip, type Gzip } from 'node:zlib';
import { ConfigError, MoonrouteError } from '../errors.js';
import type { RecorderStep } from './recorder.js';

/** Read and written by the owner alone. */
const MODE = 0o600;
/** Bytes of lines that are written together. */
const WRITE_BYTES = 1 << 20;
/** Digits of a part's number; more parts than that still have names, only less neat ones. */
const PART_DIGITS = 4;

/** The name of a part: `a/b.jsonl.gz` → `a/b.0001.jsonl.gz`. */
export function partName(out: string, part: number): string {
  const [, stem, ending] = splitName(out);
  return join(dirname(out), `${stem}.${String(part).padStart(PART_DIGITS, '0')}${ending}`);
}

/** The whole name, what stands before its ending, and that. */
function splitName(out: string): readonly [string, string, string] {
  const name = basename(out);
  const ending = /(?:\.jsonl|\.json)?(?:\.gz)?$/.exec(name)![0];
  return [name, name.slice(0, name.length - ending.length), ending];
}

interface OpenFile {
  readonly handle: FileHandle;
  readonly gzip: Gzip | null;
  /** Resolves when the packer's last byte is in the file, and that is closed. */
  readonly done: Promise<void>;
}

export interface RecordingFilesOptions {
  readonly out: string;
  readonly gzip: boolean;
  /** So many bytes of lines have reached the files. */
  readonly landed: (bytes: number) => void;
  /** They could not be written; nothing is taken any more. */
  readonly failed: (error: MoonrouteError) => void;
}

export class RecordingFiles {
  readonly #options: RecordingFilesOptions;
  #file: OpenFile;
  #steps: RecorderStep[] = [];
  #working: Promise<void> | null = null;
  #failed = false;

  private constructor(options: RecordingFilesOptions, file: OpenFile) {
    this.#options = options;
    this.#file = file;
  }

  /** @throws ConfigError `record-exists`, `record-unwritable` */
  static async open(options: RecordingFilesOptions): Promise<RecordingFiles> {
    const { out } = options;
    await refuseOldParts(out);
    try {
      return new RecordingFiles(options, await openFile(out, options.gzip));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw existing(out);
      throw new ConfigError('record-unwritable', `cannot write ${out}: ${(error as Error).message}`);
    }
  }

  take(step: RecorderStep): void {
    if (this.#failed) return;
    this.#steps.push(step);
    this.#working ??= this.#work();
  }

  /** Brings what a packer holds back into the file, so that a broken-off recording lacks little. */
  flush(): void {
    this.#file.gzip?.flush(constants.Z_SYNC_FLUSH);
  }

  /** Everything taken is in the files when this resolves. */
  async end(): Promise<void> {
    while (this.#working !== null) await this.#working;
    try {
      await closeFile(this.#file);
    } catch (error) {
      this.#fail(error);
    }
  }

  async #work(): Promise<void> {
    await Promise.resolve(); // steps that are taken in one go are written together
    try {
      while (this.#steps.length > 0) {
        const steps = this.#steps;
        this.#steps = [];
        for (let at = 0; at < steps.length; ) at = await this.#some(steps, at);
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#working = null;
    }
  }

  /** Does the step at `at`, and further ones where they are lines too. Returns the place of the next. */
  async #some(steps: readonly RecorderStep[], at: number): Promise<number> {
    let text = '';
    let bytes = 0;
    for (; at < steps.length && bytes < WRITE_BYTES; at++) {
      const step = steps[at]!;
      if (step.do === 'rotate') {
        if (bytes > 0) break;
        await this.#rotate(step.part, step.forget);
        return at + 1;
      }
      text += step.text;
      bytes += step.bytes;
    }
    await writeTo(this.#file, text);
    this.#options.landed(bytes);
    return at;
  }

  async #rotate(part: number, forget: number | null): Promise<void> {
    const { out, gzip } = this.#options;
    await closeFile(this.#file);
    await rename(out, partName(out, part));
    if (forget !== null) await unlink(partName(out, forget));
    this.#file = await openFile(out, gzip);
  }

  #fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#steps = [];
    const { out, failed } = this.#options;
    failed(
      new MoonrouteError(
        'record-failed',
        `cannot write ${out}: ${(error as Error).message}; the recording ends there`,
        {
          cause: error,
        },
      ),
    );
  }
}

async function openFile(path: string, packed: boolean): Promise<OpenFile> {
  const handle = await open(path, 'wx', MODE);
  if (!packed) return { handle, gzip: null, done: Promise.resolve() };
  const gzip = createGzip();
  const file = handle.createWriteStream(); // which closes the handle, at the end as after a fault
  const done = new Promise<void>((resolve, reject) => {
    file.once('error', reject);
    gzip.once('error', reject);
    file.once('close', resolve);
  });
  done.catch(() => gzip.destroy()); // heard again when the file is written to or closed
  gzip.pipe(file);
  return { handle, gzip, done };
}

async function writeTo({ handle, gzip }: OpenFile, text: string): Promise<void> {
  if (gzip === null) return handle.appendFile(text);
  return new Promise((resolve, reject) => {
    gzip.write(text, (error) => (error == null ? resolve() : reject(error)));
  });
}

async function closeFile({ handle, gzip, done }: OpenFile): Promise<void> {
  if (gzip === null) return handle.close();
  gzip.end();
  await done;
}

/** Numbered parts of an earlier recording would be overwritten, or read together with this one's. */
async function refuseOldParts(out: string): Promise<void> {
  const [, stem, ending] = splitName(out);
  const names = await readdir(dirname(out)).catch(() => []);
  const old = names.find(
    (name) =>
      name.startsWith(`${stem}.`) &&
      name.endsWith(ending) &&
      /^\d{4,}$/.test(name.slice(stem.length + 1, name.length - ending.length)),
  );
  if (old !== undefined) throw existing(join(dirname(out), old));
}

const existing = (file: string): ConfigError =>
  new ConfigError('record-exists', `${file} is there already; name another file, or move it away`);
