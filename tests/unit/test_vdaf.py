"""Prio3Count: honest bits are counted, and nothing else is, whatever a device or a peer sends."""

from __future__ import annotations

import re
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from panprivacy.devices.vdaf import MODULUS, Prio3Count, aggregate, field64, flp, unshard, xof
from panprivacy.errors import InputError, PlanError

quick = settings(max_examples=50)

PRIO = Prio3Count(b"a test")
KEY = bytes(range(32))
WORDS = st.integers(0, 2**64 - 1)
EDGES = [0, 1, 2, 2**32 - 2, 2**32 - 1, 2**32, 2**63, MODULUS // 2, MODULUS - 2, MODULUS - 1]
ELEMENTS = st.sampled_from(EDGES) | st.integers(0, MODULUS - 1)
BITS = st.lists(st.integers(0, 1), min_size=1, max_size=8)


def column(*values):
    return np.array([value % MODULUS for value in values], np.uint64)


def stretched(seed, size):
    """Bytes for a test, of a seed that hypothesis draws."""
    return xof.stream(seed, size)


def nonces_of(number, seed=b"nonces"):
    return stretched(seed, number * PRIO.NONCE_BYTES)


def sharded(bits, seed, prio=PRIO):
    return prio.shard(bits, stretched(seed, len(bits) * 32 * prio.shares))


def verified(shares, number, prio=PRIO, key=KEY):
    """What all aggregators find."""
    leader, *helpers = shares
    nonces = nonces_of(number)
    return [
        prio.verify_leader(key, nonces, leader),
        *(prio.verify_helper(key, nonces, seeds, i) for i, seeds in enumerate(helpers, 1)),
    ]


def decided(found, prio=PRIO):
    return prio.decide(*(one.verifiers for one in found))


# The field


@quick
@given(st.lists(st.tuples(ELEMENTS, ELEMENTS), min_size=1))
@example([(one, other) for one in EDGES for other in EDGES])
def test_the_field_is_that_of_whole_numbers_modulo_a_prime(pairs):
    one, other = (column(*values) for values in zip(*pairs, strict=True))
    for operation, expected in (
        (field64.add, lambda a, b: a + b),
        (field64.subtract, lambda a, b: a - b),
        (field64.multiply, lambda a, b: a * b),
    ):
        assert operation(one, other).tolist() == [expected(a, b) % MODULUS for a, b in pairs]


@quick
@given(st.lists(st.sampled_from([MODULUS - 1, MODULUS, 2**64 - 1]) | WORDS, min_size=1))
def test_what_is_no_element_is_seen(words):
    encoded = b"".join(word.to_bytes(8, "little") for word in words)
    decoded, canonical = field64.decode(encoded, 1)
    assert decoded[:, 0].tolist() == words
    assert canonical.tolist() == [word < MODULUS for word in words]
    assert field64.encode(decoded) == encoded


# The stream


def test_a_word_that_is_no_element_is_left_out():
    """The draft's reference implementation tests this seed, which took a search."""
    seed = bytes.fromhex("44341dc52d71a2ff2e4c305e9335da9b19afc68e10b8b543690dad9d3bbb46ba")
    message, width = xof.absorbed(seed, b"", b""), 13_883
    found = xof.elements([message, b"another", message], width)
    assert found[:, -1].tolist()[::2] == [4857131209231097247] * 2
    words = np.frombuffer(xof.stream(message, 8 * (width + 1)), "<u8")
    assert found[0].tolist() == words[words < MODULUS].tolist()
    assert found[1].tobytes() == xof.stream(b"another", 8 * width)


def test_a_word_at_the_modulus_is_left_out_too(monkeypatch):
    words = [MODULUS, 2**64 - 1, 7, MODULUS - 1, 8]
    streams = {b"odd": words, b"even": [1, 2, 3, 4, 5]}
    encoded = {one: b"".join(w.to_bytes(8, "little") for w in row) for one, row in streams.items()}
    monkeypatch.setattr(xof, "stream", lambda message, size: encoded[message][:size])
    assert xof.elements([b"even", b"odd"], 2).tolist() == [[1, 2], [7, MODULUS - 1]]


# The proof


def value(polynomial, x):
    """The value at x of a polynomial, given by its coefficients from the lowest."""
    return sum(one * x**i for i, one in enumerate(polynomial)) % MODULUS


ROOT = pow(7, (MODULUS - 1) // 4, MODULUS)


@quick
@given(st.integers(0, 1), ELEMENTS, ELEMENTS, ELEMENTS)
def test_a_proof_holds_lines_and_their_product(number, a, b, point):
    half = pow(2, -1, MODULUS)
    first, second = ([(seed + number) * half, (seed - number) * half] for seed in (a, b))
    proof = flp.prove(column(number), np.array([[a, b]], np.uint64))
    at = [value(first, x) * value(second, x) % MODULUS for x in (1, ROOT, -1)]
    assert proof.tolist() == [[a, b, *at]]
    verifier = flp.query(column(number), proof, column(point))
    lines = value(first, point), value(second, point)
    assert verifier.tolist() == [[0, *lines, lines[0] * lines[1] % MODULUS]]
    assert flp.decide(verifier).tolist() == [True]


@quick
@given(
    ELEMENTS.filter(lambda m: m > 1), ELEMENTS, ELEMENTS, st.tuples(ELEMENTS, ELEMENTS), ELEMENTS
)
def test_the_best_false_proof_is_accepted_at_two_points_and_no_others(m, a, b, lucky, point):
    """Whoever knew the point could cheat; 2/p is the chance to guess it."""
    one, two = lucky
    if {one, two} & {1, MODULUS - 1}:
        return
    scale = (m - m * m) * pow((-1 - one) * (-1 - two), -1, MODULUS)
    proof = flp.prove(column(m), np.array([[a, b]], np.uint64))
    wrong = [scale * (x - one) * (x - two) for x in (1, ROOT, -1)]
    proof[:, 2:] = field64.add(proof[:, 2:], column(*wrong))
    assert proof[0, 4] == m
    points = column(one, two, point)
    query = flp.query(column(m, m, m), proof.repeat(3, axis=0), points)
    assert flp.decide(query).tolist() == [True, True, point in lucky]


# Honest devices


@pytest.mark.long
@quick
@given(BITS, st.binary(min_size=1, max_size=8), st.integers(2, 4))
def test_honest_bits_are_accepted_and_their_sum_is_exact(bits, seed, aggregators):
    prio = Prio3Count(b"visits", aggregators)
    shares = sharded(bits, seed, prio)
    assert [len(share) for share in shares] == [48 * len(bits)] + [32 * len(bits)] * (
        aggregators - 1
    )
    found = verified(shares, len(bits), prio)
    accepted = decided(found, prio)
    assert accepted.all()
    assert all(one.valid.all() for one in found)
    assert unshard(*(aggregate(one.outputs, accepted) for one in found)) == sum(bits)


def test_only_what_is_accepted_is_added_up():
    found = verified(sharded([1, 1, 0, 1], b"x"), 4)
    for chosen in ([True, False, True, True], [False] * 4, [False, True, False, False]):
        accepted = np.array(chosen)
        total = unshard(*(aggregate(one.outputs, accepted) for one in found))
        assert total == (accepted * [1, 1, 0, 1]).sum()


def test_a_report_is_a_row():
    bits = [1, 0, 1]
    many = sharded(bits, b"rows")
    for row, bit in enumerate(bits):
        random = stretched(b"rows", 192)[64 * row : 64 * row + 64]
        one = PRIO.shard([bit], random)
        assert one[0] == many[0][48 * row :][:48]
        assert one[1] == many[1][32 * row :][:32] == random[:32]
        nonce = nonces_of(3)[16 * row :][:16]
        for single, all_ in (
            (PRIO.verify_leader(KEY, nonce, one[0]), verified(many, 3)[0]),
            (PRIO.verify_helper(KEY, nonce, one[1]), verified(many, 3)[1]),
        ):
            assert single.outputs[0] == all_.outputs[row]
            assert single.verifiers == all_.verifiers[32 * row :][:32]


def test_there_may_be_no_reports():
    found = verified(PRIO.shard([], b""), 0)
    assert decided(found).tolist() == []
    assert unshard(*(aggregate(one.outputs, decided(found)) for one in found)) == 0


def test_bits_of_numpy_and_of_python_are_the_same():
    random = stretched(b"kinds", 128)
    for bits in ([True, False], np.array([1, 0], np.uint8), (1, 0), np.array([True, False])):
        assert PRIO.shard(bits, random) == PRIO.shard([1, 0], random)


# Devices that are not


def forged(numbers, proofs, seeds, prio=PRIO):
    """Shares of any numbers, with any proofs."""
    helper = prio._expanded(seeds, 1)
    leader = field64.subtract(np.column_stack([numbers, proofs]), helper)
    return field64.encode(leader), b"".join(seeds)


@quick
@given(
    st.sampled_from([2, -1, 1_000_000]) | ELEMENTS.filter(lambda m: m > 1),
    st.lists(ELEMENTS, min_size=5, max_size=5),
    st.binary(min_size=32, max_size=32),
)
def test_no_other_number_is_accepted_with_any_proof(number, proof, seed):
    """Each is accepted with a probability of 2/p at most, below 2**-62."""
    right = flp.prove(column(number), np.array([proof[:2]], np.uint64))[0].tolist()
    proofs = [right, [*right[:4], number], [*right[:2], *proof[2:]], proof, [0] * 5]
    numbers = column(*[number] * len(proofs))
    shares = forged(numbers, np.array([column(*one) for one in proofs]), [seed] * len(proofs))
    found = verified(shares, len(proofs))
    assert all(one.valid.all() for one in found)
    assert not decided(found).any()


def test_an_honest_proof_by_the_same_way_is_accepted():
    """So that the others are refused for what they are."""
    numbers, seeds = column(0, 1), np.array([[5, 6], [7, 8]], np.uint64)
    shares = forged(numbers, flp.prove(numbers, seeds), [bytes(32), bytes(range(32))])
    assert decided(verified(shares, 2)).all()


@quick
@given(st.data())
def test_a_byte_that_was_changed_is_seen_and_the_others_are_counted(data):
    """Each is accepted with a probability of 2/p at most, below 2**-62."""
    bits = data.draw(BITS, "bits")
    shares = list(sharded(bits, b"changed"))
    found = verified(shares, len(bits))
    rows = [*shares, *(one.verifiers for one in found)]
    which = data.draw(st.integers(0, 3), "which")
    place = data.draw(st.integers(0, len(rows[which]) - 1), "place")
    spoilt = bytearray(rows[which])
    spoilt[place] ^= data.draw(st.integers(1, 255), "by")
    rows[which] = bytes(spoilt)
    if which < 2:
        found = verified(rows[:2], len(bits))
        rows[2:] = (one.verifiers for one in found)
    accepted = PRIO.decide(*rows[2:])
    refused = place * len(bits) // len(spoilt)
    assert accepted.tolist() == [row != refused for row in range(len(bits))]
    total = unshard(*(aggregate(one.outputs, accepted) for one in found))
    assert total == sum(bits) - bits[refused]


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("word", [MODULUS, MODULUS + 1, 2**64 - 1])
def test_what_is_no_element_is_refused_in_its_row_alone(place, word):
    leader, helper = sharded([1, 1, 1], b"words")
    spoilt = bytearray(leader)
    start = 48 + 8 * place
    spoilt[start : start + 8] = word.to_bytes(8, "little")
    found = verified((bytes(spoilt), helper), 3)
    assert found[0].valid.tolist() == decided(found).tolist() == [True, False, True]
    assert found[0].outputs[1] == 0
    assert found[1].valid.all()


@pytest.mark.parametrize("place", range(4))
def test_a_verifier_has_one_form(place):
    """Words that are equal in the field would let a report have two verifiers."""
    small = np.array([[3, 4, 5, 6]], np.uint64)
    rest = field64.subtract(np.array([[0, 2, 3, 6]], np.uint64), small)
    assert PRIO.decide(field64.encode(rest), field64.encode(small)).tolist() == [True]
    small[0, place] += MODULUS
    assert PRIO.decide(field64.encode(rest), field64.encode(small)).tolist() == [False]
    assert PRIO.decide(field64.encode(small), field64.encode(rest)).tolist() == [False]


def test_no_verifier_makes_up_for_a_report_that_is_not_valid():
    found = PRIO.verify_leader(KEY, nonces_of(1), b"\xff" * 48)
    assert not found.valid.any()
    for other in (bytes(32), found.verifiers, field64.encode(column(1, 1, 1, 1))):
        assert not PRIO.decide(found.verifiers, other).any()


@pytest.mark.parametrize("point", [1, -1])
def test_nobody_asks_where_the_answer_would_be_the_measurement(point, monkeypatch):
    leader, _ = sharded([1], b"point")
    monkeypatch.setattr(Prio3Count, "_elements", lambda *_: column(point)[:, np.newaxis])
    found = PRIO.verify_leader(KEY, nonces_of(1), leader)
    assert found.valid.tolist() == [False]
    assert found.verifiers == b"\xff" * 32


# Who does not agree


@quick
@given(st.binary(max_size=20), st.integers(0, 1))
def test_shares_of_one_context_are_refused_in_another(context, bit):
    other = Prio3Count(context + b"?")
    shares = sharded([bit], b"context")
    assert decided(verified(shares, 1)).all()
    assert not decided(verified(shares, 1, other), other).any()


@quick
@given(st.binary(min_size=1, max_size=4), st.integers(0, 1), st.integers(0, 1))
def test_aggregators_that_ask_at_different_points_accept_nothing(seed, bit, whose):
    leader, helper = sharded([bit], b"points")
    for keys, nonces in (
        ([KEY, stretched(seed, 32)], [nonces_of(1)] * 2),
        ([KEY] * 2, [nonces_of(1), stretched(seed, 16)]),
    ):
        one = PRIO.verify_leader(keys[whose], nonces[whose], leader)
        other = PRIO.verify_helper(keys[1 - whose], nonces[1 - whose], helper)
        assert not PRIO.decide(one.verifiers, other.verifiers).any()


@pytest.mark.parametrize("bit", [0, 1])
def test_half_of_a_share_that_is_verified_twice_tells_the_bit(bit):
    """Why servers remember parts of shares: the helper asks for the leader's part again."""
    leader, helper = sharded([bit], b"twice")
    mixed = leader[:24] + bytes(24)
    (at_1, value_1), (at_2, value_2) = (
        (
            PRIO._elements(5, [KEY], [b"\x01" + nonce], 1).item(),
            int.from_bytes(PRIO.verify_leader(KEY, nonce, share).verifiers[8:16], "little"),
        )
        for nonce, share in ((bytes(16), leader), (bytes(range(16)), mixed))
    )
    slope = (value_2 - value_1) * pow(at_2 - at_1, -1, MODULUS)
    leaders = value_1 + slope * (-1 - at_1)
    helpers = PRIO.verify_helper(KEY, bytes(16), helper).outputs.item()
    assert (leaders + helpers) % MODULUS == bit


def test_helpers_do_not_stand_in_for_each_other():
    prio = Prio3Count(b"three", 3)
    leader, one, two = sharded([1], b"three", prio)
    assert decided(verified((leader, one, two), 1, prio), prio).all()
    assert not decided(verified((leader, two, one), 1, prio), prio).any()


# Sums


@pytest.mark.parametrize(
    ("aggregates", "total"),
    [
        ((5, MODULUS - 7), -2),
        ((0, 0), 0),
        ((MODULUS // 2, 0), MODULUS // 2),
        ((MODULUS // 2, 1), -(MODULUS // 2)),
        ((MODULUS - 1, MODULUS - 1, 3), 1),
    ],
)
def test_sums_above_the_middle_are_negative(aggregates, total):
    assert unshard(*aggregates) == unshard(*map(np.uint64, aggregates)) == total


def test_what_is_accepted_may_be_numbers():
    assert aggregate(column(5, 7), np.array([0, 1])) == 7


def test_large_shares_add_up_without_an_overflow():
    outputs = np.full(1_000, MODULUS - 1, np.uint64)
    assert aggregate(outputs, np.ones(1_000, bool)) == MODULUS - 1_000


# What cannot be used


SHARES = PRIO.shard([1, 0], bytes(128))
LEADER, HELPER = PRIO.verify_leader, PRIO.verify_helper


NOT_BITS = "expected a sequence of measurements, each 0 or 1"
NO_AGGREGATE = f"an aggregate must be a whole number from 0 to {MODULUS - 1}"


def row(number):
    return f"row {number} (counting from 1): a measurement must be 0 or 1"


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (lambda: PRIO.shard([1, 0], bytes(127)), "random must be bytes, 128 of them"),
        (lambda: PRIO.shard([1], bytes(128)), "random must be bytes, 64 of them"),
        (lambda: PRIO.shard([0, 2], bytes(128)), row(2)),
        (lambda: PRIO.shard([-1], bytes(64)), row(1)),
        (lambda: PRIO.shard([0.5], bytes(64)), NOT_BITS),
        (lambda: PRIO.shard([[1]], bytes(64)), NOT_BITS),
        (lambda: PRIO.shard([2**70], bytes(64)), NOT_BITS),
        (lambda: PRIO.shard(1, bytes(64)), NOT_BITS),
        (lambda: PRIO.shard("10", bytes(128)), NOT_BITS),
        (lambda: LEADER(KEY[1:], bytes(32), SHARES[0]), "verify_key must be bytes, 32 of them"),
        (lambda: LEADER(KEY, bytes(31), SHARES[0]), "nonces must be bytes, 32 of them"),
        (lambda: LEADER(KEY, bytes(16), SHARES[0]), "nonces must be bytes, 32 of them"),
        (lambda: LEADER(KEY, bytes(32), SHARES[1]), "shares must be bytes, 48 for each report"),
        (lambda: HELPER(KEY, bytes(32), SHARES[1][1:]), "seeds must be bytes, 32 for each report"),
        (lambda: HELPER(KEY, bytes(32), "x" * 64), "seeds must be bytes, 32 for each report"),
        (lambda: HELPER(KEY, bytes(48), SHARES[1]), "nonces must be bytes, 32 of them"),
        (lambda: PRIO.decide(bytes(32)), "expected the verifiers of 2 aggregators"),
        (lambda: PRIO.decide(*[bytes(32)] * 3), "expected the verifiers of 2 aggregators"),
        (lambda: PRIO.decide(bytes(32), bytes(64)), "verifiers must be bytes, 32 of them"),
        (lambda: PRIO.decide(bytes(31), b""), "verifiers must be bytes, 32 for each report"),
        (lambda: unshard(MODULUS, 0), NO_AGGREGATE),
        (lambda: unshard(-1, 0), NO_AGGREGATE),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(action, says):
    with pytest.raises(InputError, match=f"^{re.escape(says)}$"):
        action()


@pytest.mark.parametrize(
    "action",
    [
        lambda: Prio3Count("text"),
        lambda: Prio3Count(bytes(2**16 - 8)),
        lambda: Prio3Count(b"", 1),
        lambda: Prio3Count(b"", 256),
        lambda: PRIO.verify_helper(KEY, bytes(16), bytes(32), 0),
        lambda: PRIO.verify_helper(KEY, bytes(16), bytes(32), 2),
    ],
)
def test_parameters_out_of_range_are_refused(action):
    with pytest.raises(PlanError):
        action()


def test_the_longest_context_is_one():
    prio = Prio3Count(bytes(2**16 - 9))
    assert decided(verified(sharded([1], b"long", prio), 1, prio), prio).all()


@quick
@given(*[st.binary(max_size=100)] * 5)
def test_any_bytes_are_verified_or_refused(key, nonces, leader, helper, verifiers):
    for action in (
        lambda: PRIO.verify_leader(key, nonces, leader),
        lambda: PRIO.verify_helper(key, nonces, helper),
        lambda: PRIO.decide(verifiers, leader),
        lambda: PRIO.shard([1], leader),
    ):
        with suppress(InputError):
            action()


@quick
@given(st.lists(st.binary(min_size=48, max_size=48), min_size=1, max_size=4))
def test_no_bytes_of_the_right_length_stop_a_batch(reports):
    """A leader's share that is made up is refused in its row; an honest one beside it is not."""
    leader, helper = sharded([1], b"beside")
    shares = b"".join(reports) + leader, helper * len(reports) + helper
    accepted = decided(verified(shares, len(reports) + 1)).tolist()
    assert accepted == [False] * len(reports) + [True]


def test_what_is_secret_is_not_shown():
    assert "outputs" not in repr(verified(SHARES, 2)[0])


def test_what_was_agreed_on_stays():
    with pytest.raises(AttributeError):
        PRIO.context = b"another"
