/*
 * Prio3Count for two servers: a bit as two shares, with a proof that it is 0 or 1.
 *
 * Reference: draft-irtf-cfrg-vdaf-18, sections 6.2.1 and 7; RFC 9861 for TurboSHAKE128.
 */

import { turboshake128 } from '@noble/hashes/sha3-addons.js';

import { bigEndian, concat, littleEndian, littleNumber } from './bytes.js';

export const SEED_BYTES = 32;
export const RANDOM_BYTES = 2 * SEED_BYTES;
export const LEADER_BYTES = 48;
export const HELPER_BYTES = SEED_BYTES;

const MODULUS = 2n ** 64n - 2n ** 32n + 1n;
const HALF = (MODULUS + 1n) / 2n;
/** The draft's root of order 4. */
const ROOT = 281474976710656n;
const ELEMENT_BYTES = 8;
const XOF_DOMAIN = 1;

const enum Usage {
  Measurement = 1,
  Proof = 2,
  ProveRandomness = 4,
}

const ONE_PROOF = Uint8Array.of(1);
const HELPER = Uint8Array.of(1);

/** Shards bits for one context, which names the task. */
export class Prio3Count {
  readonly #context: Uint8Array;

  constructor(context: Uint8Array) {
    this.#context = context;
  }

  /** Return the leader's share of a bit and of its proof, and the helper's seed. */
  shard(bit: bigint, random: Uint8Array): { leader: Uint8Array; helper: Uint8Array } {
    const [helper, prove] = [random.slice(0, SEED_BYTES), random.slice(SEED_BYTES, RANDOM_BYTES)];
    const [a, b] = this.#elements(Usage.ProveRandomness, prove, ONE_PROOF, 2) as [bigint, bigint];
    const plain = [bit, ...proof(bit, a, b)];
    const masks = [
      ...this.#elements(Usage.Measurement, helper, HELPER, 1),
      ...this.#elements(Usage.Proof, helper, concat(ONE_PROOF, HELPER), 5),
    ];
    prove.fill(0);
    const shares = plain.map((each, i) => reduced(each - masks[i]!));
    return { leader: concat(...shares.map((each) => littleEndian(each, ELEMENT_BYTES))), helper };
  }

  /** Return the first field elements of the stream of a seed, for one use. */
  #elements(usage: Usage, seed: Uint8Array, binder: Uint8Array, width: number): bigint[] {
    const tag = concat(Uint8Array.of(18, 0), bigEndian(1, 4), bigEndian(usage, 2), this.#context);
    const size = [littleEndian(tag.length, 2), Uint8Array.of(seed.length)] as const;
    const stream = turboshake128.create({ D: XOF_DOMAIN });
    const absorbed = concat(size[0], tag, size[1], seed, binder);
    stream.update(absorbed);
    absorbed.fill(0);
    const found: bigint[] = [];
    while (found.length < width) {
      const word = littleNumber(stream.xof(ELEMENT_BYTES));
      if (word < MODULUS) found.push(word);
    }
    return found;
  }
}

function reduced(value: bigint): bigint {
  return ((value % MODULUS) + MODULUS) % MODULUS;
}

/** Return the proof that a bit is one: two seeds, and a product of lines at 1, i and -1. */
function proof(bit: bigint, a: bigint, b: bigint): bigint[] {
  const middle = atRoot(a, bit) * atRoot(b, bit);
  return [a, b, reduced(a * b), reduced(middle), reduced(bit * bit)];
}

/** Return the value at i of the line that is `one` at 1 and `other` at -1. */
function atRoot(one: bigint, other: bigint): bigint {
  return reduced((one + other + (one - other) * ROOT) * HALF);
}
