"""The group is that of the book, nonces are uniform, and what is no point is refused."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from panprivacy.devices.federated import group
from panprivacy.errors import InputError, install
from panprivacy.privacy.coins import SystemCoins
from tests.docs.pins import ROOT
from tests.unit import secp256k1 as book
from tests.unit.drawn import Scripted

NUMBERS = st.integers(1, group.ORDER - 1)
EDGES = [1, 2, 255, 256, 2**128, 2**248, 2**255, group.ORDER // 2, group.ORDER - 2, group.ORDER - 1]
TABLE = group.Multiples(group.base_multiples(group.scalars(group.scalar(3))))


def points(*numbers):
    """The multiples of the base point by these numbers."""
    return group.base_multiples(group.scalars(*map(group.scalar, numbers)))


def encoded(found):
    return [row.tobytes() for row in group.encode(found)]


def by_the_book(*numbers):
    return [book.encode(book.times(number)) for number in numbers]


def test_the_base_and_the_order_are_those_of_sec_2():
    assert group.ORDER == book.ORDER
    assert encoded(points(1)) == [book.encode(book.BASE)]
    assert book.times(book.ORDER - 1) == (book.BASE[0], book.PRIME - book.BASE[1])


def test_multiples_of_the_base_are_those_of_the_book():
    assert encoded(points(*EDGES)) == by_the_book(*EDGES)


@given(NUMBERS, NUMBERS)
@example(5, 5)
@settings(max_examples=20)
def test_sums_are_those_of_the_book(one, other):
    assume((one + other) % group.ORDER)  # the neutral element has no encoding
    assert encoded(group.add(points(one), points(other))) == by_the_book(one + other)
    assert encoded(group.negated(points(one))) == by_the_book(-one)


def test_what_has_one_row_is_added_to_each_row():
    assert encoded(group.add(points(4, 5, 6), points(7), points(1, 2, 3))) == by_the_book(
        12, 14, 16
    )
    with pytest.raises(ValueError, match="differ in length"):
        group.add(points(1, 2, 3), points(1, 2))
    assert group.add(points(), points(), points(1)).shape == (0, 64)


@given(NUMBERS, NUMBERS)
@settings(max_examples=20)
def test_all_ways_to_multiply_agree_with_the_book(factor, number):
    product, scalar = by_the_book(factor * number), group.scalar(factor)
    assert encoded(group.scaled(points(number), scalar)) == product
    assert encoded(group.shared(points(number), scalar)) == product
    assert group.scaled_secret(scalar, group.scalar(number)) == group.scalar(factor * number)
    (hashed,) = group.shared_hashes(points(number), scalar)
    assert hashed.tobytes() == hashlib.sha256(product[0]).digest()
    assert group.hashes(group.parse(np.frombuffer(product[0], np.uint8)[None]))[0].tobytes() == (
        hashed.tobytes()
    )


@given(st.lists(st.integers(0, group.ORDER - 1), min_size=1, max_size=4))
@example([*EDGES, 0])
@settings(max_examples=20)
def test_a_table_gives_the_multiples_of_the_book(factors):
    scalars = group.scalars(*map(group.scalar, factors))
    columns = points(*range(1, len(factors) + 1)), points(11)
    expected = by_the_book(*(3 * r + i + 12 for i, r in enumerate(factors)))
    assert encoded(TABLE.added_to(*columns, factors=scalars)) == expected


def test_a_table_has_all_multiples_of_each_digit():
    """Every entry is used: each digit of each window, beside random others."""
    drawn = np.random.default_rng(1).integers(0, 256, (256, 32), np.uint8)
    drawn[:, 0] = 0  # so that all are below the order
    for window in range(1, 32):
        drawn[:, window] = np.roll(np.arange(256), window)
    factors = np.concatenate(
        [drawn, *[group.scalars(group.scalar(d << 248)) for d in range(1, 255)]]
    )
    whole = [int.from_bytes(row.tobytes(), "big") for row in factors]
    expected = group.base_multiples(group.scalars(*(group.scalar(3 * number) for number in whole)))
    assert encoded(TABLE.added_to(factors=factors)) == encoded(expected)


def test_a_progression_goes_in_equal_steps():
    assert encoded(group.progression(points(9), points(4), 7)) == by_the_book(*range(9, 37, 4))


@pytest.mark.parametrize(
    "neutral",
    [
        lambda: group.base_multiples(group.scalars(group.scalar(1), group.scalar(0))),
        lambda: group.base_multiples(group.scalars(group.scalar(1), bytes(32))),
        lambda: group.add(points(4, 5), points(1, group.ORDER - 5)),
        lambda: TABLE.added_to(
            points(1, group.ORDER - 6), factors=group.scalars(group.scalar(2), group.scalar(2))
        ),
    ],
)
def test_a_neutral_sum_is_told_with_its_row(neutral):
    with pytest.raises(group.NeutralError) as caught:
        neutral()
    assert caught.value.row == 1


def test_a_factor_of_0_is_neutral():
    with pytest.raises(group.NeutralError):
        group.scaled(points(5), group.scalar(0))


# Encodings


@given(st.binary(min_size=33, max_size=33))
@example(b"\2" + book.PRIME.to_bytes(32, "big"))
@example(b"\2" + (book.PRIME - 1).to_bytes(32, "big"))
@example(b"\2" + b"\xff" * 32)
@example(bytes(33))
@example(b"\4" + book.encode(book.BASE)[1:])
@example(b"\5" + book.encode(book.BASE)[1:])
@example(b"\2" + (book.PRIME + book.BASE[0] % 2**31).to_bytes(32, "big"))
@settings(max_examples=300)
def test_what_is_read_is_what_the_book_reads(data):
    check_what_is_read(data)


@given(st.integers(0, 2**256 - 1), st.sampled_from([2, 3]))
@settings(max_examples=300)
def test_half_of_all_x_are_of_points_and_those_are_read(x, parity):
    """Random bytes rarely have a fitting first byte."""
    check_what_is_read(bytes([parity]) + x.to_bytes(32, "big"))


def check_what_is_read(data):
    rows = np.frombuffer(data, np.uint8).reshape(1, 33)
    if book.decode(data) is book.NEUTRAL:
        with pytest.raises(InputError) as caught:
            group.parse(rows)
        assert data.hex() not in str(caught.value)
        assert caught.value.row == 1
    else:
        assert encoded(group.parse(rows)) == [data]


def test_the_row_that_is_no_point_is_told():
    rows = np.concatenate([group.encode(points(1, 2)), np.zeros((1, 33), np.uint8)])
    with pytest.raises(InputError, match=r"^row 3 \(counting from 1\): this is no point"):
        group.parse(rows)


# Nonces


def test_what_is_not_below_the_order_is_drawn_again():
    beyond = [group.ORDER.to_bytes(32, "big"), b"\xff" * 32, (group.ORDER + 1).to_bytes(32, "big")]
    for refused in beyond:
        coins = Scripted(refused, group.scalar(8))
        assert group.draw(coins, 1).tobytes() == group.scalar(8)
        assert coins.is_used_up()


@pytest.mark.parametrize("number", [0, 1, group.ORDER - 1])
def test_what_is_below_the_order_is_taken(number):
    assert group.draw(Scripted(group.scalar(number)), 1).tobytes() == group.scalar(number)


def test_nonces_of_a_batch_are_drawn_anew_together():
    coins = Scripted(group.scalar(1) + b"\xff" * 32, group.scalar(2) + group.scalar(3))
    assert group.draw(coins, 2).tobytes() == group.scalar(2) + group.scalar(3)


def test_nonces_differ():
    drawn = group.draw(SystemCoins(), 100)
    assert len({row.tobytes() for row in drawn}) == 100


# The library


def test_one_file_imports_the_curve_library():
    files = [
        path for path in (ROOT / "src").rglob("*.py") if "import coincurve" in path.read_text()
    ]
    files += [path for path in (ROOT / "src").rglob("*.py") if "from coincurve" in path.read_text()]
    assert [path.name for path in files] == ["group.py"]


def test_without_the_library_one_line_says_what_to_install():
    code = "import sys; sys.modules['coincurve'] = None; import panprivacy\n"
    code += "import panprivacy.devices.federated\n"
    code += "import panprivacy.devices.federated.group"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stderr.splitlines()[-1] == (
        f"ImportError: statistics over devices need coincurve: {install('federated')}"
    )
