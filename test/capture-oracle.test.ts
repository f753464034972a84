// Streams of a running Mooncake master, into which the objects of oracle cases were put: fed message by message, they must leave what
// the case says, so that the credit is what vLLM itself restores. Each capture is one test, named after its case.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedCache } from '../src/cache/shared-cache.js';
import type { OracleCase } from '../src/oracle/case-file.js';
import { prepareCase, queryOf, runCase } from '../src/oracle/run.js';
import { captured, captureNames, ownCases, upstreamCases } from './support/captures.js';

/** Put and removed again by the capture's author, besides the case's own objects. */
const FURTHER_OBJECTS = 3;

const names = captureNames('cases');
const own = new Map(ownCases().map((oracleCase) => [oracleCase.name, oracleCase]));
const upstream = upstreamCases();
const published = new Map((upstream ?? []).map((oracleCase) => [oracleCase.name, oracleCase]));
const cache = await SharedCache.create();

test('there are 24 captures, half of them of our own cases', () => {
  assert.is(names.length, 24);
  assert.is(names.filter((name) => own.has(name)).length, 12);
});

for (const name of names) {
  const oracleCase = own.get(name) ?? published.get(name);
  if (oracleCase !== undefined) test(titleOf(oracleCase), () => replay(oracleCase));
  else if (upstream === null) test.skip(`${name}: skipped, the published cases are not here`, () => {});
  else test(name, () => assert.unreachable('a capture of no known case'));
}

function titleOf({ name, expected }: OracleCase): string {
  const { oracleHitTokens, workerHitTokens } = expected;
  const said =
    oracleHitTokens === workerHitTokens
      ? 'as coordinator and worker both say'
      : `as the worker reports (its coordinator alone: ${oracleHitTokens})`;
  return `${name}: ${workerHitTokens} tokens, ${said}`;
}

function replay(oracleCase: OracleCase): void {
  const messages = captured('cases', oracleCase.name);
  const result = runCase(cache, oracleCase);
  assert.is(prepareCase(cache, oracleCase), result.unsupported);
  const inForce = cache.contract !== null;
  let objects = 0;
  for (const frames of messages) {
    const applied = cache.applyStoreMessage(frames);
    assert.is(applied.fate, inForce ? 'applied' : 'no-contract', String(applied.detail));
    assert.equal(applied.skipped, { foreignTenant: 0, foreignKey: 0 });
    objects += applied.objects;
  }
  if (result.verdict === 'unsupported') {
    // Refused before anything was looked up: the contract's error, or why the worker's event teaches nothing.
    assert.is.not(result.unsupported, null);
    assert.is(cache.lookup(queryOf(oracleCase)).tokens, 0);
    if (!inForce) assert.equal(codes(cache.explain(queryOf(oracleCase)).reasons), ['no-contract']);
    return;
  }
  assert.is(objects, oracleCase.objects.length + 2 * FURTHER_OBJECTS);
  assert.equal(
    cache.census().map((group) => [group.objects, group.cpu, group.disk, group.unknown]),
    oracleCase.groups.map((_, group) => {
      const keys = new Set(oracleCase.objects.filter((object) => object.group === group).map(({ key }) => key));
      return [keys.size, keys.size, 0, 0];
    }),
  );
  const credited = cache.lookup(queryOf(oracleCase)).tokens;
  assert.is(credited, result.credited);
  if (result.verdict === 'under') assert.ok(credited < result.expected);
  else assert.is(credited, oracleCase.expected.workerHitTokens);
  assert.equal(cache.explain(queryOf(oracleCase)).reasons, result.reasons);
}

function codes(reasons: readonly { readonly code: string }[]): string[] {
  return reasons.map(({ code }) => code);
}

test('the captured streams cover hits, refusals and misses', () => {
  const verdicts = names.flatMap((name) => {
    const oracleCase = own.get(name);
    return oracleCase === undefined ? [] : [runCase(cache, oracleCase).verdict];
  });
  assert.equal(
    ['equal', 'under', 'over', 'unsupported'].map((verdict) => verdicts.filter((seen) => seen === verdict).length),
    [10, 0, 0, 2],
  );
});

test.run();
