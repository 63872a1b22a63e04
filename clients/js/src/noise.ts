/*
 * Exact samplers, the same as the Python package's byte for byte: uniform bytes in, whole numbers
 * with exactly the stated law out. No float decides a sample.
 *
 * Reference: C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy",
 * NeurIPS 2020 (CKS20), Algorithms 1 to 3.
 */

import { littleNumber } from './bytes.js';
import type { RandomBytes } from './coins.js';
import { bits, Fraction, squareRoot } from './fraction.js';

const DIGITS = 3;
const BASE = 256n;

/** Return bits that are 1 with exactly `probability`: a byte each, and more where bytes are tied. */
export function bernoulli(draw: RandomBytes, probability: Fraction, size: number): Uint8Array {
  if (probability.compare(1) === 0) return new Uint8Array(size).fill(1);
  const { values, rests } = leadingDigits(probability);
  const spare = rests[0]!.numerator > 0n ? Math.floor(size / 128) + 32 : 0;
  const data = draw(size + spare);
  const found = Uint8Array.from(data.subarray(0, size), (byte) => Number(byte < values[0]!));
  const { ties, compared } = settle(data, size, values, found);
  const done = ties.length === 0 || (compared === values.length && !rests.at(-1)!.numerator);
  data.fill(0);
  if (done) return found;
  const decided = bernoulli(draw, rests[compared - 1]!, ties.length);
  ties.forEach((place, i) => (found[place] = decided[i]!));
  decided.fill(0);
  return found;
}

/** Compare tied coins digit by digit, while there are spare bytes for all of them. */
function settle(data: Uint8Array, size: number, values: number[], found: Uint8Array) {
  let ties = Array.from({ length: size }, (_, i) => i).filter((i) => data[i] === values[0]);
  let [used, compared] = [size, 1];
  while (ties.length && compared < values.length && used + ties.length <= data.length) {
    const spare = data.subarray(used, used + ties.length);
    used += ties.length;
    const digit = values[compared++]!;
    ties.forEach((place, i) => (found[place] = Number(spare[i]! < digit)));
    ties = ties.filter((_, i) => spare[i] === digit);
  }
  return { ties, compared };
}

/** Return up to three digits of a probability below 1 in base 256, each with the rest after it. */
function leadingDigits(probability: Fraction): { values: number[]; rests: Fraction[] } {
  const values: number[] = [];
  const rests: Fraction[] = [];
  let left = probability;
  while (values.length < DIGITS && (left.numerator > 0n || values.length === 0)) {
    const scaled = left.numerator * BASE;
    values.push(Number(scaled / left.denominator));
    left = new Fraction(scaled % left.denominator, left.denominator);
    rests.push(left);
  }
  return { values, rests };
}

const LEAST_BITS = 18;
const WORD_BITS = 62;
const WORDS = 40;

/** Return a uniform number of so many binary digits; `width` bytes of the source are taken. */
function uniformBits(draw: RandomBytes, digits: number, size: number): bigint[] {
  const width = digits <= WORD_BITS ? [1, 2, 4, 8].find((one) => digits <= 8 * one)! : Math.ceil(digits / 8);
  const mask = (1n << BigInt(digits)) - 1n;
  const data = draw(size * width);
  const words = Array.from(
    { length: size },
    (_, i) => littleNumber(data.subarray(i * width, (i + 1) * width)) & mask,
  );
  data.fill(0);
  return words;
}

/** Return a number uniform on 0 .. bound - 1, by rejection from the next power of two. */
function uniformBelow(draw: RandomBytes, bound: bigint): bigint {
  for (;;) {
    const [value] = uniformBits(draw, bits(bound - 1n), 1);
    if (value! < bound) return value!;
  }
}

type Step = 'offset' | 'accept' | 'heads' | 'sign';

/** A sample of a discrete Laplace law that is being made out of uniform words. */
class LaplaceSample {
  #step: Step = 'offset';
  #offset = 0n;
  #heads = 0n;
  #k = 1n;
  #below = 1n;
  readonly #scale: bigint;
  readonly #span: bigint;

  constructor(scale: bigint) {
    this.#scale = scale;
    this.#span = 1n;
    while (this.#span < scale) this.#span *= 2n;
  }

  /** Take two words; return the sample once it is made. */
  take(one: bigint, second: bigint): bigint | null {
    const first = one & (this.#span - 1n);
    if (this.#step === 'offset') {
      if (first < this.#scale) [this.#offset, this.#step] = [first, 'accept'];
      return null;
    }
    if (this.#step === 'sign') return this.#signed(second);
    this.#toss(first, second & (this.#below - 1n));
    return null;
  }

  /** End with a sign; a negative 0 begins anew. */
  #signed(second: bigint): bigint | null {
    const magnitude = this.#heads * this.#scale + this.#offset;
    const negative = (second & 1n) === 1n;
    [this.#step, this.#heads] = ['offset', 0n];
    return magnitude === 0n && negative ? null : negative ? -magnitude : magnitude;
  }

  /** Toss one coin of `gamma/k`, where gamma is offset/scale, or 1 (CKS20, Algorithm 1). */
  #toss(first: bigint, chosen: bigint): void {
    const unit = this.#step === 'heads';
    if (chosen >= this.#k || !(unit || first < this.#scale)) return;
    if (chosen === 0n && (unit || first < this.#offset)) {
      this.#k += 1n;
      if (this.#below < this.#k) this.#below *= 2n;
      return;
    }
    const success = this.#k % 2n === 1n;
    this.#k = this.#below = 1n;
    if (this.#step === 'accept') this.#step = success ? 'heads' : 'offset';
    else if (success) this.#heads += 1n;
    else this.#step = 'sign';
  }
}

/** Return a whole number k with a probability proportional to `exp(-abs(k)/scale)`. */
function discreteLaplace(draw: RandomBytes, scale: bigint): bigint {
  const digits = Math.max(bits(scale - 1n), LEAST_BITS);
  const sample = new LaplaceSample(scale);
  let words: bigint[] = [];
  for (;;) {
    if (words.length < 2) words = words.concat(uniformBits(draw, digits, 2 * WORDS));
    const made = sample.take(words.shift()!, words.shift()!);
    if (made !== null) return made;
  }
}

/** Return a coin of probability `exp(-numerator/denominator)`. */
function bernoulliExp(draw: RandomBytes, numerator: bigint, denominator: bigint): boolean {
  let heads = unitExp(draw, numerator % denominator, denominator);
  for (let left = numerator / denominator; heads && left > 0n; left--) heads = unitExp(draw, 1n, 1n);
  return heads;
}

/** Return the same for exponents of at most 1 (CKS20, Algorithm 1). */
function unitExp(draw: RandomBytes, numerator: bigint, denominator: bigint): boolean {
  for (let k = 1n; ; k++) {
    const uniform = uniformBelow(draw, denominator);
    const oneInK = uniformBelow(draw, k);
    if (uniform >= numerator || oneInK !== 0n) return k % 2n === 1n;
  }
}

/** Return a whole number k with a probability proportional to `exp(-k**2/(2*variance))`. */
export function discreteGaussian(draw: RandomBytes, variance: Fraction): bigint {
  const { numerator, denominator } = variance;
  const scale = squareRoot(numerator / denominator) + 1n;
  for (;;) {
    const proposed = discreteLaplace(draw, scale);
    const distance = (proposed < 0n ? -proposed : proposed) * denominator * scale - numerator;
    const whole = 2n * numerator * denominator * scale * scale;
    if (bernoulliExp(draw, distance * distance, whole)) return proposed;
  }
}
