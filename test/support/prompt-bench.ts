// A prompt reader over workers that a test names, without a registry's polling.
import { createPromptReader, type PromptReaderOptions } from '../../src/server/prompts.js';
import type { PreparedPrompt, PromptKind, PromptReader, RegisteredWorker } from '../../src/server/types.js';

export interface PromptBenchOptions {
  readonly workers?: readonly Partial<RegisteredWorker>[];
  readonly adapters?: readonly string[];
  readonly tokenizer?: PromptReaderOptions['config']['tokenizer'];
  readonly saltMode?: 'prefixed' | 'raw';
  readonly promptTokens?: number;
  readonly clock?: PromptReaderOptions['clock'];
}

export class PromptBench {
  readonly lines: string[] = [];
  readonly workers: RegisteredWorker[];
  /** The only workers that list a name. */
  readonly listed: Record<string, readonly string[]> = {};
  readonly reader: PromptReader;

  constructor(options: PromptBenchOptions = {}) {
    const {
      workers = [],
      adapters = ['sql'],
      tokenizer = null,
      saltMode = 'prefixed',
      promptTokens = 100_000,
    } = options;
    this.workers = workers.map((worker, i) => ({
      id: `w${i}`,
      url: 'http://127.0.0.1:9',
      events: null,
      replay: null,
      topic: '',
      dpRanks: { start: 0, size: 1 },
      contract: null,
      configured: true,
      healthy: true,
      adapters,
      models: ['m'],
      contractFault: null,
      ...worker,
    }));
    const line = (_: object, text: string) => void this.lines.push(text);
    this.reader = createPromptReader({
      config: { tokenizer, salt: { mode: saltMode }, limits: { promptTokens } },
      registry: {
        list: () => this.workers,
        listedBy: (name) => this.listed[name] ?? null,
        knows: (name) => (name === 'm' ? 'model' : adapters.includes(name) ? 'adapter' : null),
      },
      log: { debug: line, info: line, warn: line, error: line },
      ...(options.clock === undefined ? {} : { clock: options.clock }),
    });
  }

  read(kind: PromptKind, body: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<PreparedPrompt> {
    return this.reader.read(kind, body, signal ?? new AbortController().signal);
  }

  text(prompt: string, fields: Readonly<Record<string, unknown>> = {}): Promise<PreparedPrompt> {
    return this.read('completions', { model: 'm', prompt, ...fields });
  }

  chat(content: unknown, fields: Readonly<Record<string, unknown>> = {}): Promise<PreparedPrompt> {
    return this.read('chat', { model: 'm', messages: [{ role: 'user', content }], ...fields });
  }
}
