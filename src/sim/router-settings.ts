// The settings under which a simulation's router works: those of the configuration, with a shared cache where the store holds something.
import type { RouterSettingsInput } from '../router/settings.js';
import type { SimConfig } from './types.js';

export function routerSettings({ settings, seed, store }: SimConfig): RouterSettingsInput {
  const sharedCacheType = store.dramBytes + store.ssdBytes > 0 ? 'mooncake-store' : 'none';
  return { seed, sharedCacheType, ...settings };
}
