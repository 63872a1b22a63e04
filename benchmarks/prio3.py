"""How many reports a second two aggregators verify: `python -m benchmarks.prio3`.

One process does the work of both: it expands the helper's seeds, verifies all shares, decides, and
adds up. Beside it stands the draft's description, written down plainly: whole numbers of Python,
one report after another, with the same library for TurboSHAKE128. Both go round after round, and
come to the same sum. Seconds are of the processor. The script exits with 1 when the best round
misses the rate, or the median ratio its target.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

from Crypto.Hash import TurboSHAKE128

from panprivacy.devices.vdaf import MODULUS, Prio3Count, aggregate, unshard
from panprivacy.privacy.coins import SystemCoins

REPORTS = 5_000
ROUNDS = 15
RATE = 5_000
TARGET = 1.5
CONTEXT = b"a benchmark"
ROOT = pow(7, (MODULUS - 1) // 4, MODULUS)

Batch = tuple[bytes, bytes, bytes, bytes]
"""The key, the nonces, and the shares of the leader and of the helper."""


def ours(batch: Batch) -> int:
    """The sum of what is valid."""
    key, nonces, leader, helper = batch
    prio = Prio3Count(CONTEXT)
    one, other = prio.verify_leader(key, nonces, leader), prio.verify_helper(key, nonces, helper)
    accepted = prio.decide(one.verifiers, other.verifiers)
    return unshard(*(aggregate(found.outputs, accepted) for found in (one, other)))


def expand(usage: int, seed: bytes, binder: bytes, length: int) -> list[int]:
    """Field elements of a seed."""
    separation = bytes([18, 0, 0, 0, 0, 1, 0, usage]) + CONTEXT
    stream = TurboSHAKE128.new(domain=1)
    stream.update(len(separation).to_bytes(2, "little") + separation + b"\x20" + seed + binder)
    found: list[int] = []
    while len(found) < length:
        word = int.from_bytes(stream.read(8), "little")
        if word < MODULUS:
            found.append(word)
    return found


def evaluate(values: list[int], x: int) -> int:
    """The polynomial through values at 1, w, w * w and so on, by Lagrange."""
    nodes = [pow({2: MODULUS - 1, 3: ROOT}[len(values)], i, MODULUS) for i in range(len(values))]
    total = 0
    for node, value in zip(nodes, values, strict=True):
        above = below = 1
        for other in nodes:
            if other != node:
                above, below = above * (x - other), below * (node - other)
        total += value * above * pow(below, -1, MODULUS)
    return total % MODULUS


def verifier(key: bytes, nonce: bytes, share: list[int]) -> list[int]:
    """What one aggregator says of one report."""
    (point,) = expand(5, key, b"\x01" + nonce, 1)
    if pow(point, 2, MODULUS) == 1:
        message = "the point shows the measurement"
        raise ValueError(message)
    number, a, b, *product = share
    lines = evaluate([a, number], point), evaluate([b, number], point)
    return [(product[2] - number) % MODULUS, *lines, evaluate(product, point)]


def plain(batch: Batch) -> int:
    """The same, a report at a time."""
    key, nonces, leader, helper = batch
    total = 0
    for row in range(len(nonces) // 16):
        nonce, seed = nonces[16 * row :][:16], helper[32 * row :][:32]
        words = leader[48 * row :][:48]
        one = [int.from_bytes(words[i : i + 8], "little") for i in range(0, 48, 8)]
        other = [*expand(1, seed, b"\x01", 1), *expand(2, seed, b"\x01\x01", 5)]
        pairs = zip(verifier(key, nonce, one), verifier(key, nonce, other), strict=True)
        output, first, second, product = ((a + b) % MODULUS for a, b in pairs)
        if max(one) < MODULUS and output == 0 and first * second % MODULUS == product:
            total += one[0] + other[0]
    return total % MODULUS


def rate(action: Callable[[Batch], int], batch: Batch, expected: int) -> float:
    """How many reports a second of the processor."""
    start = time.process_time()
    found = action(batch)
    spent = time.process_time() - start
    if found != expected:
        message = "the sum is wrong"
        raise AssertionError(message)
    return len(batch[1]) / Prio3Count.NONCE_BYTES / spent


def main() -> int:
    """Measure."""
    coins, prio = SystemCoins(), Prio3Count(CONTEXT)
    bits = [i % 3 % 2 for i in range(REPORTS)]
    random = coins.secret(REPORTS * prio.RANDOM_BYTES)
    leader, helper = prio.shard(bits, random)
    key, nonces = coins.secret(prio.VERIFY_KEY_BYTES), coins.key(REPORTS * prio.NONCE_BYTES)
    batch = key, nonces, leader, helper
    rounds = [
        (rate(ours, batch, sum(bits)), rate(plain, batch, sum(bits))) for _ in range(ROUNDS + 1)
    ][1:]
    fast, slow = (max(column) for column in zip(*rounds, strict=True))
    ratio = statistics.median(mine / other for mine, other in rounds)
    print(f"{REPORTS:,} reports at once, one core: best of {ROUNDS} rounds, a second")
    print(f"verified   {fast:9,.0f}   (at least {RATE:,})")
    print(f"plainly    {slow:9,.0f}")
    print(f"ratio      {ratio:9.1f}   (at least {TARGET:g}; median)")
    for size in (1, 16, REPORTS):
        times = 200 if size < REPORTS else 5
        start = time.process_time()
        for _ in range(times):
            prio.shard(bits[:size], random[: size * prio.RANDOM_BYTES])
        spent = (time.process_time() - start) / times
        print(f"shares of {size:,} at once: {spent * 1e6:,.0f} us, {spent / size * 1e6:.1f} each")
    return int(fast < RATE or ratio < TARGET)


if __name__ == "__main__":
    sys.exit(main())
