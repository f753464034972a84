// All suites, in the order of the report.
import type { Suite } from '../suite.js';
import { applySuites } from './apply.js';
import { decisionSuites } from './decision.js';
import { derivedSuites } from './derived.js';
import { footprintSuites } from './footprint.js';
import { hashSuites } from './hash.js';
import { indexSuites } from './index-suites.js';
import { learnSuites } from './learn.js';
import { lookupSuites } from './lookup.js';
import { planeSuites } from './plane.js';
import { reconcileSuites } from './reconcile.js';
import { workerSuites } from './worker.js';

export const suites: readonly Suite[] = [
  ...lookupSuites,
  ...learnSuites,
  ...applySuites,
  ...workerSuites,
  ...hashSuites,
  ...derivedSuites,
  ...indexSuites,
  ...decisionSuites,
  ...reconcileSuites,
  ...planeSuites,
  ...footprintSuites,
];

/** Raised whenever a suite's work changes: what was measured before is then no base. */
export const WORKLOAD = 3;
