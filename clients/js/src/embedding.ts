/*
 * 31 bytes as a point: the x is a counter of one byte and the bytes, the y is even. The counter is
 * the smallest for which the curve has that x.
 */

import { concat } from './bytes.js';
import { InputError } from './errors.js';
import { isPoint } from './group.js';

export const PAYLOAD_BYTES = 31;

const COUNTERS = 255;

/** Return the point of 31 bytes, in SEC 1's compressed form; the time depends on them. */
export function embed(payload: Uint8Array): Uint8Array {
  for (let counter = 0; counter < COUNTERS; counter++) {
    const point = concat(Uint8Array.of(2, counter), payload);
    if (isPoint(point)) return point;
  }
  throw new InputError('no point holds this payload: draw again');
}
