/*
 * Bits as shares for two servers. An encrypted value is four ciphertexts: two hold the leader's
 * share of the bit and of the proof, two the seed of the helper's.
 */

import { sha256 } from '@noble/hashes/sha2.js';

import { concat, entries, numberOf, unhex, utf8 } from './bytes.js';
import type { Coins } from './coins.js';
import { CIPHERTEXT_BYTES, type Encryption, EncryptionKey } from './elgamal.js';
import { embed, PAYLOAD_BYTES } from './embedding.js';
import { Prio3Count, RANDOM_BYTES } from './prio3.js';

export const SERVER_BYTES = 2 * CIPHERTEXT_BYTES;
export const SHARED_BYTES = 2 * SERVER_BYTES;

const ROOM = 2 * PAYLOAD_BYTES;

/** The public keys of two servers, and what they have agreed on. */
export interface TwoServers {
  readonly leader: string;
  readonly helper: string;
  readonly collusion: 'none' | 'one-server';
  readonly batch: number;
}

/** Encrypts bits to two servers, as shares. */
export class Sharing implements Encryption {
  readonly entryBytes = SHARED_BYTES;
  readonly #prio: Prio3Count;
  readonly #leader: EncryptionKey;
  readonly #helper: EncryptionKey;

  constructor(context: Uint8Array, servers: TwoServers) {
    this.#prio = new Prio3Count(context);
    [this.#leader, this.#helper] = payloadKeys(servers);
  }

  encrypt(bits: readonly number[], coins: Coins): Uint8Array {
    const random = coins.secret(bits.length * RANDOM_BYTES);
    const seeds = entries(random, RANDOM_BYTES);
    const shares = bits.map((bit, i) => this.#prio.shard(BigInt(bit), seeds[i]!));
    for (const each of [random, ...seeds]) each.fill(0);
    const points = [
      embedded(shares.map((share) => share.leader)),
      embedded(shares.map((share) => share.helper)),
    ] as const;
    try {
      return woven(
        this.#leader.encryptPoints(points[0], coins),
        this.#helper.encryptPoints(points[1], coins),
      );
    } finally {
      for (const each of points) each.fill(0);
      for (const { leader, helper } of shares) for (const each of [leader, helper]) each.fill(0);
    }
  }

  rerandomise(row: Uint8Array, coins: Coins): Uint8Array {
    const [leader, helper] = split(row);
    return woven(this.#leader.rerandomise(leader, coins), this.#helper.rerandomise(helper, coins));
  }

  check(row: Uint8Array): void {
    for (const half of split(row)) this.#leader.check(half);
  }
}

/** Return the halves of a row for the leader and for the helper. */
export function split(row: Uint8Array): [Uint8Array, Uint8Array] {
  entries(row, SHARED_BYTES);
  const halves = entries(row, SERVER_BYTES);
  const every = (parity: number) => concat(...halves.filter((_, i) => i % 2 === parity));
  return [every(0), every(1)];
}

function woven(leader: Uint8Array, helper: Uint8Array): Uint8Array {
  const others = entries(helper, SERVER_BYTES);
  return concat(...entries(leader, SERVER_BYTES).flatMap((each, i) => [each, others[i]!]));
}

/** Return two points for each payload, which end with the beginning of its hash. */
function embedded(payloads: readonly Uint8Array[]): Uint8Array {
  const held = concat(...payloads.map((each) => concat(each, sha256(each)).subarray(0, ROOM)));
  const found = concat(...entries(held, PAYLOAD_BYTES).map(embed));
  held.fill(0);
  return found;
}

/** Return the keys to which the shares of the leader and of the helper are encrypted. */
function payloadKeys(servers: TwoServers): [EncryptionKey, EncryptionKey] {
  const names = [servers.leader, servers.helper];
  const [leader, helper] = names.map((name) => new EncryptionKey(unhex(name)));
  if (servers.collusion === 'none') return [leader!, helper!];
  const [one, other] = names.map((name) => factor(servers, name));
  const joint = leader!.joined(one!, helper!, other!);
  return [joint, joint];
}

/** Return the factor of one of the keys, hashed from both: no server can choose a rogue key. */
function factor(servers: TwoServers, name: string): bigint {
  const keys = unhex(servers.leader + servers.helper + name);
  return numberOf(sha256(concat(utf8('panprivacy joint key\n'), keys)));
}
