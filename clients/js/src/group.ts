/*
 * The group of secp256k1: the only file that touches the curve library.
 *
 * Multiples take the same steps for all factors, but JavaScript's whole numbers take a time that
 * depends on their values: the README says what follows from that.
 */

import { normalizeZ } from '@noble/curves/abstract/curve.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';

import { bigEndian, concat, entries } from './bytes.js';
import type { Coins } from './coins.js';
import { InputError } from './errors.js';

export const POINT_BYTES = 33;
export const ORDER = secp256k1.Point.Fn.ORDER;
export type Point = InstanceType<typeof secp256k1.Point>;
export const { BASE, ZERO } = secp256k1.Point;

const SCALAR_BYTES = 32;

/** Return the points of encodings in SEC 1's compressed form, 33 bytes each. */
export function parse(encoded: Uint8Array): Point[] {
  return entries(encoded, POINT_BYTES).map((each) => {
    try {
      return secp256k1.Point.fromBytes(each);
    } catch {
      throw new InputError('this is no point of secp256k1: the data is damaged');
    }
  });
}

/** Return whether 33 bytes are the encoding of a point. */
export function isPoint(encoded: Uint8Array): boolean {
  try {
    secp256k1.Point.fromBytes(encoded);
    return true;
  } catch {
    return false;
  }
}

/** Return the encodings of points other than the neutral one. */
export function encode(points: Point[]): Uint8Array {
  return concat(...normalizeZ(secp256k1.Point, points).map((point) => point.toBytes(true)));
}

/** Return the multiple of a point by any whole number. */
export function multiple(point: Point, factor: bigint): Point {
  const reduced = ((factor % ORDER) + ORDER) % ORDER;
  return reduced === 0n ? ZERO : point.multiply(reduced);
}

const WINDOWS = SCALAR_BYTES;
const DIGITS = 256;

/** Secret multiples of one point, by a table: sums of 32 of its entries, one a byte of the factor. */
export class Multiples {
  readonly #rows: Point[][] = [];

  constructor(point: Point) {
    for (let step = point; this.#rows.length < WINDOWS; ) {
      const row = [ZERO];
      while (row.length < DIGITS) row.push(row.at(-1)!.add(step));
      step = step.add(row.at(-1)!);
      this.#rows.push(row);
    }
  }

  /** Return the multiple by a scalar, by the same number of sums whatever it is. */
  by(factor: Uint8Array): Point {
    return this.#rows.reduce(
      (sum, row, i) => sum.add(row[factor[WINDOWS - 1 - i]!]!),
      ZERO,
    );
  }
}

let table: Multiples | null = null;

/** Return the table of the base point, which is made once. */
export function ofBase(): Multiples {
  table ??= new Multiples(BASE);
  return table;
}

const ORDER_BYTES = bigEndian(ORDER, SCALAR_BYTES);

/** Return secret scalars, uniform on 0 .. ORDER - 1; all are drawn again if one is too large. */
export function drawScalars(coins: Coins, size: number): Uint8Array[] {
  for (;;) {
    const drawn = coins.secret(size * SCALAR_BYTES);
    const scalars = entries(drawn, SCALAR_BYTES);
    drawn.fill(0);
    if (scalars.every(isBelowOrder)) return scalars;
  }
}

/** Return whether 32 bytes are a number below the order, the highest byte first. */
function isBelowOrder(scalar: Uint8Array): boolean {
  const at = scalar.findIndex((byte, i) => byte !== ORDER_BYTES[i]);
  return at >= 0 && scalar[at]! < ORDER_BYTES[at]!;
}
