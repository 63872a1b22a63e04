import { InputError } from './errors.js';

/** Return the bytes of all parts, one after the other. */
export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** Return the pieces of a row, each of `size` bytes. */
export function entries(row: Uint8Array, size: number): Uint8Array[] {
  if (row.length % size) {
    throw new InputError(`expected ${size} bytes for each entry: some are missing, or too many`);
  }
  return Array.from({ length: row.length / size }, (_, i) => row.slice(i * size, (i + 1) * size));
}

/** Return whether two byte strings are equal; the time depends on their lengths only. */
export function equal(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false;
  let apart = 0;
  for (let i = 0; i < one.length; i++) apart |= one[i]! ^ other[i]!;
  return apart === 0;
}

/** Return a whole number of at least 0 in `size` bytes, the lowest first. */
export function littleEndian(value: number | bigint, size: number): Uint8Array {
  let left = BigInt(value);
  return Uint8Array.from({ length: size }, () => {
    const byte = Number(left & 255n);
    left >>= 8n;
    return byte;
  });
}

/** Return the same, the highest byte first. */
export function bigEndian(value: number | bigint, size: number): Uint8Array {
  return littleEndian(value, size).reverse();
}

/** Return the number that bytes stand for, the highest first. */
export function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${hex(bytes) || '0'}`);
}

/** Return the number that bytes stand for, the lowest first. */
export function littleNumber(bytes: Uint8Array): bigint {
  return numberOf(Uint8Array.from(bytes).reverse());
}

/** Return lower-case hexadecimal digits. */
export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Return the bytes of hexadecimal digits; the caller has checked that they are. */
export function unhex(digits: string): Uint8Array {
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** Return the UTF-8 bytes of a text. */
export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
