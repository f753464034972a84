// Scenarios: several settings at once, for questions that people come with. Each begins from the page's defaults in what scenarios touch, so that two of
// them never mix; whatever else is set stays.
import type { Settings } from './messages.js';

/** What runs when the page opens: small enough to be complete in a moment, and tight enough that policies differ. */
export const PAGE_SETTINGS: Settings = {
  policy: 'kv,ttft,round-robin',
  curve: 'true',
  requests: '1000',
  workers: '8',
  gpu: '40GB',
  store: '200GB',
};

/** Facts of the trace that a scenario may need. */
export interface ScenarioFacts {
  /** Milliseconds of the trace's clock. */
  readonly span: number;
}

interface Scenario {
  readonly name: string;
  readonly settings: (facts: ScenarioFacts) => Settings;
}

const seconds = (ms: number): string => `${Math.max(1, Math.round(ms / 1000))}s`;

export const SCENARIOS: readonly Scenario[] = [
  { name: "The page's defaults", settings: () => ({}) },
  { name: 'No store', settings: () => ({ store: '0' }) },
  { name: 'Store that never fills', settings: () => ({ store: '10TB' }) },
  { name: 'Little memory, spilling to SSD', settings: () => ({ store: '50GB', ssd: '2TB' }) },
  { name: 'Store restarts at half time', settings: ({ span }) => ({ restart: `store@${seconds(span / 2)}` }) },
  {
    name: 'A worker restarts at half time',
    settings: ({ span }) => ({ restart: `worker:0@${seconds(span / 2)}` }),
  },
  { name: 'Lossy events', settings: () => ({ loss: '2%', jitter: '20ms' }) },
  { name: 'Late events', settings: () => ({ delay: '2s' }) },
  { name: 'Double load', settings: () => ({ speedup: '2' }) },
  { name: 'Half the workers', settings: () => ({ workers: '4' }) },
  { name: 'Slow links', settings: () => ({ link: '10Gbit/s', 'store-rate': '40Gbit/s' }) },
  {
    name: 'How large a store?',
    settings: () => ({ policy: 'kv', sweep: 'store=0,50GB,100GB,200GB,400GB,800GB' }),
  },
];

const TOUCHED = new Set(SCENARIOS.flatMap(({ settings }) => Object.keys(settings({ span: 0 }))));

/** `base` with a scenario's settings in place of every other's. */
export function withScenario(base: Settings, place: number, facts: ScenarioFacts): Settings {
  const kept = Object.entries(base).filter(([flag]) => !TOUCHED.has(flag));
  const usual = Object.entries(PAGE_SETTINGS).filter(([flag]) => TOUCHED.has(flag));
  const all = place === 0 ? Object.entries(PAGE_SETTINGS) : [...kept, ...usual];
  return { ...Object.fromEntries(all), ...SCENARIOS[place]!.settings(facts) };
}
