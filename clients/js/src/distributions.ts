/*
 * Distributions of sums over many devices, in floats of bounded error, and their divergence. By
 * them a device checks that the noise of a task keeps its promise; no draw uses them.
 */

import { expBelow } from './exact.js';
import { Fraction } from './fraction.js';

/** More than a rounding of a float can be wrong by, relatively, and than one of `exp` can. */
const U = 2 ** -51;
const LOG_TAIL = 65;
const DROPPED = 1e-28;
const SMOOTH = 4;

/** A distribution on whole numbers, nearly all of it; each weight is within a relative `error`. */
export interface Law {
  readonly first: number;
  readonly weights: Float64Array;
  readonly missing: number;
  readonly error: number;
}

const total = (weights: Float64Array) => weights.reduce((sum, each) => sum + each, 0);

/** Return the law of the sum of two independent numbers. */
export function sum(one: Law, other: Law): Law {
  const weights = new Float64Array(one.weights.length + other.weights.length - 1);
  one.weights.forEach((weight, i) => {
    for (let j = 0; j < other.weights.length; j++) weights[i + j]! += weight * other.weights[j]!;
  });
  const terms = Math.min(one.weights.length, other.weights.length);
  return trimmed({
    first: one.first + other.first,
    weights,
    missing: one.missing + other.missing,
    error: one.error + other.error + (terms + 4) * U,
  });
}

/** Return the law of the sum of `count` independent numbers. */
function times(law: Law, count: number): Law {
  let found = bernoulli(new Fraction(0));
  let power = law;
  for (let left = count; left > 0; left = Math.floor(left / 2)) {
    if (left % 2) found = sum(found, power);
    if (left > 1) power = sum(power, power);
  }
  return found;
}

/** Return the same without ends that hold nearly nothing. */
function trimmed(law: Law): Law {
  let low = 0;
  for (let left = law.weights[0]!; left < DROPPED; left += law.weights[++low]!);
  let high = law.weights.length - 1;
  for (let right = law.weights[high]!; right < DROPPED; right += law.weights[--high]!);
  const weights = law.weights.slice(low, high + 1);
  return { ...law, first: law.first + low, weights, missing: law.missing + 3 * DROPPED };
}

/** Return the law of 1 with this probability, else 0. */
export function bernoulli(probability: Fraction): Law {
  const one = probability.toNumber();
  const zero = new Fraction(1).minus(probability).toNumber();
  return { first: 0, weights: Float64Array.of(zero, one), missing: 0, error: U };
}

/** Return the law of the number of ones among `count` coins, outward from the most likely one. */
export function binomial(count: number, probability: Fraction): Law {
  const chance = probability.toNumber();
  const none = new Fraction(1).minus(probability);
  if (count === 0 || chance === 0 || none.numerator === 0n) {
    const first = none.numerator === 0n ? count : 0;
    return { first, weights: Float64Array.of(1), missing: 0, error: 0 };
  }
  const third = LOG_TAIL / 3;
  const variance = count * chance * none.toNumber();
  const reach = Math.ceil(third + Math.sqrt(third ** 2 + 2 * LOG_TAIL * variance)) + 1;
  const mode = Math.round(count * chance);
  const [low, high] = [Math.max(mode - reach, 0), Math.min(mode + reach, count)];
  const odds = probability.over(none).toNumber();
  const weights = new Float64Array(high - low + 1);
  weights[mode - low] = 1;
  for (let k = mode; k < high; k++) {
    weights[k + 1 - low] = weights[k - low]! * (((count - k) / (k + 1)) * odds);
  }
  for (let k = mode; k > low; k--) {
    weights[k - 1 - low] = weights[k - low]! * (k / ((count - k + 1) * odds));
  }
  const missing = low > 0 || high < count ? 2 * Math.exp(-LOG_TAIL) : 0;
  return normalised(low, weights, missing, 6 * U);
}

/** Return the law of whole numbers with `P(k)` proportional to `exp(-k**2/(2*variance))`. */
function discreteGaussian(variance: number): Law {
  const reach = Math.ceil(Math.sqrt(2 * LOG_TAIL * variance)) + 1;
  const weights = Float64Array.from({ length: 2 * reach + 1 }, (_, i) =>
    Math.exp(-((i - reach) ** 2) / (2 * variance)),
  );
  return normalised(-reach, weights, 2 * Math.exp(-LOG_TAIL), 4 * LOG_TAIL * U);
}

/** Return the law of the sum of independent discrete Gaussians. */
export function gaussianSum(variance: Fraction, count: number): Law {
  const each = variance.toNumber();
  if (count === 1 || variance.compare(SMOOTH) < 0) return times(discreteGaussian(each), count);
  const found = discreteGaussian(each * count);
  const ripple = 5 * count * Math.exp(-(Math.PI ** 2) * each);
  return { ...found, error: found.error + ripple };
}

function normalised(first: number, weights: Float64Array, missing: number, step: number): Law {
  const error = 2 * (weights.length * step + missing + 4 * U);
  const whole = total(weights);
  return { first, weights: weights.map((each) => each / whole), missing, error };
}

/** Return a bound, from above, on the sum of `max(P - e**epsilon Q, 0)` over pairs P, Q. */
export function hockeyStick(epsilon: Fraction, ...pairs: readonly (readonly [Law, Law])[]): number {
  const least = expBelow(epsilon).toNumber() * (1 - 2 * U);
  const missing = pairs.reduce((found, [one]) => found + one.missing, 0);
  const error = pairs.reduce((found, [one, other]) => found + one.error + other.error + 4 * U, 0);
  const [[over, under], ...rest] = pairs.map(aligned) as [Float64Array, Float64Array][];
  const second = rest[0] ?? [Float64Array.of(1), Float64Array.of(1)];
  let apart = 0;
  over.forEach((p, i) => {
    for (let j = 0; j < second[0].length; j++) {
      const mine = p * second[0][j]! * (1 + error);
      const gap = mine - under[i]! * second[1][j]! * least * (1 - error);
      if (gap > 0) apart += gap;
    }
  });
  return Math.min(apart * (1 + over.length * second[0].length * U) + missing, 1);
}

/** Return the weights of both laws on one range that holds them. */
function aligned([one, other]: readonly [Law, Law]): [Float64Array, Float64Array] {
  const first = Math.min(one.first, other.first);
  const end = Math.max(one.first + one.weights.length, other.first + other.weights.length);
  const on = (law: Law) => {
    const padded = new Float64Array(end - first);
    padded.set(law.weights, law.first - first);
    return padded;
  };
  return [on(one), on(other)];
}
