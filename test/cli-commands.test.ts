// The commands as a person or a script meets them: exit codes, what goes to which stream, --json, and errors that say what to do.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const CASES = 'test/fixtures/oracle-cases.json.gz';
const CAPTURE = 'test/fixtures/mooncake-captures/tp2_fa16_mamba16_late.jsonl';
const CONTRACT = 'examples/contract.json';
const folder = mkdtempSync(join(tmpdir(), 'moonroute-cli-'));
test.after(() => rmSync(folder, { recursive: true }));

function moonroute(args: string[], input = '') {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['build/js/src/cli/main.js', ...args], {
    encoding: 'utf8',
    input,
  });
  return { status, stdout, stderr };
}
function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

test('oracle: counts, exit 0, nothing on stderr', () => {
  const { status, stdout, stderr } = moonroute(['oracle', CASES]);
  assert.is(status, 0);
  assert.is(stderr, '');
  assert.match(
    stdout,
    /cases +600\n +equal +490 \(317 with a hit, 173 without\)\n +under +14\n +over +0\n +unsupported 96\n/,
  );
});

test('oracle --json: one document, every result with its verdict', () => {
  const [report] = JSON.parse(moonroute(['oracle', CASES, '--json']).stdout);
  assert.is(report.results.length, 600);
  assert.is(report.results.filter(({ verdict }: { verdict: string }) => verdict === 'under').length, 14);
});

test('oracle fails when a case is credited above what vLLM restores', () => {
  // The same file with one expectation lowered: what the command must catch, made to happen.
  const cases = JSON.parse(gunzipSync(readFileSync(CASES)).toString());
  const one = cases.cases.find((c: { name: string }) => c.name === 'dev-fa_only-0');
  one.worker_hit_tokens = one.oracle_hit_tokens - 8;
  const { status, stdout, stderr } = moonroute(['oracle', file('lowered.json', JSON.stringify(cases))]);
  assert.is(status, 1);
  assert.match(stdout, /over +1\n/);
  assert.match(stderr, /credited above/);
});

test('oracle: a missing file, and one of another kind, are errors on stderr', () => {
  for (const [args, text] of [
    [['oracle', 'nowhere.json'], /cannot read nowhere\.json/],
    [['oracle', file('other.json', '{"hello": 1}')], /other\.json.*cases/],
    [['oracle', file('broken.json', '{')], /not JSON/],
  ] as const) {
    const { status, stdout, stderr } = moonroute([...args]);
    assert.is(status, 1);
    assert.is(stdout, '');
    assert.match(stderr, text);
  }
});

test('replay: what is resident per group', () => {
  const { status, stdout } = moonroute(['replay', CAPTURE, '--contract', CONTRACT]);
  assert.is(status, 0);
  assert.match(stdout, /16 messages of a master \(16 applied\)/);
  assert.match(stdout, /group 0 \(full_attention\): 4 complete digests, 8 objects/);
  assert.match(stdout, /group 1 \(mamba\): 1 complete digests, 2 objects/);
});

test('replay: gaps and rejects are named with their line, files are connections of their own', () => {
  const lines = readFileSync(CAPTURE, 'utf8').trim().split('\n');
  const broken = [...lines.slice(0, 3), ...lines.slice(5, 7), '{"seq":"99","topic":"","payload":"c1"}'];
  const capture = file('gap.jsonl', broken.join('\n'));
  const { stdout } = moonroute(['replay', capture, CAPTURE, '--contract', CONTRACT]);
  assert.match(stdout, /line 4: gap-applied at sequence 6/);
  assert.match(stdout, /line 6: unreadable at sequence 99/);
  assert.match(stdout, /cleared 1 × reconnect/);
  const { clears, files } = JSON.parse(moonroute(['replay', capture, '--contract', CONTRACT, '--json']).stdout);
  assert.is(clears.gap, 2); // 3 → 6, and 7 → 99
  assert.equal(files[0].fates, { applied: 4, 'gap-applied': 1, unreadable: 1 });
});

const WORKERS = 'test/fixtures/worker-captures';

test('replay: a worker’s capture needs no contract, and every reason is counted', () => {
  const { status, stdout } = moonroute(['replay', `${WORKERS}/19-sglang.jsonl`]);
  assert.is(status, 0);
  assert.match(stdout, /5 messages of 19-sglang, ranks 0/);
  assert.match(stdout, /events: 11 stored, 1 removed, 1 cleared/);
  assert.match(stdout, /dropped.*: 4 unsupported_ownership, 3 unknown_ownership, 2 ignored_event/);
  assert.match(stdout, /ineligible.*: 1 namespace-mismatch/);
  assert.not.match(stdout, /learned/);
});

test('replay: under a contract workers teach; faults are named with their line, breaks of the sequence counted', () => {
  const args = ['replay', `${WORKERS}/09-group-kinds.jsonl`, `${WORKERS}/20-faults.jsonl`, '--contract', CONTRACT];
  const { stdout } = moonroute(args);
  assert.match(stdout, /ranks 0, 1, 2/);
  assert.match(stdout, /taught nothing under the contract: 3 not-main-group/);
  assert.match(stdout, /line 1: event 1: field-type: token_ids\[7\] is the text "seven"/);
  assert.match(stdout, /line 3: unreadable: batch-rank/);
  assert.match(stdout, /1 × the sequence broke/);
  assert.match(stdout, /3 × a removal could not be read/);
  assert.match(stdout, /learned: 9 hash edges/);
  const { files, edges } = JSON.parse(moonroute([...args, '--json']).stdout);
  assert.equal([edges, files[0].learned.blocks, files[1].counts.unreadable], [9, 6, { 'batch-rank': 1 }]);
  assert.is(files[0].counts.dropped.unlearned_group_idx, 3);
});

test('replay: worker and master together', () => {
  const { stdout } = moonroute(['replay', 'examples/worker.jsonl', CAPTURE, '--contract', CONTRACT]);
  assert.match(stdout, /learned: 4 hash edges/);
  assert.match(stdout, /group 0 \(full_attention\): 4 complete digests, 8 objects/);
});

test('replay: --hashing holds events against the hash rule of the contract', () => {
  const WORKER = 'examples/worker.jsonl';
  const derived = moonroute(['replay', WORKER, '--contract', CONTRACT, '--hashing', 'derived']);
  assert.match(derived.stdout, /derived: 1 event of 1 rank agreed with sha256 with seed "0"\n/);
  assert.not.match(derived.stdout, /learned/);
  const both = moonroute(['replay', WORKER, '--contract', CONTRACT, '--hashing', 'both', '--json']);
  const { derivation, edges, files } = JSON.parse(both.stdout);
  assert.equal([derivation, edges, files[0].learned.blocks], [{ provenRanks: 1, agreed: 1, refuted: null }, 4, 4]);
  const descriptor = JSON.parse(readFileSync(CONTRACT, 'utf8'));
  descriptor.hash.seed_policy = 'pythonhashseed-42';
  const path = file('seed-42.json', JSON.stringify(descriptor));
  assert.match(moonroute(['replay', WORKER, '--contract', path]).stderr, /hash\.seed_policy is "pythonhashseed-42"/);
  const refuted = moonroute(['replay', WORKER, '--contract', path, '--hashing', 'derived']);
  assert.match(refuted.stdout, /derived: refuted\. Of worker worker, rank 0, a block hash is 6ec84ae048faaaa6 where/);
  const ofOther = moonroute(['replay', `${WORKERS}/19-sglang.jsonl`, '--contract', CONTRACT, '--hashing', 'derived']);
  assert.match(ofOther.stdout, /derived: refuted\. Of worker 19-sglang/);
  // Events that tell nothing: those that may not teach, and those of a contract without a main group.
  const quiet = moonroute(['replay', `${WORKERS}/07-raw-salt.jsonl`, '--contract', CONTRACT, '--hashing', 'derived']);
  assert.match(quiet.stdout, /derived: no event tells whether sha256 with seed "0" is right/);
  descriptor.main_event_block_size *= 2;
  const none = file('no-main.json', JSON.stringify(descriptor));
  const blind = moonroute(['replay', WORKER, '--contract', none, '--hashing', 'both']);
  assert.match(blind.stdout, /derived: the contract has no main event group, whose events could tell/);
});

test('replay: a master needs a contract, and what tells nothing must be named', () => {
  assert.match(moonroute(['replay', CAPTURE]).stderr, /is a master's capture: say --contract FILE/);
  const empty = file('empty.jsonl', '{"seq":"0","topic":"","payload":"920090"}\n');
  assert.match(moonroute(['replay', empty]).stderr, /can't be told who published it; say --as store or --as worker/);
  assert.match(moonroute(['replay', empty, '--as', 'worker']).stdout, /1 messages of empty, ranks 0/);
});

test('replay: a capture line that is none names file and line', () => {
  const { status, stderr } = moonroute([
    'replay',
    file('bad.jsonl', '{"seq":"1","topic":"","payload":"zz"}\n'),
    '--contract',
    CONTRACT,
  ]);
  assert.is(status, 1);
  assert.match(stderr, /bad\.jsonl:1: .*hex/);
});

test('contract check: valid, refused by a rule, and as JSON', () => {
  assert.match(moonroute(['contract', 'check', CONTRACT]).stdout, /valid \(vllm-1085b644\)/);
  const descriptor = JSON.parse(readFileSync(CONTRACT, 'utf8'));
  descriptor.coordinator.speculative = true;
  const path = file('speculative.json', JSON.stringify(descriptor));
  const refused = moonroute(['contract', 'check', path]);
  assert.is(refused.status, 1);
  assert.match(refused.stderr, /unsupported speculative or block-drop semantics/);
  const asJson = moonroute(['contract', 'check', path, '--json']);
  assert.is(asJson.status, 1);
  assert.is(JSON.parse(asJson.stdout).code, 'unsupported-speculation');
});

test('contract check: --hashing says what derived digests need, by which rule, and whether events can teach', () => {
  assert.match(moonroute(['contract', 'check', CONTRACT]).stdout, /hash rule sha256, seed "0"; events can teach\n/);
  const descriptor = JSON.parse(readFileSync(CONTRACT, 'utf8'));
  descriptor.hash = { ...descriptor.hash, algorithm: 'sha256_cbor', seed_policy: 'pythonhashseed-42' };
  descriptor.main_event_block_size *= 2;
  const path = file('derived.json', JSON.stringify(descriptor));
  assert.match(moonroute(['contract', 'check', path]).stderr, /refused \(unsupported-hash-contract\)/);
  const derived = moonroute(['contract', 'check', path, '--hashing', 'derived']);
  assert.is(derived.status, 0, derived.stderr);
  assert.match(
    derived.stdout,
    /hash rule sha256_cbor, seed "42"; events can not teach: main GPU event span .* \(contract rule 12\)/,
  );
  const asJson = JSON.parse(moonroute(['contract', 'check', path, '--hashing', 'both', '--json']).stdout);
  assert.is(asJson.valid, true);
  const { hashRule, learnable, mainEventGroup } = asJson.contract;
  assert.equal(
    { hashRule, learnable, mainEventGroup },
    { hashRule: { algorithm: 'sha256_cbor', seed: '42' }, learnable: false, mainEventGroup: null },
  );
  const replies = file('derived-ranks.json', JSON.stringify([{ rank: 0, dp_rank: 0, descriptor }]));
  assert.is(moonroute(['contract', 'check', replies, '--hashing', 'derived']).status, 0);
  const wrong = moonroute(['contract', 'check', path, '--hashing', 'guessed']);
  assert.is.not(wrong.status, 0);
  assert.match(wrong.stderr, /learned, derived, both/);
});

test('contract check: the replies of all ranks', () => {
  const descriptor = JSON.parse(readFileSync(CONTRACT, 'utf8'));
  const replies = [0, 1].map((rank) => ({ rank, dp_rank: 0, descriptor }));
  assert.match(moonroute(['contract', 'check', file('ranks.json', JSON.stringify(replies))]).stdout, /valid/);
  const torn = [replies[0], { ...replies[1], rank: 0 }];
  assert.match(
    moonroute(['contract', 'check', file('torn.json', JSON.stringify(torn))]).stderr,
    /duplicate or unexpected worker rank/,
  );
});

test('hash: anchors that are asserted upstream, from arguments and from standard input', () => {
  const expected = '14643705804678351452';
  const { local, sequence, tail } = JSON.parse(
    moonroute(['hash', '--block-size', '4', '1', '2', '3', '4', '5', '--json']).stdout,
  );
  assert.equal({ local, sequence, tail }, { local: [expected], sequence: [expected], tail: 1 });
  assert.match(moonroute(['hash', '--block-size', '4'], '[1, 2, 3, 4]\n').stdout, new RegExp(expected));
  assert.not.match(
    moonroute(['hash', '--block-size', '4', '--lora', 'x', '1', '2', '3', '4']).stdout,
    new RegExp(expected),
  );
});

test('hash: bad input says what was seen', () => {
  assert.match(moonroute(['hash', '--block-size', '4', 'one']).stderr, /"one" is no token id/);
  assert.match(moonroute(['hash', '--block-size', '0', '1']).stderr, /whole number/);
});

test('every command has a help with an example', () => {
  for (const command of [['oracle'], ['replay'], ['contract', 'check'], ['hash']]) {
    const { status, stdout } = moonroute([...command, '--help']);
    assert.is(status, 0);
    assert.match(stdout, /Examples?:\n {2}moonroute /);
    assert.match(stdout, /--json/);
  }
});

test.run();
