/* Exponential ElGamal over secp256k1: (r G, r H + m G), two points of 33 bytes. */

import { sha256 } from '@noble/hashes/sha2.js';

import { entries, numberOf, utf8 } from './bytes.js';
import type { Coins } from './coins.js';
import { InputError } from './errors.js';
import * as group from './group.js';
import { POINT_BYTES, type Point } from './group.js';

export const CIPHERTEXT_BYTES = 2 * POINT_BYTES;

const SHIFT = numberOf(sha256(utf8('panprivacy: moves values')));
const BITS = [group.ZERO, group.BASE];

/** The operations of a device on encrypted values, which it cannot decrypt. */
export interface Encryption {
  /** Number of bytes of one encrypted value. */
  readonly entryBytes: number;
  /** Return a row of fresh encryptions of bits, in the same steps for 0 and 1. */
  encrypt(bits: readonly number[], coins: Coins): Uint8Array;
  /** Return a row of the same values, as if each were fresh. */
  rerandomise(row: Uint8Array, coins: Coins): Uint8Array;
  /** Throw `InputError` if this is no row of ciphertexts. */
  check(row: Uint8Array): void;
}

/** The public key, which encrypts. Every point that comes in is checked. */
export class EncryptionKey implements Encryption {
  readonly entryBytes = CIPHERTEXT_BYTES;
  readonly point: Point;
  #multiples: group.Multiples | null = null;

  constructor(encoded: Uint8Array) {
    if (encoded.length !== POINT_BYTES) {
      throw new InputError(`a public key has ${POINT_BYTES} bytes, the compressed form of a point`);
    }
    this.point = group.parse(encoded)[0]!;
  }

  encrypt(bits: readonly number[], coins: Coins): Uint8Array {
    return this.#masked([], bits.map((bit) => BITS[bit]!), coins);
  }

  /** Return a fresh encryption of any whole number, in the same steps for all. */
  encryptNumber(value: bigint, coins: Coins): Uint8Array {
    const moved = group.multiple(group.BASE, value + SHIFT);
    return this.#masked([], [moved.add(group.multiple(group.BASE, -SHIFT))], coins);
  }

  /** Return a fresh ciphertext of each point. */
  encryptPoints(points: Uint8Array, coins: Coins): Uint8Array {
    return this.#masked([], group.parse(points), coins);
  }

  rerandomise(row: Uint8Array, coins: Coins): Uint8Array {
    const [first, second] = parsed(row);
    return this.#masked(first, second, coins);
  }

  check(row: Uint8Array): void {
    parsed(row);
  }

  /** Return an encryption of the sum of all entries of a row. */
  total(row: Uint8Array): Uint8Array {
    const sums = parsed(row).map((points) => points.reduce((one, other) => one.add(other)));
    if (sums.some((each) => each.is0())) {
      throw new InputError('the sum has no encoding: the state is damaged');
    }
    return group.encode(sums);
  }

  /** Return the key whose secret is the sum of both, each times its factor. */
  joined(factor: bigint, other: EncryptionKey, otherFactor: bigint): EncryptionKey {
    const terms = [group.multiple(this.point, factor), group.multiple(other.point, otherFactor)];
    const sum = terms[0]!.add(terms[1]!);
    if ([...terms, sum].some((each) => each.is0())) {
      throw new InputError('the keys cancel each other out: make new ones');
    }
    return new EncryptionKey(group.encode([sum]));
  }

  /** Add a fresh ciphertext of 0 to each pair; draw again if a sum has no encoding. */
  #masked(first: readonly Point[], second: readonly Point[], coins: Coins): Uint8Array {
    this.#multiples ??= new group.Multiples(this.point);
    const multiples = this.#multiples;
    for (;;) {
      const nonces = group.drawScalars(coins, second.length);
      const pairs = nonces.flatMap((nonce, i) => {
        const one = group.ofBase().by(nonce);
        const other = multiples.by(nonce).add(second[i]!);
        nonce.fill(0);
        return [first[i] ? one.add(first[i]!) : one, other];
      });
      if (!pairs.some((each) => each.is0())) return group.encode(pairs);
    }
  }
}

/** Return the points of a row: all that come first in a ciphertext, and all that come second. */
function parsed(row: Uint8Array): [Point[], Point[]] {
  const halves = entries(row, CIPHERTEXT_BYTES).map((each) => group.parse(each));
  return [halves.map((each) => each[0]!), halves.map((each) => each[1]!)];
}

