// All checks, in the order in which they are read: first what everything else depends on.
import type { Evidence } from '../evidence.js';
import type { Check, Finding } from '../finding.js';
import { blockSize } from './block-size.js';
import { chatTemplate } from './chat-template.js';
import { contract } from './contract.js';
import { contractAgreement } from './contract-agreement.js';
import { contractDerived } from './contract-derived.js';
import { drift } from './drift.js';
import { eligibleShare } from './eligible-share.js';
import { eventsArrive } from './events-arrive.js';
import { eventsPort } from './events-port.js';
import { eventsRank } from './events-rank.js';
import { eventsReadable } from './events-readable.js';
import { eventsTopic } from './events-topic.js';
import { hashForm } from './hash-form.js';
import { hashSeed } from './hash-seed.js';
import { hashesMeetStore } from './hashes-meet-store.js';
import { keyPrefixes } from './key-prefixes.js';
import { loraNaming } from './lora-naming.js';
import { masterHttp } from './master-http.js';
import { masterPort } from './master-port.js';
import { masterState } from './master-state.js';
import { masterStream } from './master-stream.js';
import { model } from './model.js';
import { planeAnswers } from './plane-answers.js';
import { replay } from './replay.js';
import { saltNaming } from './salt-naming.js';
import { tenants } from './tenants.js';
import { tokenizer } from './tokenizer.js';
import { workerHttp } from './worker-http.js';

export const CHECKS: readonly Check[] = [
  workerHttp,
  model,
  eventsPort,
  eventsArrive,
  eventsTopic,
  eventsRank,
  eventsReadable,
  replay,
  planeAnswers,
  blockSize,
  hashForm,
  contract,
  contractAgreement,
  contractDerived,
  hashSeed,
  eligibleShare,
  saltNaming,
  loraNaming,
  tokenizer,
  chatTemplate,
  masterHttp,
  masterState,
  masterPort,
  masterStream,
  tenants,
  keyPrefixes,
  hashesMeetStore,
  drift,
];

/** What all checks say. A check that has nothing to look at says that it does not apply. */
export function findingsOf(evidence: Evidence): Finding[] {
  return CHECKS.flatMap(({ code, run }) => {
    const verdicts = run(evidence);
    if (verdicts.length > 0) return verdicts.map((verdict) => ({ code, ...verdict }));
    return [{ code, status: 'skipped' as const, subject: 'config', seen: 'nothing of it is configured', fix: null }];
  });
}
