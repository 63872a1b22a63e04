import { Fraction } from './fraction.js';

const PLACES = 512n;
const GRID = 1n << 64n;
const LARGEST = 64;

/** Return a number below `e**exponent`, within a relative 1e-50 of it, for exponents of 0 to 100. */
export function expBelow(exponent: Fraction): Fraction {
  const one = 1n << PLACES;
  const halvings = 7n;
  const part = (exponent.numerator << (PLACES - halvings)) / exponent.denominator;
  let term = one;
  let sum = one;
  for (let k = 1n; term > 0n; k++) {
    term = (term * part) / (k << PLACES);
    sum += term;
  }
  for (let i = 0n; i < halvings; i++) sum = (sum * sum) >> PLACES;
  return new Fraction(sum * (10n ** 50n - 1n), one * 10n ** 50n);
}

/**
 * Return the largest `p` on a grid of 2**-64 with `p/(1-p) <= e**epsilon`.
 *
 * From epsilon 64 on it is `1 - 2**-64`.
 */
export function randomisedResponse(epsilon: Fraction): Fraction {
  const below = expBelow(epsilon.compare(LARGEST) > 0 ? new Fraction(LARGEST) : epsilon);
  const whole = below.numerator + below.denominator;
  const complement = (GRID * below.denominator + whole - 1n) / whole;
  const present = new Fraction(GRID - complement, GRID);
  const half = new Fraction(1, 2);
  return present.compare(half) < 0 ? half : present;
}
