// `moonroute/server`: the live router as a library, for a process that brings its own configuration, log and signals. Node and Deno.
export { type ConfigInput, type ConfigPlace, checkConfig, type ServerConfig } from './config.js';
export { configJsonSchema } from './config-json-schema.js';
export { type ConfigSources, type GatheredConfig, loadConfig } from './config-load.js';
export { printedConfig } from './config-print.js';
export { createLog, type LogTarget } from './log.js';
export { type RunningService, type StartOptions, startService } from './service.js';
export type {
  EndedRequest,
  PreparedPrompt,
  PromptReader,
  PromptStats,
  RegisteredWorker,
  RequestObserver,
  ServerLog,
  Service,
  WorkerRegistry,
  WorkerSpec,
} from './types.js';
