// The configuration for people to look at: whole, but for secrets.
import type { ServerConfig } from './config.js';
import { withoutPassword } from './config-refusal.js';

const HIDDEN = '(hidden)';

/** A document as it could be written, with every default and no secret. */
export function printedConfig(config: ServerConfig): object {
  const { auth, curve, eventPlane } = config;
  return {
    ...config,
    auth: { clientKeys: auth.clientKeys.map(() => HIDDEN), adminKeys: auth.adminKeys.map(() => HIDDEN) },
    eventPlane: eventPlane === null ? null : { ...eventPlane, url: printedUrl(eventPlane.url) },
    curve: curve === null ? null : { ...curve, secretKey: HIDDEN },
  };
}

/** Who signs in at the plane, and with what, is a secret. */
function printedUrl(url: string | readonly string[]): string | string[] {
  return typeof url === 'string' ? withoutPassword(url) : url.map(withoutPassword);
}
