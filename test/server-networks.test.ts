// Addresses and networks of workers that register from outside: every spelling of an address is the address, and special ones need to be named alone.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { LOOPBACK, Networks, parseAddress } from '../src/server/networks.js';

const ADDRESSES: readonly (readonly [string, string | null])[] = [
  ['10.1.2.3', '4 10.1.2.3'],
  ['::ffff:10.1.2.3', '4 10.1.2.3'],
  ['::FFFF:0a01:0203', '4 10.1.2.3'],
  ['0:0:0:0:0:ffff:a9fe:a9fe', '4 169.254.169.254'],
  ['::1', '6 ::1'],
  ['::', '6 ::'],
  ['fd00:0:0:0:0:0:0:1', '6 fd00::1'],
  ['64:ff9b::169.254.169.254', '6 64:ff9b::a9fe:a9fe'],
  ['fe80::1%eth0', null],
  ['010.1.2.3', null],
  ['10.1.2', null],
  ['0x7f.0.0.1', null],
  ['2130706433', null],
  ['worker', null],
  ['', null],
];

for (const [text, expected] of ADDRESSES) {
  test(`address ${JSON.stringify(text)}`, () => {
    const address = parseAddress(text);
    assert.is(address === null ? null : `${address.family} ${address.text}`, expected);
  });
}

/** Networks, an address, and whether it is allowed. */
const RULES: readonly (readonly [readonly string[], string, boolean])[] = [
  [['10.0.0.0/8'], '10.255.255.255', true],
  [['10.0.0.0/8'], '11.0.0.0', false],
  [['10.0.0.0/8'], '9.255.255.255', false],
  [['10.7.7.7/8'], '10.0.0.1', true], // what stands behind the prefix does not matter
  [['10.0.0.0/8'], '::ffff:10.0.0.1', true],
  [['::ffff:10.0.0.0/104'], '10.0.0.1', true],
  [['::ffff:10.0.0.0/104'], '11.0.0.1', false],
  [['10.0.0.5/32'], '10.0.0.5', true],
  [['10.0.0.5/32'], '10.0.0.4', false],
  [['0.0.0.0/0'], '8.8.8.8', true],
  [['0.0.0.0/0'], '::1', false], // another family
  [['::/0'], '10.0.0.1', false],
  [['::/0'], 'fd00::1', true],
  [['fd00::/8'], 'fd12:3456::1', true],
  [['fd00::/8'], 'fe00::1', false],
  [['fd00::/9'], 'fd80::1', false],
  [LOOPBACK, '127.9.9.9', true],
  [LOOPBACK, '::1', true],
  [LOOPBACK, '10.0.0.1', false],
  [[], '127.0.0.1', false],
  // Special ones.
  [['0.0.0.0/0'], '169.254.169.254', false],
  [['169.254.0.0/16'], '169.254.169.254', false],
  [['169.254.169.254/31'], '169.254.169.254', false],
  [['169.254.169.254/32'], '169.254.169.254', true],
  [['0.0.0.0/0'], '::ffff:169.254.169.254', false],
  [['0.0.0.0/0'], '0.0.0.0', false],
  [['0.0.0.0/0'], '100.100.100.200', false],
  [['0.0.0.0/0'], '168.63.129.16', false],
  [['0.0.0.0/0'], '224.0.0.1', false],
  [['0.0.0.0/0'], '255.255.255.255', false],
  [['::/0'], '::', false],
  [['::/0'], 'fe80::1', false],
  [['fe80::1/128'], 'fe80::1', true],
  [['::/0'], 'fd00:ec2::254', false],
  [['fd00::/8'], 'fd00:ec2::254', false],
  [['::/0'], 'ff02::1', false],
  [['::/0'], '64:ff9b::a9fe:a9fe', false], // NAT64 of 169.254.169.254
  [['::/0'], '2002:a9fe:a9fe::1', false], // 6to4 of it
  [['::/0'], '64:ff9b::808:808', true],
];

for (const [networks, text, allowed] of RULES) {
  test(`${text} is ${allowed ? 'allowed' : 'refused'} by ${networks.join(' ') || 'no network'}`, () => {
    const why = new Networks(networks).refusal(parseAddress(text)!);
    assert.is(why === null, allowed, why ?? '');
  });
}

test('a refusal says the address and what would allow it', () => {
  const why = new Networks(['0.0.0.0/0']).refusal(parseAddress('::ffff:a9fe:a9fe')!);
  assert.match(why!, /169\.254\.169\.254 is link-local.*169\.254\.169\.254\/32/);
});

for (const network of [
  '10.0.0.0',
  '10.0.0.0/33',
  '::/129',
  'x/8',
  '10.0.0.0/-1',
  '10.0.0.0/8/8',
  '::ffff:0:0/90',
  '',
]) {
  test(`no network: ${JSON.stringify(network)}`, () => {
    assert.throws(
      () => new Networks([network]),
      (error: { code: string }) => error.code === 'network',
    );
  });
}

test.run();
