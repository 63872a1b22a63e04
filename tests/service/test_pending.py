"""The place for a release that waits: of one size, and what is put there comes back exactly."""

from __future__ import annotations

import itertools
import math
from contextlib import suppress
from dataclasses import fields, replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from panprivacy.errors import InputError, PanPrivacyError
from panprivacy.intake.programs.counting import Grouping, make_counting
from panprivacy.service.outgoing import pending
from panprivacy.service.outgoing.payment import entries
from panprivacy.service.outgoing.pending import NUMBERS, Pending, PendingSlot, costs
from panprivacy.service.outgoing.records import NULLABLE, Moment, Published
from panprivacy.service.outgoing.results import published
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.soft.block_plans import IN_PART
from panprivacy.statistics.specification import Specification
from tests.docs.statistics import EXAMPLES
from tests.service.test_stream import planned

LAST = "the last of 1,000,000 updates: it stays, however the number moves"
TEXTS = [
    *(text for name, text in EXAMPLES.items() if name != "heavy-hitters"),
    "heavy-hitters,k=64,total=12_800",
    "incidence,bound=3,universe=90,below=2",
]
BEGAN, UNTIL, ENDS = (datetime(2026, 11, 16, 9, at, 0, at, UTC) for at in (0, 7, 59))
PAYER = "0123456789abcdef"


def made(counting, answers, number=1, place=None, sealed=None):
    """A release with answers."""
    place = place or number
    lines = entries("visits", BEGAN, ENDS, number, PAYER, costs(counting, place))
    moment = Moment("visits", BEGAN, UNTIL, number, complete=True, released=UNTIL)
    return Pending(lines, published(answers, counting, 0.9, moment), place, sealed)


def room(counting, sealed_bytes=0):
    return PendingSlot("visits", counting, 0.9, sealed_bytes)


def same(one, other):
    """Whether all of two releases is equal."""
    return (list(one.lines), list(one.rows), one.place, one.sealed) == (
        *(list(other.lines), list(other.rows), other.place, other.sealed),
    )


def test_a_release_comes_back_as_it_was_whatever_is_in_it():
    counting = planned(releases=3).make_counting()
    place = room(counting, 99)
    for number, at, sealed in ((1, 1, None), (3, 1, b"sealed"), (3, 2, b"\0" * 99)):
        one = made(counting, counting.internals.releasing.lost(), number, at, sealed)
        one.rows = [
            replace(row, value=value, low=-value, high=math.inf, note=note)
            for row, value, note in zip(
                one.rows, (0.1, 1e300, 5e-324), ("one", None, "one; two"), strict=True
            )
        ]
        place.check(one)
        packed = place.packed(one)
        assert len(packed) == place.size
        assert same(place.unpacked(packed, counting), one)
        assert place.unpacked(packed, counting).kept
    assert place.unpacked(place.packed(None), counting) is None
    assert len(place.packed(None)) == place.size


def test_all_of_a_row_but_its_numbers_and_note_is_public_before_it_is_made():
    """A new column that depends on what was counted needs a place of its own."""
    counting = planned().make_counting()
    (*_, blank) = made(counting, counting.internals.releasing.lost()).rows
    (*_, full) = made(counting, counting.release(confidence=0.9)).rows
    differ = {
        one.name for one in fields(Published) if getattr(blank, one.name) != getattr(full, one.name)
    }
    assert differ <= {*NUMBERS, "note"}
    assert {*NUMBERS, "note"} <= NULLABLE


@pytest.mark.parametrize(
    "text",
    [
        one
        if one.startswith(("distinct", "density"))
        else pytest.param(one, marks=pytest.mark.long)
        for one in TEXTS
    ],
)
def test_of_each_statistic_a_release_fits_and_comes_back(text):
    """Alone and in groups, lost and not; the price is what the ledger of the statistic says."""
    for grouping in (None, Grouping(["a", "b"])):
        counting = make_counting(
            [Specification.from_text(text)], epsilon=Fraction(40), grouping=grouping
        )
        place, cost = (
            room(counting),
            (
                counting.internals.releasing.state_epsilon,
                counting.internals.releasing.release_epsilon,
            ),
        )
        assert costs(counting, 1) == cost
        for answers in (counting.internals.releasing.lost(), counting.release(confidence=0.9)):
            one = made(counting, answers)
            place.check(one)
            packed = place.packed(one)
            assert len(packed) == place.size
            assert same(place.unpacked(packed, counting), one)


def test_a_last_answer_that_moved_fits_with_all_that_it_may_say():
    counting = make_counting(
        [Specification.from_text("density,universe=99")],
        epsilon=Fraction(40), releases=3, moves=Fraction(1, 2),
    )  # fmt: skip
    one = made(counting, counting.internals.releasing.lost())
    one.rows = [replace(row, note=f"{'more noise than signal: ' * 12}; {LAST}") for row in one.rows]
    room(counting).check(one)


def test_what_does_not_fit_is_refused():
    counting = planned().make_counting()
    one, place = made(counting, counting.internals.releasing.lost()), room(counting, 4)
    place.check(one)
    wrong = [
        replace(one, sealed=b"12345"),
        replace(one, rows=[]),
        replace(one, rows=[replace(row, question="other") for row in one.rows]),
        replace(one, rows=[replace(row, note=f"{at}" * 9_000) for at, row in enumerate(one.rows)]),
    ]
    for other in wrong:
        with pytest.raises(PanPrivacyError, match=r"than its plan says; please report it"):
            place.check(other)


def test_what_is_damaged_is_refused_in_one_line():
    counting = planned(releases=3).make_counting()
    place = room(counting, 4)
    packed = place.packed(made(counting, counting.internals.releasing.lost(), 2, 2, b"abcd"))
    for at in range(1, pending._FRONT.size):
        for byte in (0, 0x7F, 0xFF):
            spoilt = packed[:at] + bytes([byte]) + packed[at + 1 :]
            with suppress(InputError):
                found = place.unpacked(spoilt, counting)
                assert 1 <= found.place <= found.line.number <= 3
    with pytest.raises(InputError, match="the state is damaged: no release waits like this"):
        place.unpacked(packed[:8] + b"\xff" * 9 + packed[17:], counting)


def test_a_note_that_is_not_there_is_refused():
    counting = planned().make_counting()
    place = room(counting)
    packed = bytearray(place.packed(made(counting, counting.internals.releasing.lost())))
    packed[pending._FRONT.size + 3 * 8 * len(NUMBERS)] = 9  # after three rows of numbers
    with pytest.raises(InputError, match="damaged"):
        place.unpacked(bytes(packed), counting)


def test_all_that_can_be_said_of_one_question_fits():
    """Of the noise and the range, beside the longest remarks of a plan."""
    ends = [-3.0, -1.0, 1e-3, 1.0, 30.0, 1e12, 3e12, math.inf]
    longest = f"{IN_PART}, and much more than any plan says of states"
    said = {
        note_on(low, high, (1e9, 1e11), "share of the universe", longest, value)
        for low, high in itertools.combinations_with_replacement(ends, 2)
        for value in (low, None)
    }
    said |= {f"{note}; {LAST}" for note in said}
    assert len(said) / 2 <= pending._MOST_NOTES
    assert max(map(len, said)) <= pending._NOTE_BYTES
