// A worker's contract, come by as configured and held against the rules.
import { readFile, stat } from 'node:fs/promises';
import type { Hashing } from '../../contract/descriptor.js';
import { validateContract } from '../../contract/validate.js';
import { ConfigError, MoonrouteError } from '../../errors.js';
import { ask, statusText } from '../registry-http.js';
import type { WorkerSpec } from '../types.js';
import type { ContractEvidence } from './evidence.js';
import type { CollectParts } from './parts.js';

const ANSWER_MS = 3000;
/** Largest descriptor. */
const DESCRIPTOR_BYTES = 4 << 20;

export async function contractEvidence(
  { url, contract }: WorkerSpec,
  hashing: Hashing,
  parts: CollectParts,
): Promise<ContractEvidence> {
  if (contract === null) return { contract: null, code: null, fault: null };
  try {
    const descriptor =
      contract === 'endpoint'
        ? await asked(`${url}/moonroute/descriptor`, parts)
        : 'file' in contract
          ? await fromFile(contract.file)
          : contract.inline;
    return { contract: validateContract(descriptor, { hashing }), code: null, fault: null };
  } catch (error) {
    if (!(error instanceof MoonrouteError)) throw error;
    return { contract: null, code: error.code, fault: error.message };
  }
}

async function asked(url: string, { fetch, clock, signal }: CollectParts): Promise<unknown> {
  const answer = await ask({ fetch, clock }, { url, body: null, time: ANSWER_MS, bytes: DESCRIPTOR_BYTES, signal });
  if (answer.status !== 200) throw new MoonrouteError('http-status', statusText(url, answer.status));
  return parsed(answer.text, url);
}

async function fromFile(file: string): Promise<unknown> {
  let text: string;
  try {
    if ((await stat(file)).size > DESCRIPTOR_BYTES) {
      throw new ConfigError('contract-file', `${file} is larger than ${DESCRIPTOR_BYTES} bytes`);
    }
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof MoonrouteError) throw error;
    throw new ConfigError('contract-file', `can't read ${file}: ${(error as Error).message}`);
  }
  return parsed(text, file);
}

function parsed(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new MoonrouteError('contract-json', `${place} is no JSON`);
  }
}
