import { PlanError } from './errors.js';

const RATIO = /^([0-9]{1,400})(?:\/([0-9]{1,400}))?$/;
const DECIMAL = /^([0-9]{1,400})\.([0-9]{1,400})$/;

/** An exact number of at least 0, in lowest terms. */
export class Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;

  constructor(numerator: bigint | number, denominator: bigint | number = 1n) {
    const [top, bottom] = [BigInt(numerator), BigInt(denominator)];
    const shared = greatestDivisor(top < 0n ? -top : top, bottom);
    this.numerator = top / shared;
    this.denominator = bottom / shared;
  }

  /** Read a text such as "1/2" or "0.5". */
  static read(text: unknown): Fraction {
    if (typeof text !== 'string') {
      throw new PlanError('write exact numbers as texts, such as "1/2" or "0.5"');
    }
    const found = RATIO.exec(text)
      ? ratio(text.split('/').map(BigInt))
      : decimal(DECIMAL.exec(text) ?? []);
    if (found === null || (found.numerator === 0n && text !== '0')) {
      throw new PlanError('an exact number of the task is not a positive finite number');
    }
    return found;
  }

  minus(other: Fraction): Fraction {
    return new Fraction(
      this.numerator * other.denominator - other.numerator * this.denominator,
      this.denominator * other.denominator,
    );
  }

  over(other: Fraction): Fraction {
    return new Fraction(
      this.numerator * other.denominator,
      this.denominator * other.numerator,
    );
  }

  times(other: Fraction): Fraction {
    return new Fraction(
      this.numerator * other.numerator,
      this.denominator * other.denominator,
    );
  }

  /** Return a number below 0, 0 or above it, as this one is below, equal to or above the other. */
  compare(other: Fraction | bigint | number): number {
    const right = other instanceof Fraction ? other : new Fraction(other);
    const gap = this.numerator * right.denominator - right.numerator * this.denominator;
    return gap < 0n ? -1 : gap > 0n ? 1 : 0;
  }

  /** Return the float next to it. */
  toNumber(): number {
    const shift = BigInt(Math.max(bits(this.denominator) - bits(this.numerator) + 64, 0));
    const top = Number((this.numerator << shift) / this.denominator);
    return top / 2 ** Number(shift);
  }

  toString(): string {
    return this.denominator === 1n ? `${this.numerator}` : `${this.numerator}/${this.denominator}`;
  }
}

function ratio([top, bottom = 1n]: bigint[]): Fraction | null {
  return bottom === 0n ? null : new Fraction(top!, bottom);
}

function decimal([whole, ahead, behind = '', exponent = '0']: (string | undefined)[]) {
  if (whole === undefined) return null;
  const power = Number(exponent) - behind.length;
  const digits = BigInt(ahead! + behind);
  return power < 0
    ? new Fraction(digits, 10n ** BigInt(-power))
    : new Fraction(digits * 10n ** BigInt(power));
}

function greatestDivisor(one: bigint, other: bigint): bigint {
  while (other) [one, other] = [other, one % other];
  return one || 1n;
}

/** Return the number of binary digits of a whole number of at least 0. */
export function bits(value: bigint): number {
  return value === 0n ? 0 : value.toString(2).length;
}

/** Return the largest whole number whose square is not above `value`. */
export function squareRoot(value: bigint): bigint {
  let root = 1n << BigInt((bits(value) + 1) >> 1);
  for (;;) {
    const next = root === 0n ? 0n : (root + value / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}
