"""Plans of counters of blocks: thresholds that rise, what moves a cell, and what is refused."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.errors import PlanError
from panprivacy.statistics.cropped.sizes import CroppedSizes
from panprivacy.statistics.notes import ROOM
from panprivacy.statistics.soft.block_plans import IN_PART, refused
from panprivacy.tables.planning.blocks import count_range
from panprivacy.tables.planning.request import Request
from tests.commands import run_command


def plan(**given):
    sizes = {"threshold": 8, "universe": 2_000, "epsilon": 4, **given}
    return pp.ThresholdCount(**sizes).plan


def test_a_soft_threshold_counts_users_by_how_far_they_are_on_the_way():
    made = plan()
    assert made.high == 2 * made.low
    states = np.array([-5, 0, made.low, made.low * 3 // 2, made.high, 9 * made.high])
    assert made.truth(None, states, None) == pytest.approx(0 + 0 + 0 + 0.5 + 1 + 1)
    assert made.synthetic_users(7.0) == (7.0, made.high)


@pytest.mark.parametrize(
    "made",
    [
        plan(),
        pp.CroppedSum(tau=3, bound=9, universe=1_000, epsilon=4).plan,
        pp.HeavyHitterCount(k=50, total=20_000, epsilon=4).plan,
    ],
    ids=lambda made: type(made).__name__,
)
def test_the_modulus_is_so_many_blocks(made):
    assert made.block > 1
    assert made.modulus == made.block * made.chosen.modulus
    assert made.law.modulus == made.modulus


def test_a_soft_threshold_moves_as_far_as_its_counts_reach_and_by_1_after_a_look():
    made = plan()
    assert made.sensitivity(0) == count_range(made.chosen) > 1
    assert made.sensitivity(1) == 1


def test_who_is_below_0_is_remarked_unless_there_is_room():
    tight = plan()
    assert tight.caveat == IN_PART
    told = f"users with a sum of deltas below 0 count in part, from -{tight.low} on in full: "
    assert tight.remarks == (told + ROOM,)
    assert plan(below=5).caveat is None


def test_more_memory_never_errs_more():
    errors = [
        pp.CroppedSum(
            tau=3, bound=9, universe=50_000, epsilon=1, memory=memory
        ).plan.absolute_error()
        for memory in (2_000, 20_000, 200_000)
    ]
    assert errors == sorted(errors, reverse=True)


def test_an_epsilon_that_leaves_no_signal_is_refused():
    with pytest.raises(PlanError):
        pp.CroppedSum(tau=3, bound=9, universe=1_000, epsilon="1e-9")


@pytest.mark.parametrize(
    ("stat", "says"),
    [
        ("heavy-hitters,k=10,total=200", "a count of heavy hitters .* times k; make a fresh one"),
        ("cropped-sum,tau=5,expected=1000:1e5", "levels of a cropped sum .* times the sum; make"),
        ("cropped-sum,tau=5,expected=3000", "so few hashed users .* times the largest sum, tau"),
    ],
)
def test_who_cannot_be_read_after_two_says_how_much_it_would_err(stat, says):
    result = run_command("plan", stat, "--epsilon", "4", "--intrusions", "2")
    assert (result.code, result.stdout) == (2, "")
    assert re.search(says, result.stderr)
    error = re.search(r"at least about (\S+) times", result.stderr)[1]
    assert float(error) > 10


def test_what_is_refused_would_err_more_than_it_says():
    """Of one table of as many blocks, whose price is computed, and not extrapolated."""
    sizes = CroppedSizes.read("", {"tau": 5, "universe": 3_000, "bound": 20})
    for intrusions in (2, 3):
        request = Request(Fraction(4), 1, intrusions)
        told = str(refused(sizes, request, "it"))
        least = float(re.search(r"at least about (\S+) times", told)[1])
        assert least < sizes.planned(request).relative_error()
