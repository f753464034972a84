// The server's log: pino's JSON lines on stderr, or lines for people where stderr is a terminal. Fields are named by those who log, and hold neither
// prompts nor keys; what might still be one by its name is cut.
import { type Logger, pino } from 'pino';
import type { ServerConfig } from './config.js';

export type LogLevelName = ServerConfig['log']['level'];

/** Where lines go. */
export interface LogTarget {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

/** Fields that are never written, wherever they come from. */
const SECRET_FIELDS = ['authorization', 'secretKey', 'clientKeys', 'adminKeys', 'prompt', 'messages'];
const LEVELS: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'error',
  60: 'fatal',
};

/** A log of that level. */
export function createLog(level: LogLevelName, target: LogTarget = process.stderr): Logger {
  const write = target.isTTY ? (line: string) => target.write(readable(line)) : (line: string) => target.write(line);
  return pino(
    { level, base: null, redact: { paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`]), remove: true } },
    { write },
  );
}

/** A line of JSON as people read it: time, level, text, and fields behind it. */
export function readable(line: string): string {
  const { level, time, msg, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const clock = new Date(time as number).toTimeString().slice(0, 8);
  const fields = Object.entries(rest).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  // What came from elsewhere must not move a terminal's cursor.
  return `${[clock, (LEVELS[level as number] ?? '').padEnd(5), msg, ...fields].join(' ').replace(/\p{Cc}/gu, ' ')}\n`;
}
