"""A second device, written from docs/device-format.md: of the package it imports nothing.

It shows that the page is enough. It is slow, and its arithmetic takes different time for different
numbers, so it is for tests alone.
"""

from __future__ import annotations

import decimal
import hashlib
import json
import re
from dataclasses import dataclass
from fractions import Fraction

# Numbers and points

FIELD = 2**256 - 2**32 - 977
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
NEUTRAL = None


class RefusedError(Exception):
    """What a device does not take."""


def refuse_unless(holds, why):
    """Raise if it does not hold."""
    if not holds:
        raise RefusedError(why)


def decode(encoded):
    """The point of 33 bytes."""
    refuse_unless(len(encoded) == 33 and encoded[0] in (2, 3), "this is no point")
    x = int.from_bytes(encoded[1:], "big")
    square = (pow(x, 3, FIELD) + 7) % FIELD
    y = pow(square, (FIELD + 1) // 4, FIELD)
    refuse_unless(x < FIELD and y * y % FIELD == square, "this is no point")
    return x, y if y % 2 == encoded[0] % 2 else FIELD - y


def encode(point):
    """A point as 33 bytes."""
    x, y = point
    return bytes([2 + y % 2]) + x.to_bytes(32, "big")


BASE = decode(bytes.fromhex("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"))


def plus(one, other):
    """The sum of two points."""
    if one is NEUTRAL or other is NEUTRAL:
        return other if one is NEUTRAL else one
    if one[0] == other[0] and (one[1] + other[1]) % FIELD == 0:
        return NEUTRAL
    if one == other:
        slope = 3 * one[0] ** 2 * pow(2 * one[1], -1, FIELD)
    else:
        slope = (other[1] - one[1]) * pow(other[0] - one[0], -1, FIELD)
    x = (slope * slope - one[0] - other[0]) % FIELD
    return x, (slope * (one[0] - x) - one[1]) % FIELD


def times(number, point):
    """A multiple of a point."""
    number, found = number % ORDER, NEUTRAL
    while number:
        if number & 1:
            found = plus(found, point)
        point, number = plus(point, point), number >> 1
    return found


def parts(data, size):
    """Equal parts of bytes."""
    return [data[at : at + size] for at in range(0, len(data), size)]


def scalars(coins, count):
    """Secret scalars."""
    while True:
        found = [int.from_bytes(one, "big") for one in parts(coins.secret(32 * count), 32)]
        if all(one < ORDER for one in found):
            return found


# Ciphertexts


def masked(key, pairs, coins):
    """Pairs of points with fresh encryptions of 0 added."""
    while True:
        nonces = scalars(coins, len(pairs))
        sums = [
            (plus(times(nonce, BASE), first), plus(times(nonce, key), second))
            for nonce, (first, second) in zip(nonces, pairs, strict=True)
        ]
        if all(NEUTRAL not in one for one in sums):
            return b"".join(encode(point) for one in sums for point in one)


class OneServer:
    """Encryption to a collector."""

    size = 66

    def __init__(self, key):
        self.key = decode(bytes.fromhex(key))

    def encrypt(self, values, coins):
        """A row of fresh ciphertexts."""
        return masked(self.key, [(NEUTRAL, times(value, BASE)) for value in values], coins)

    def encrypt_points(self, points, coins):
        """The same, of points."""
        return masked(self.key, [(NEUTRAL, decode(point)) for point in points], coins)

    def rerandomise(self, row, coins):
        """The same values in fresh ciphertexts."""
        points = [decode(one) for one in parts(row, 33)]
        return masked(self.key, list(zip(points[::2], points[1::2], strict=True)), coins)

    def add(self, ciphertexts):
        """The sum of ciphertexts."""
        first, second = NEUTRAL, NEUTRAL
        for one in ciphertexts:
            first, second = plus(first, decode(one[:33])), plus(second, decode(one[33:]))
        return encode(first) + encode(second)

    def check(self, row):
        """Refuse what is no row."""
        for one in parts(row, 33):
            decode(one)


class TwoServers:
    """Shares of bits, encrypted to two servers."""

    size = 264

    def __init__(self, servers, digest):
        names = [bytes.fromhex(servers[one]) for one in ("leader", "helper")]
        self.keys = [OneServer(one.hex()) for one in names]
        self.context = b"dap-17" + digest
        if servers["collusion"] == "one-server":
            joint = NEUTRAL
            for name, one in zip(names, self.keys, strict=True):
                hashed = hashlib.sha256(b"panprivacy joint key\n" + b"".join(names) + name).digest()
                joint = plus(joint, times(int.from_bytes(hashed, "big"), one.key))
            self.keys = [OneServer(encode(joint).hex())] * 2

    def encrypt(self, values, coins):
        """Fresh shares and proofs, encrypted."""
        random = parts(coins.secret(64 * len(values)), 64)
        shares = [
            shard(value, one, self.context) for value, one in zip(values, random, strict=True)
        ]
        rows = [
            key.encrypt_points([point for one in shares for point in embedded(one[who])], coins)
            for who, key in enumerate(self.keys)
        ]
        return woven(*rows)

    def rerandomise(self, row, coins):
        """The same shares in fresh ciphertexts."""
        halves = unwoven(row)
        return woven(
            *(key.rerandomise(half, coins) for key, half in zip(self.keys, halves, strict=True))
        )

    check = OneServer.check


def woven(leader, helper):
    """The ciphertexts of both servers, in turn for each bit."""
    pairs = zip(parts(leader, 132), parts(helper, 132), strict=True)
    return b"".join(one + other for one, other in pairs)


def unwoven(row):
    """What each server has of a row."""
    halves = parts(row, 132)
    return b"".join(halves[::2]), b"".join(halves[1::2])


def embedded(share):
    """A share as two points."""
    filled = (share + hashlib.sha256(share).digest())[:62]
    return [embed(filled[:31]), embed(filled[31:])]


def embed(payload):
    """Up to 31 bytes as a point."""
    kind, content = b"\2", payload
    if len(payload) < 31:
        kind, content = b"\3", payload.ljust(30, b"\0") + bytes([len(payload)])
    for counter in range(255):
        point = kind + bytes([counter]) + content
        try:
            decode(point)
        except RefusedError:
            continue
        return point
    raise RefusedError("no point holds this")


# Prio3Count, from draft-irtf-cfrg-vdaf-18

PRIME = 2**64 - 2**32 + 1
ROUNDS = [
    0x000000008000808B, 0x800000000000008B, 0x8000000000008089, 0x8000000000008003,
    0x8000000000008002, 0x8000000000000080, 0x000000000000800A, 0x800000008000000A,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
]  # fmt: skip
"""Constants of the last twelve rounds of Keccak."""


def turned(word, by):
    """A word of 64 bits, turned to the left."""
    return (word << by | word >> 64 - by) & 2**64 - 1


def keccak(lanes):
    """Twelve rounds of Keccak on 5 times 5 lanes."""
    for constant in ROUNDS:
        sums = [
            lanes[x][0] ^ lanes[x][1] ^ lanes[x][2] ^ lanes[x][3] ^ lanes[x][4] for x in range(5)
        ]
        mixed = [sums[x - 1] ^ turned(sums[(x + 1) % 5], 1) for x in range(5)]
        lanes = [[lanes[x][y] ^ mixed[x] for y in range(5)] for x in range(5)]
        x, y, held = 1, 0, lanes[1][0]
        for step in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            held, lanes[x][y] = lanes[x][y], turned(held, (step + 1) * (step + 2) // 2 % 64)
        lanes = [
            [lanes[x][y] ^ (~lanes[(x + 1) % 5][y] & lanes[(x + 2) % 5][y]) for y in range(5)]
            for x in range(5)
        ]
        lanes[0][0] ^= constant
    return lanes


def turbo_shake(message, size):
    """TurboSHAKE128 with the domain 1."""
    rate = 168
    data = message + b"\1"
    data = bytearray(data.ljust(-(-len(data) // rate) * rate, b"\0"))
    data[-1] ^= 0x80
    lanes = [[0] * 5 for _ in range(5)]
    for block in parts(bytes(data), rate):
        for place, word in enumerate(parts(block, 8)):
            lanes[place % 5][place // 5] ^= int.from_bytes(word, "little")
        lanes = keccak(lanes)
    out = b""
    while len(out) < size:
        out += b"".join(lanes[i % 5][i // 5].to_bytes(8, "little") for i in range(rate // 8))
        lanes = keccak(lanes)
    return out[:size]


def elements(usage, seed, context, binder, count):
    """Field elements that a seed gives."""
    tag = bytes([18, 0]) + (1).to_bytes(4, "big") + usage.to_bytes(2, "big") + context
    message = len(tag).to_bytes(2, "little") + tag + bytes([len(seed)]) + seed + binder
    words = [
        int.from_bytes(one, "little") for one in parts(turbo_shake(message, 8 * (count + 4)), 8)
    ]
    return [one for one in words if one < PRIME][:count]


def shard(bit, random, context):
    """The shares of leader and helper."""
    helper, prover = random[:32], random[32:]
    a, b = elements(4, prover, context, b"\1", 2)
    root, half = pow(7, (PRIME - 1) // 4, PRIME), (PRIME + 1) // 2

    def at_root(at_1):
        return ((at_1 + bit) + (at_1 - bit) * root) * half % PRIME

    proof = [a, b, a * b % PRIME, at_root(a) * at_root(b) % PRIME, bit * bit]
    masks = elements(1, helper, context, b"\1", 1) + elements(2, helper, context, b"\1\1", 5)
    leader = [(one - mask) % PRIME for one, mask in zip([bit, *proof], masks, strict=True)]
    return b"".join(one.to_bytes(8, "little") for one in leader), helper


# Tasks


def canonical(document):
    """JSON with sorted names and no spaces."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def exact(text):
    """An exact number."""
    digits = isinstance(text, str) and re.fullmatch(r"[0-9]{1,400}([./][0-9]{1,400})?", text)
    refuse_unless(digits, "exact numbers are texts of digits")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise RefusedError("this is no number") from None


def whole(value, least, most):
    """A whole number within limits."""
    refuse_unless(type(value) is int and least <= value <= most, "a number is out of range")
    return value


def fields(document, required, optional=()):
    """Refuse unknown and missing fields."""
    refuse_unless(isinstance(document, dict), "an object is missing")
    names = set(document)
    refuse_unless(set(required) <= names <= {*required, *optional}, "fields are wrong")


def present(epsilon):
    """The probability that a bit is reported as it is."""
    context = decimal.Context(prec=60)
    exponent = context.divide(*map(decimal.Decimal, min(epsilon, Fraction(64)).as_integer_ratio()))
    below = Fraction(context.exp(exponent)) * (1 - Fraction(1, 10**50))
    complement = -(-(2**64) // (1 + below))
    return max(1 - Fraction(complement, 2**64), Fraction(1, 2))


@dataclass
class Task:
    """What a task says, once it was checked."""

    digest: bytes
    kind: dict
    horizon: int
    key: object

    @property
    def name(self):
        """Of the kind."""
        return self.kind["kind"]

    @property
    def width(self):
        """Values in a state."""
        most = self.kind.get("most", 0)
        return {"count-nonzero": 1, "histogram": 2 * (most + 1), "mean": most}[self.name]

    @property
    def answers(self):
        """Values in a report."""
        return self.kind["most"] + 1 if self.name == "histogram" else 1


FIELDS = {
    "count-nonzero": ("kind", "epsilon_0"),
    "histogram": ("kind", "most", "epsilon_0"),
    "mean": ("kind", "most", "variance"),
}


def read_task(file, signer, verify):
    """A task from its file; `verify(key, signature, message)` says whether a signature holds."""
    refuse_unless(len(file) <= 65_536, "this is too long")
    try:
        document = json.loads(file)
    except ValueError:
        raise RefusedError("this is no JSON") from None
    fields(document, ("task", "signature"))
    task = document["task"]
    message = b"panprivacy task\n" + canonical(task)
    refuse_unless(verify(signer, bytes.fromhex(document["signature"]), message), "the signature")
    fields(task, ("version", "id", "kind", "promise", "horizon", "key"))
    refuse_unless(task["version"] == 1, "the version")
    refuse_unless(len(bytes.fromhex(task["id"])) == 16, "the id")
    whole(task["horizon"], 1, 2**31)
    promise = {"delta": "0", "devices": 1, **task["promise"]}
    fields(promise, ("epsilon", "delta", "devices"))
    epsilon, delta = exact(promise["epsilon"]), exact(promise["delta"])
    refuse_unless(0 < epsilon <= 100 and 0 <= delta < 1, "the promise")
    whole(promise["devices"], 1, 10_000_000)
    kind = checked_kind(task["kind"])
    check_key(task["key"], kind, promise)
    if promise["devices"] == 1 and delta == 0:
        kept = kind["kind"] != "mean" and exact(kind["epsilon_0"]) <= epsilon
        refuse_unless(kept, "the noise does not keep the promise")
    normal = {
        **task,
        "kind": kind,
        "promise": {**promise, "epsilon": str(epsilon), "delta": str(delta)},
    }
    return Task(hashlib.sha256(canonical(normal)).digest(), kind, task["horizon"], task["key"])


def checked_kind(kind):
    """A kind with its exact numbers in lowest terms."""
    refuse_unless(isinstance(kind, dict) and kind.get("kind") in FIELDS, "the kind is unknown")
    fields(kind, FIELDS[kind["kind"]])
    found = dict(kind)
    if "most" in kind:
        whole(kind["most"], 1, 1_000)
    for name in {"epsilon_0", "variance"} & set(kind):
        found[name] = str(exact(kind[name]))
    if "variance" in kind:
        refuse_unless(Fraction(1, 100) <= exact(kind["variance"]) <= 10**8, "the variance")
    return found


def check_key(key, kind, promise):
    """Refuse keys that are none."""
    if isinstance(key, str):
        refuse_unless(len(key) == 66, "the key")
        return
    fields(key, ("leader", "helper", "collusion", "batch"))
    refuse_unless(key["leader"] != key["helper"], "both keys are the same")
    refuse_unless(key["collusion"] in ("none", "one-server"), "the collusion")
    refuse_unless(whole(key["batch"], 1, 10_000_000) >= promise["devices"], "the batch")
    refuse_unless(kind["kind"] != "mean", "a mean has one server")


# The device


class SecondDevice:
    """Keeps a state in `storage`, which has `state`: bytes, or None before the first one."""

    def __init__(self, task, storage, coins):
        self.task, self.storage, self.coins = task, storage, coins
        two = isinstance(task.key, dict)
        self.encryption = TwoServers(task.key, task.digest) if two else OneServer(task.key)
        if storage.state is None:
            row = self._initial()
            self._keep(0, 0, coins.key(16), row)
        else:
            self._check(storage.state)

    def _check(self, state):
        refuse_unless(len(state) >= 62 and state[:5] == b"PPDS\1" and state[37] <= 1, "the state")
        refuse_unless(state[5:37] == self.task.digest, "the state is of another task")
        self.done, self.tick = state[37], int.from_bytes(state[38:46], "little")
        self.name, self.row = state[46:62], state[62:]
        refuse_unless(self.tick <= self.task.horizon, "the ticks")
        width = self.task.answers if self.done else self.task.width
        refuse_unless(len(self.row) == width * self.encryption.size, "the length")
        self.encryption.check(self.row)

    def _keep(self, done, tick, name, row):
        front = b"PPDS\1" + self.task.digest + bytes([done]) + tick.to_bytes(8, "little") + name
        self.storage.state = front + row
        self.done, self.tick, self.name, self.row = done, tick, name, row

    def _initial(self):
        if self.task.name == "histogram":
            half = [1] + [0] * self.task.kind["most"]
            return self.encryption.encrypt(half * 2, self.coins)
        return self.encryption.encrypt([0] * self.task.width, self.coins)

    def _after_event(self):
        size = self.encryption.size
        old = parts(self.row, size)
        if self.task.name == "histogram":
            zero, one = parts(self.encryption.encrypt([0, 1], self.coins), size)
            middle = len(old) // 2
            return b"".join([zero, *old[: middle - 1], one, *old[middle:-1]])
        return b"".join([self.encryption.encrypt([1], self.coins), *old[:-1]])

    def observe(self, event):
        """End a tick."""
        refuse_unless(not self.done and self.tick < self.task.horizon, "all ticks are over")
        rows = self.row, self._after_event()
        row = self.encryption.rerandomise(rows[event], self.coins)
        self._keep(0, self.tick + 1, self.name, row)

    def report(self):
        """The report, made once."""
        if not self.done:
            refuse_unless(self.tick == self.task.horizon, "ticks are missing")
            self._keep(1, self.tick, self.name, self._reported())
        return b"PPDR\1" + self.task.digest + self.name + self.row

    def _reported(self):
        old, kind = parts(self.row, self.encryption.size), self.task.kind
        if self.task.name == "mean":
            drawn = self.coins.discrete_gaussian(Fraction(kind["variance"]), 1)
            noise = self.encryption.encrypt([int(one) for one in drawn], self.coins)
            return self.encryption.rerandomise(self.encryption.add([*old, noise]), self.coins)
        sure = present(Fraction(kind["epsilon_0"]))
        if self.task.name == "histogram":
            old, most = [*old[: self.task.answers - 1], old[-1]], Fraction(1, 2)
        else:
            most = sure
        return self._bits(old, most, 1 - sure)

    def _bits(self, old, most, absent):
        keep = self.coins.bernoulli(most - absent, len(old))
        fresh = self.coins.bernoulli(absent / (1 - most + absent), len(old))
        drawn = parts(
            self.encryption.encrypt([int(one) for one in fresh], self.coins), self.encryption.size
        )
        row = [one if kept else other for kept, one, other in zip(keep, old, drawn, strict=True)]
        return self.encryption.rerandomise(b"".join(row), self.coins)

    def upload(self):
        """The report for two servers."""
        message = self.name + bytes(8) + bytes(2) + bytes(4)
        for who, row in enumerate(unwoven(self.row), 2):
            message += bytes([who]) + (33).to_bytes(2, "big") + row[:33]
            message += (len(row) - 33).to_bytes(4, "big") + row[33:]
        return message
