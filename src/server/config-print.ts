// The configuration for people to look at: whole, but for secrets.
import type { ServerConfig } from './config.js';

const HIDDEN = '(hidden)';

/** A document as it could be written, with every default and no secret. */
export function printedConfig(config: ServerConfig): object {
  const { auth, curve } = config;
  return {
    ...config,
    auth: { clientKeys: auth.clientKeys.map(() => HIDDEN), adminKeys: auth.adminKeys.map(() => HIDDEN) },
    curve: curve === null ? null : { ...curve, secretKey: HIDDEN },
  };
}
