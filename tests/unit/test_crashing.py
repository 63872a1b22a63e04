"""Running sketches and a counter with crashes: what their subjects are, and what they lose."""

from __future__ import annotations

import contextvars
from dataclasses import replace
from fractions import Fraction

import pytest

from panprivacy.audit.crashes import Restarted
from panprivacy.audit.crashing import (
    AGAIN_AND_AGAIN,
    RISING,
    counter_crashes,
    cropped_crash,
    heavy_crash,
)
from panprivacy.audit.exact.separate import separate_loss
from panprivacy.audit.exact.shifts import ShiftedCoins
from panprivacy.audit.streams import CRASH, RELEASE, SAVE
from panprivacy.errors import PanPrivacyError

ONE, HALF = Fraction(1), Fraction(1, 2)
MADE = [cropped_crash, heavy_crash, counter_crashes]
SKETCHES = [cropped_crash, heavy_crash]
WALKED = 1
"""Noise of a cell that a short test walks; the audit walks all that is likely."""


def loss(subject, stream, *batches):
    """What the subject loses where these steps of the stream are without their events."""
    other = [[] if at in batches else step for at, step in enumerate(stream)]
    few = replace(subject, most=min(subject.most, WALKED))
    return separate_loss(few.program, [(stream, other)])


def test_each_crash_loses_an_event_that_is_saved_nowhere():
    for crashes, streams in ((1, RISING), (2, AGAIN_AND_AGAIN)):
        for stream in streams:
            assert stream.count(CRASH) == crashes
            assert stream.count(SAVE) == 1
            assert stream[stream.index(SAVE) :][:3] == [SAVE, [0], CRASH]
            assert stream[-1] == RELEASE
    assert RISING[0].count(RELEASE) == 4
    assert {stream.count(RELEASE) for stream in AGAIN_AND_AGAIN} == {3}


def test_an_event_that_is_lost_is_sent_again():
    (rising,) = RISING
    later, same = AGAIN_AND_AGAIN
    assert rising[rising.index(CRASH) :] == [CRASH, RELEASE, [0], RELEASE, [0], RELEASE]
    assert later[2:] == [CRASH, RELEASE, [0], RELEASE, CRASH, [0], RELEASE]
    assert same[2:5] == [CRASH, [0], CRASH]
    assert [0] not in same[5:]


@pytest.mark.parametrize(
    ("make", "name", "of", "streams", "cells"),
    [
        (cropped_crash, "running-cropped-crash", "a running cropped sum", RISING, 1),
        (heavy_crash, "running-heavy-crash", "a running count of heavy hitters", RISING, 2),
        (counter_crashes, "counter-crashes", "a counter of which two", AGAIN_AND_AGAIN, 0),
    ],
)
def test_a_subject_is_what_it_says(make, name, of, streams, cells):
    subject = make(ONE)
    assert subject.name == name
    assert subject.says.startswith(of)
    assert "crash" in subject.says
    assert subject.kind == "product"
    assert subject.adjacency == "event"
    assert subject.users == ((0, 0),)
    assert subject.streams is streams
    assert subject.cells == cells


@pytest.mark.parametrize("make", MADE)
def test_a_subject_is_made_once_for_an_epsilon_and_without_leave(make):
    apart = Fraction(1, 4)
    made = contextvars.Context().run(make, apart)
    assert make(apart) is made
    assert make(ONE) is not made


@pytest.mark.parametrize(
    ("make", "claimed"),
    [
        (cropped_crash, {ONE: Fraction(11, 8), HALF: Fraction(43, 64)}),
        (heavy_crash, {ONE: Fraction(43, 32), HALF: Fraction(43, 64)}),
        (counter_crashes, {ONE: 4, HALF: 2}),
    ],
)
def test_a_claim_is_that_of_as_many_crashes(make, claimed):
    assert {epsilon: make(epsilon).claimed for epsilon in claimed} == claimed


@pytest.mark.parametrize("epsilon", [ONE, HALF])
@pytest.mark.parametrize("make", SKETCHES)
def test_noise_of_a_cell_is_walked_to_eighteen_scales(make, epsilon):
    subject = make(epsilon)
    scale = subject.make(ShiftedCoins()).program.plan.inner.scale
    assert subject.most - 1 < 18 * scale <= subject.most


@pytest.mark.parametrize("make", SKETCHES)
def test_an_event_is_in_one_cell_of_a_sketch_until_the_crash(make):
    subject = make(ONE)
    program = subject.make(ShiftedCoins())
    assert isinstance(program, Restarted)
    program.release()
    program.save()
    born = subject.numbers(program)
    program.update([0])
    seen = subject.numbers(program)
    assert len(born.cells) == subject.cells
    assert [one - other for one, other in zip(seen.cells, born.cells, strict=True)].count(1) == 1
    assert sum(seen.cells) - sum(born.cells) == 1
    assert born.sums == [0] != seen.sums
    program.crash()
    assert subject.numbers(program) == born


def test_a_counter_adds_each_event_to_its_node_until_the_crash():
    subject = counter_crashes(ONE)
    program = subject.make(ShiftedCoins())
    assert isinstance(program, Restarted)
    program.save()
    assert subject.numbers(program) == ([], [0])
    program.update([0, 0, 0])
    assert subject.numbers(program) == ([], [3])
    program.crash()
    assert subject.numbers(program) == ([], [0])
    program.update([0])
    assert program.release().counts == (1,)


@pytest.mark.parametrize(
    ("make", "exact", "cell"),
    [
        (cropped_crash, Fraction(237_925, 195_184), 0),
        (heavy_crash, Fraction(23_227_279, 20_891_264), 1),
    ],
)
def test_a_sketch_loses_most_of_its_claim_where_a_crash_loses_an_event(make, exact, cell):
    subject = make(ONE)
    found = loss(subject, RISING[0], 2)
    assert (found.exact, found.cell, found.after_step) == (exact, cell, 3)
    assert 1 < found.exact < subject.claimed


@pytest.mark.parametrize(
    ("stream", "batches", "exact"),
    [(0, [1], 2), (0, [1, 4, 7], 4), (1, [1], 2), (1, [1, 3], 2)],
)
def test_a_counter_loses_all_of_its_claim_where_a_later_step_has_the_event_again(
    stream, batches, exact
):
    subject = counter_crashes(ONE)
    assert loss(subject, AGAIN_AND_AGAIN[stream], *batches).exact == exact
    assert exact <= subject.claimed


@pytest.mark.parametrize("make", SKETCHES)
def test_a_sketch_answers_as_often_as_its_stream_asks(make):
    program = make(ONE).make(ShiftedCoins())
    for _ in range(RISING[0].count(RELEASE)):
        program.release()
    with pytest.raises(PanPrivacyError):
        program.release()
