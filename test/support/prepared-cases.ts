// Oracle cases as plain JSON: descriptor, real worker and store bytes, prompt and expected credit. What another JavaScript engine needs to
// show that it gives the same answers, through nothing but the public entry.
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { descriptorFromCase, type OracleCaseGeometry } from '../../src/contract/from-case.js';
import { storeMessages, workerMessages } from '../../src/oracle/case-bytes.js';
import { readCaseFile } from '../../src/oracle/case-file.js';

/** One case; frames are base64. */
export interface PreparedCase {
  readonly name: string;
  readonly descriptor: unknown;
  readonly worker: string[][];
  readonly store: string[][];
  readonly tokens: number[];
  readonly blockSize: number;
  readonly loraName: string | null;
  readonly expected: number;
}

/** Every `step`-th of the 600 cases whose deciding boundary is visible (the hit is a multiple of the main block) and that carries no salt. */
export function preparedCases(step: number): PreparedCase[] {
  const file = 'test/fixtures/oracle-cases.json.gz';
  const text = gunzipSync(readFileSync(file)).toString();
  const geometries = (JSON.parse(text) as { cases: OracleCaseGeometry[] }).cases;
  const base64 = (messages: readonly (readonly Uint8Array[])[]) =>
    messages.map((frames) => frames.map((frame) => Buffer.from(frame).toString('base64')));
  return readCaseFile(text, file).flatMap((one, index) => {
    const { mainEventBlockSize: blockSize, expected, cacheSalt } = one;
    if (index % step !== 0 || blockSize === null || cacheSalt !== null || expected.workerHitTokens % blockSize !== 0)
      return [];
    return {
      name: one.name,
      descriptor: descriptorFromCase(geometries[index]!),
      worker: base64(workerMessages(one, { form: 'map', hashes: index % 2 ? 'u64' : 'binary' })),
      store: base64(storeMessages(one, { generation: 'A' })),
      tokens: [...one.tokens.subarray(0, one.requestTokenCount)],
      blockSize,
      loraName: one.loraName,
      expected: expected.workerHitTokens,
    };
  });
}
