"""How fast ciphertexts are made, re-randomised and opened: `python -m benchmarks.elgamal`.

Each of ours beside the same done with others' plain calls, in turn, round after round:
re-randomising and encrypting by coincurve's own multiplications, without tables; a bit by the
Diffie-Hellman function of `cryptography`, which has another implementation of the same curve, and
without looking at the result. Seconds are of the processor. The script exits with 1 when the best
round misses a rate, or the median ratio a target. The rates are those of one core of a machine
that does nothing else; the ratios hold on others too.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coincurve import PrivateKey, PublicKey
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDH,
    SECP256K1,
    EllipticCurvePublicKey,
    derive_private_key,
)

from panprivacy.devices.federated import group
from panprivacy.devices.federated.elgamal import CIPHERTEXT_BYTES, DecryptionKey
from panprivacy.privacy.coins import SystemCoins

CIPHERTEXTS = 500
ROUNDS = 20
COINS = SystemCoins()


@dataclass(frozen=True)
class Contest:
    """Ours and theirs, on the same row of ciphertexts.

    Args:
        name: of the operation.
        rate: how many a second ours has to reach; 0 for any.
        target: how many times as fast as theirs ours has to be.
        ours: does it for all of a row.
        theirs: does it for all of a row.
    """

    name: str
    rate: float
    target: float
    ours: Callable[[bytes], object]
    theirs: Callable[[bytes], object]


def pairs(row: bytes) -> list[tuple[bytes, bytes]]:
    """Both points of each ciphertext."""
    starts = range(0, len(row), CIPHERTEXT_BYTES)
    return [(row[i : i + 33], row[i + 33 : i + 66]) for i in starts]


def plain_rerandomise(row: bytes, public: PublicKey) -> bytes:
    """With two multiplications of coincurve for each ciphertext."""
    found = []
    for first, second in pairs(row):
        nonce = group.draw(COINS, 1).tobytes()
        masked = PublicKey.combine_keys([PublicKey(second), public.multiply(nonce)])
        found.append(PublicKey(first).add(nonce).format() + masked.format())
    return b"".join(found)


def plain_encrypt(values: Sequence[int], public: PublicKey) -> bytes:
    """Likewise; a 0 adds nothing."""
    found = []
    for value in values:
        nonce = group.draw(COINS, 1).tobytes()
        second = public.multiply(nonce)
        if value:
            second = second.add(group.scalar(value))
        found.append(PublicKey.from_valid_secret(nonce).format() + second.format())
    return b"".join(found)


def contests(key: DecryptionKey) -> list[Contest]:
    """All of them."""
    public = PrivateKey(bytes(key)).public_key
    theirs = derive_private_key(int.from_bytes(bytes(key), "big"), SECP256K1())

    def exchange(row: bytes) -> list[bytes]:
        read = EllipticCurvePublicKey.from_encoded_point
        return [theirs.exchange(ECDH(), read(SECP256K1(), first)) for first, _ in pairs(row)]

    bits = [i % 2 for i in range(CIPHERTEXTS)]
    return [
        Contest(
            "re-randomise",
            15_000,
            1.5,
            lambda row: key.public.rerandomise(row, COINS),
            lambda row: plain_rerandomise(row, public),
        ),
        Contest(
            "encrypt",
            0,
            1,
            lambda _: key.public.encrypt(bits, COINS),
            lambda _: plain_encrypt(bits, public),
        ),
        Contest("decrypt a bit", 10_000, 1, key.bits, exchange),
        Contest("one of 2,001 values", 0, 1, lambda row: key.small_sums(row, 0, 2_000), exchange),
    ]


def rate(action: Callable[[bytes], object], row: bytes) -> float:
    """How many ciphertexts a second of the processor."""
    start = time.process_time()
    action(row)
    return len(row) / CIPHERTEXT_BYTES / (time.process_time() - start)


def compare(contest: Contest, row: bytes) -> bool:
    """Print one comparison, after one round that is not counted; whether it is within target."""
    rounds = [(rate(contest.ours, row), rate(contest.theirs, row)) for _ in range(ROUNDS + 1)][1:]
    ours, theirs = (max(column) for column in zip(*rounds, strict=True))
    ratio = statistics.median(mine / other for mine, other in rounds)
    reached = ours >= contest.rate and ratio >= contest.target
    least = f"{contest.rate:,.0f} a second, " * bool(contest.rate) + f"{contest.target:g} times"
    print(
        f"{contest.name:22}{ours:9,.0f}{theirs:9,.0f}{ratio:8.2f}   ({least})"
        f"{'' if reached else '  MISSED'}",
        flush=True,
    )
    return reached


def share(key: DecryptionKey, size: int) -> None:
    """Print what a second process gains, on the clock and with its start."""
    row = key.public.encrypt([1] * size, COINS)
    for processes in (1, 2):
        start = time.perf_counter()
        key.bits(row, processes=processes)
        spent = time.perf_counter() - start
        print(f"{size:,} bits by {processes} process{'es' * (processes > 1)}: {spent:.1f} s")


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description="How fast ciphertexts are made and opened.")
    parser.add_argument("--batch", type=lambda text: int(float(text)), default=100_000)
    size = parser.parse_args().batch
    key = DecryptionKey.generate(COINS)
    row = key.public.encrypt([i % 2 for i in range(CIPHERTEXTS)], COINS)
    print(f"rows of {CIPHERTEXTS:,} ciphertexts, one core: best of {ROUNDS} rounds, a second")
    print(f"{'':22}{'ours':>9}{'theirs':>9}{'ratio':>8}   (at least)")
    reached = [compare(contest, row) for contest in contests(key)]
    share(key, size)
    return int(not all(reached))


if __name__ == "__main__":
    sys.exit(main())
