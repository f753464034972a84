// Which addresses a worker may have that somebody registers over HTTP: those of named networks (CIDR), and never the machine's own special ones,
// unless exactly named. Pure: names are resolved elsewhere, and only addresses are judged.
import { isIPv4, isIPv6 } from 'node:net';
import { ConfigError } from '../errors.js';

/** An IP address. IPv6 addresses that stand for IPv4 ones (`::ffff:10.0.0.1`) are those. */
export interface Address {
  readonly family: 4 | 6;
  readonly value: bigint;
  /** As a URL has it, without brackets. */
  readonly text: string;
}

interface Network {
  readonly family: 4 | 6;
  readonly first: bigint;
  readonly prefix: number;
}

const BITS = { 4: 32, 6: 128 } as const;
/** `::ffff:0:0/96`: IPv4 addresses written as IPv6 ones. */
const MAPPED = 0xffffn;
const LOW_32 = 0xffff_ffffn;
const MAPPED_PREFIX = 96;

/** Where every process of the machine listens. */
export const LOOPBACK: readonly string[] = ['127.0.0.0/8', '::1/128'];

/**
 * What no wider network allows: nobody's worker is there, and clouds answer credentials at some of them. They can still be named one by one.
 */
const SPECIAL = [
  ['0.0.0.0/8', 'unspecified'],
  ['169.254.0.0/16', 'link-local, where clouds serve metadata'],
  ['100.100.100.200/32', "a cloud's metadata service"],
  ['168.63.129.16/32', "a cloud's host service"],
  ['192.0.0.0/24', "reserved, and a cloud's metadata service"],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved'],
  ['::/128', 'unspecified'],
  ['fe80::/10', 'link-local'],
  ['fd00:ec2::254/128', "a cloud's metadata service"],
  ['ff00::/8', 'multicast'],
].map(([network, words]) => ({ network: parseNetwork(network!), words: words! }));

/** Prefixes behind which an IPv4 address stands that a translator may lead to: 6to4 and NAT64. */
const CARRIERS = [
  { network: parseNetwork('2002::/16'), shift: 80n },
  { network: parseNetwork('64:ff9b::/96'), shift: 0n },
];

/** Reads an address; null for what is none. Zones (`fe80::1%eth0`) are not read. */
export function parseAddress(text: string): Address | null {
  if (isIPv4(text)) return v4(v4Value(text));
  if (!isIPv6(text) || text.includes('%')) return null;
  const value = v6Value(text);
  return value >> 32n === MAPPED ? v4(value & LOW_32) : { family: 6, value, text: v6Text(value) };
}

/** Allows what its networks hold. */
export class Networks {
  readonly #networks: readonly Network[];

  /** @throws ConfigError `network` */
  constructor(networks: readonly string[]) {
    this.#networks = networks.map(parseNetwork);
  }

  /** Why an address is not allowed, for people; null when it is. */
  refusal(address: Address): string | null {
    const within = this.#networks.filter((network) => contains(network, address));
    if (within.some(({ family, prefix }) => prefix === BITS[family])) return null;
    const special = SPECIAL.find(({ network }) => standsFor(address).some((each) => contains(network, each)));
    if (special !== undefined) {
      return `${address.text} is ${special.words}; it would have to be named alone, as ${address.text}/${BITS[address.family]}`;
    }
    return within.length > 0 ? null : `${address.text} is in none of the networks that are allowed`;
  }
}

/**
 * Reads `ADDRESS/PREFIX`. What stands behind the prefix does not matter.
 * @throws ConfigError `network`
 */
function parseNetwork(text: string): Network {
  const [, host = '', digits = ''] = /^([0-9A-Fa-f:.]+)\/(\d{1,3})$/.exec(text) ?? [];
  const address = parseAddress(host);
  // Of a mapped network the prefix counts in IPv6 bits.
  const shift = address?.family === 4 && host.includes(':') ? MAPPED_PREFIX : 0;
  const prefix = Number(digits) - shift;
  if (address !== null && prefix >= 0 && prefix <= BITS[address.family]) {
    const free = BigInt(BITS[address.family] - prefix);
    return { family: address.family, first: (address.value >> free) << free, prefix };
  }
  throw new ConfigError('network', `a network is ${JSON.stringify(text)}; give ADDRESS/PREFIX, such as 10.0.0.0/8`);
}

function contains({ family, first, prefix }: Network, address: Address): boolean {
  const free = BigInt(BITS[family] - prefix);
  return family === address.family && address.value >> free === first >> free;
}

/** The address, and the one that it carries. */
function standsFor(address: Address): Address[] {
  const carrier = CARRIERS.find(({ network }) => contains(network, address));
  return carrier === undefined ? [address] : [address, v4((address.value >> carrier.shift) & LOW_32)];
}

function v4(value: bigint): Address {
  const text = [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join('.');
  return { family: 4, value, text };
}

function v4Value(text: string): bigint {
  return text.split('.').reduce((value, part) => (value << 8n) | BigInt(part), 0n);
}

/** Of a text that `isIPv6` takes. */
function v6Value(text: string): bigint {
  const last = text.slice(text.lastIndexOf(':') + 1);
  const plain = last.includes('.') ? text.slice(0, -last.length) + dottedGroups(last) : text;
  const [head = '', tail] = plain.split('::');
  const before = groupsOf(head);
  const behind = tail === undefined ? [] : groupsOf(tail);
  const between = new Array<string>(8 - before.length - behind.length).fill('0');
  return [...before, ...between, ...behind].reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}

function groupsOf(text: string): string[] {
  return text === '' ? [] : text.split(':');
}

function dottedGroups(dotted: string): string {
  const value = v4Value(dotted);
  return `${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`;
}

/** In the form that URLs give it. */
function v6Text(value: bigint): string {
  const groups = Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16));
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}
