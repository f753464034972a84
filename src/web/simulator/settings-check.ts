// What the command would refuse of some settings, and at which option: each text by itself, and all together once each can be read.
import { MoonrouteError } from '../../errors.js';
import { runOf } from '../../sim/settings/from-texts.js';
import { optionOf } from '../../sim/settings/options.js';
import { flagOf } from '../../sim/settings/refusal.js';
import type { Settings } from './messages.js';

/** Refusals by flag; under null what no single option is to blame for. Empty where the command would run. */
export function refusalOf(settings: Settings, hasTrace: boolean): Map<string | null, string> {
  const refusals = new Map<string | null, string>();
  for (const [flag, text] of Object.entries(settings)) {
    const refusal = refused(() => optionOf(flag)?.parse(text));
    if (refusal !== null) refusals.set(flag, refusal.message);
  }
  if (refusals.size > 0) return refusals;
  const refusal = refused(() => runOf(settings, hasTrace));
  if (refusal !== null) refusals.set(flagOf(refusal), refusal.message);
  else if (settings['policy'] === undefined && settings['curve'] === undefined)
    refusals.set('policy', 'Choose a policy, or the capacity curve alone.');
  return refusals;
}

function refused(work: () => unknown): MoonrouteError | null {
  try {
    work();
    return null;
  } catch (error) {
    if (error instanceof MoonrouteError) return error;
    throw error;
  }
}
