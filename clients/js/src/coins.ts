import { PlanError } from './errors.js';
import { Fraction } from './fraction.js';
import { bernoulli, discreteGaussian } from './noise.js';

/** Give uniform random bytes: the one place where randomness comes in. */
export type RandomBytes = (size: number) => Uint8Array;

/** A source of independent samples with exact laws. */
export interface Coins {
  /** Return bits that are 1 with `probability`. */
  bernoulli(probability: Fraction, size: number): Uint8Array;
  /** Return a whole number k with a probability proportional to `exp(-k**2/(2*variance))`. */
  discreteGaussian(variance: Fraction): bigint;
  /** Return uniform bytes that may be public, such as the name of a report. */
  key(size: number): Uint8Array;
  /** Return uniform bytes that are secret. */
  secret(size: number): Uint8Array;
}

/** Exact coins made from uniform bytes. Each call asks `open` for a stream of its own. */
export class ByteCoins implements Coins {
  readonly #open: () => RandomBytes;

  constructor(open: () => RandomBytes) {
    this.#open = open;
  }

  bernoulli(probability: Fraction, size: number): Uint8Array {
    return bernoulli(this.#open(), probability, size);
  }

  discreteGaussian(variance: Fraction): bigint {
    return discreteGaussian(this.#open(), variance);
  }

  key(size: number): Uint8Array {
    return this.#open()(size);
  }

  secret(size: number): Uint8Array {
    return this.#open()(size);
  }
}

const MOST_AT_ONCE = 65_536;

/**
 * Return coins of the system's WebCrypto.
 *
 * @throws PlanError where there is none: nothing weaker takes its place.
 */
export function systemCoins(): Coins {
  const source = globalThis.crypto;
  if (typeof source?.getRandomValues !== 'function') {
    throw new PlanError('there is no WebCrypto here: a device needs it for its randomness');
  }
  const draw = (size: number) => {
    const drawn = new Uint8Array(size);
    for (let at = 0; at < size; at += MOST_AT_ONCE) {
      source.getRandomValues(drawn.subarray(at, at + MOST_AT_ONCE));
    }
    return drawn;
  };
  return new ByteCoins(() => draw);
}
