"""The curve by the book, in Python's own numbers: slow, and written from SEC 1 and SEC 2 alone."""

from __future__ import annotations

PRIME = 2**256 - 2**32 - 977
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
BASE = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)
NEUTRAL = None


def add(one, other):
    """The sum of two points by the chord and tangent rule (SEC 1, section 2.2.1)."""
    if one is NEUTRAL or other is NEUTRAL:
        return other if one is NEUTRAL else one
    (x1, y1), (x2, y2) = one, other
    if x1 == x2 and (y1 + y2) % PRIME == 0:
        return NEUTRAL
    if one == other:
        slope = 3 * x1 * x1 * pow(2 * y1, -1, PRIME) % PRIME
    else:
        slope = (y2 - y1) * pow(x2 - x1, -1, PRIME) % PRIME
    x = (slope * slope - x1 - x2) % PRIME
    return x, (slope * (x1 - x) - y1) % PRIME


def times(factor, point=BASE):
    """A multiple, by doubling and adding."""
    found = NEUTRAL
    for bit in f"{factor % ORDER:b}":
        found = add(found, found)
        if bit == "1":
            found = add(found, point)
    return found


def encode(point):
    """The compressed form (SEC 1, section 2.3.3)."""
    x, y = point
    return bytes([2 + y % 2]) + x.to_bytes(32, "big")


def decode(encoded):
    """The point of a compressed form, or the neutral one if it is none (SEC 1, section 2.3.4)."""
    x = int.from_bytes(encoded[1:], "big")
    square = (x**3 + 7) % PRIME
    y = pow(square, (PRIME + 1) // 4, PRIME)
    if len(encoded) != 33 or encoded[0] not in {2, 3} or x >= PRIME or y * y % PRIME != square:
        return NEUTRAL
    return x, y if y % 2 == encoded[0] % 2 else PRIME - y
