"""Moments and inner products: which plan they take, what they refuse, and what they are fed."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy.audit import RELEASE, EnumeratedCoins, exact_loss
from panprivacy.cells.additive import _clipped_product
from panprivacy.decoders.intervals import noise_quantile
from panprivacy.decoders.quadratic import Noise
from panprivacy.planning.additive import (
    AdditiveBudget,
    Reach,
    Tails,
    _clips,
    check_clip,
    designs,
    squares_fit,
)
from panprivacy.planning.request import Request, budgets
from panprivacy.service.config.loading import load
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.stream import Stream
from panprivacy.statistics.planner import check_useful
from panprivacy.testing import SeededCoins
from tests.commands import run_command


def moment(**arguments):
    return pp.FrequencyMoment(**{"order": 2, "bound": 20, "epsilon": 2, **arguments})


def inner(**arguments):
    return pp.InnerProduct(**{"bound": 10, "epsilon": 4, **arguments})


# Cells and noise


def test_clipped_cells_are_multiplied_as_whole_numbers():
    rng = np.random.default_rng(1)
    one, other = rng.integers(-(2**40), 2**40, (2, 1_000))
    cut = [np.clip(cells, -(2**20), 2**20).astype(object) for cells in (one, other)]
    assert _clipped_product(one, other, 2**20) == int(cut[0] @ cut[1])


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5), Fraction(999), Fraction(10**6)])
def test_the_cumulants_of_noise_are_those_of_its_law(scale):
    width = float(scale)
    reach = int(60 * width) + 60
    values = np.arange(-reach, reach + 1, max(reach // 10**6, 1), dtype=float)
    law = np.exp(-np.abs(values) / width)
    law /= law.sum()
    noise = Noise.laplace(scale)
    variance = float(law @ values**2)
    assert noise.variance == pytest.approx(variance, rel=1e-4)
    assert noise.cumulant == pytest.approx(float(law @ values**4) - 3 * variance**2, rel=1e-3)
    assert (noise + noise).variance == 2 * noise.variance


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("intrusions", [0, 1, 3])
def test_a_cell_has_the_noise_of_its_birth_of_each_intrusion_and_of_its_release(
    intrusions, published
):
    """A user moves both tables: from 0 to 5 once, and there and back between two moments."""
    reach, budget = Reach(5, signed=False, tables=2), AdditiveBudget(Fraction(1, 2), Fraction(1, 4))
    scales = [20, *[40] * intrusions, *[80] * published]
    found = reach.noise(budget, intrusions, published=published)
    each = [Noise.laplace(Fraction(scale)) for scale in scales]
    assert found.variance == pytest.approx(sum(one.variance for one in each))
    assert found.cumulant == pytest.approx(sum(one.cumulant for one in each))


def test_a_clip_hides_no_more_than_is_said():
    """Over random signs and cells the mean of what is cut off is below the bound, and not far."""
    reach, budget = Reach(4, signed=False, tables=1), AdditiveBudget(Fraction(2), Fraction(1))
    cells, states = 64, np.full(500, 4)
    tails = reach.tails(cells, budget, 0, float(states @ states))
    rng, coins, clip = np.random.default_rng(3), SeededCoins(3), 20
    hidden = []
    for _ in range(400):
        table = coins.discrete_laplace(reach.born(budget), cells)
        signs = rng.choice([-1, 1], len(states))
        np.add.at(table, rng.integers(cells, size=len(states)), signs * states)
        hidden.append(np.maximum(table.astype(float) ** 2 - clip**2, 0).sum())
    assert 0.02 * tails.hidden(clip) < np.mean(hidden) < tails.hidden(clip)


@pytest.mark.parametrize("clip", [1, 20, 300])
@pytest.mark.parametrize("h", [0.02, 0.3, 2.0])
def test_what_a_clip_hides_of_a_cell_is_bounded_by_at_most_twice_as_much(h, clip):
    cells = clip + np.linspace(0, 20 / h, 100_001)
    cut = float(((cells**2 - clip**2) * np.exp(-h * cells)).max())
    assert cut < Tails(((h, 0.0),)).hidden(clip) < 2 * cut
    assert Tails(((h, 1.0), (h, 0.0))).hidden(clip) == Tails(((h, 0.0),)).hidden(clip)
    assert Tails(((h, 1.0),)).hidden(clip) == pytest.approx(
        math.e * Tails(((h, 0.0),)).hidden(clip)
    )


@pytest.mark.parametrize("bound", [135_000, 136_000, 1 << 20])
@pytest.mark.parametrize("signed", [False, True])
def test_squares_of_the_largest_states_are_planned_and_counted(bound, signed):
    """What is expected unless told has more than 64 bits."""
    moment = pp.FrequencyMoment(order=2, bound=bound, signed=signed, epsilon=1)
    moment.update([1, 2], [bound, 1])
    answer = moment.release(confidence=1 - 1e-9)
    assert answer.low <= bound**2 + 1 <= answer.high


class Unseen:
    """A moment whose state nobody sees."""

    def __init__(self, coins, releases):
        budget = pp.Budget(Fraction(1, 2), 2)
        sizes = {"order": 1, "bound": 1, "budget": budget, "releases": releases}
        self.moment = pp.FrequencyMoment(epsilon=9, coins=coins, **sizes)
        self.update, self.release = self.moment.update, self.moment.release

    def state(self):
        return b""


def test_what_nobody_saw_costs_no_more_than_is_proved():
    coins = EnumeratedCoins(tail=12, state_tail=2)
    loss = exact_loss(lambda coins: Unseen(coins, 1), [[0], RELEASE], [[], RELEASE], coins=coins)
    assert Unseen(None, 1).moment.unseen == Fraction(1, 2)
    assert loss.within(Fraction(1, 2))
    assert Unseen(None, 3).moment.unseen == Fraction(9, 2)
    budget = AdditiveBudget(Fraction(5), Fraction(1))
    assert budget.unseen(releases=3, intrusions=0) == 3


# Plans


def test_a_plan_takes_one_noised_sum_where_the_answer_is_known_and_every_cell_where_it_is_not():
    known = moment(expected=(4 * 10**7, 10**8)).plan
    assert known.clip > 0
    assert known.groups == 1
    unknown = moment(expected=(10**6, 10**12)).plan
    assert (unknown.clip, unknown.groups) == (0, unknown.cells)
    forced = moment(expected=(4 * 10**7, 10**8), clip=0).plan
    assert forced.relative_error() > 2 * known.relative_error()


@pytest.mark.parametrize("order", [1, 2])
def test_the_error_is_proportional_to_the_bound(order):
    """Ten times the bound, ten times the error of a sum, and of the root of a sum of squares."""
    small, large = (moment(order=order, bound=bound).plan for bound in (20, 200))
    truth = 10**8
    ratio = large.absolute_error(truth * 10**order) / small.absolute_error(truth)
    assert ratio == pytest.approx(10**order, rel=0.01)


def test_a_user_of_two_streams_shares_one_epsilon():
    one, two = moment(bound=10, clip=0).plan, inner(epsilon=2, clip=0).plan
    budget = one.split.budget
    assert two.moves.born(budget) == 2 * one.moves.born(budget)
    assert two.sensitivity(0) == 2 * one.sensitivity(0) == 4 * one.moves.cell


def test_a_bound_far_above_what_users_do_is_refused_as_noise():
    sizes = {"order": 2, "bound": 1_000, "expected": (10**6, 10**7)}
    plan = pp.plan("moment", epsilon=1, **sizes)
    with pytest.raises(pp.PlanError, match="times the answer: the answer would be noise; epsilon"):
        check_useful(plan, moment(**sizes).sizes)


def test_a_smaller_memory_takes_fewer_cells():
    assert moment(memory=8_192).plan.cells <= 1_024
    assert inner(memory=8_192).plan.cells <= 1_024
    assert moment(cells=100).plan.cells == 100


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"order": 3}, "order must be"),
        ({"order": 1, "signed": True}, "order 1 has no signed=.*ask for order 2"),
        ({"order": 1, "cells": 8}, "order 1 keeps one sum"),
        ({"bound": 1 << 21}, "bound must be"),
        ({"cells": 8, "memory": 64}, "say cells= or memory=, not both"),
        ({"cells": 1 << 20, "clip": 1 << 30}, r"clip \(1,073,741,824\) is so large"),
        ({"expected": "9:3"}, "expected must run from low to high"),
    ],
)
def test_sizes_that_do_not_go_together_are_refused(arguments, says):
    with pytest.raises(pp.PlanError, match=says):
        moment(**arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"left": "x", "right": "x"}, "left and right must be different words"),
        ({"left": ""}, "left must be what the column of sides calls a stream"),
        ({"cells": 9}, r"cells \(9\) must be even"),
    ],
)
def test_sizes_of_two_streams_that_do_not_go_together_are_refused(arguments, says):
    with pytest.raises(pp.PlanError, match=says):
        inner(**arguments)


def test_the_condition_is_said_wherever_the_guarantee_is_shown(tmp_path):
    says = "it holds while each user's deltas add up to -20 to 20 at all times: who goes c times"
    uneven = moment(signed=True)
    assert says in str(uneven.guarantee)
    assert says in str(pp.Together({"uneven": uneven}).guarantee)
    planned = run_command("plan", "moment,order=2,bound=20,signed", "--epsilon", 1)
    assert says in planned.stdout
    seized = tmp_path / "seized.state"
    seized.write_bytes(uneven.state())
    assert says in " ".join(run_command("explain", seized).stdout.split())
    assert says in run_command("explain", seized, "--json").stdout


# Two streams


def states(statistic):
    """What the cells of each stream hold."""
    table = statistic._state.table
    return np.split(table, 2)


class Still:
    """Coins of no noise."""

    def key(self, nbytes):
        return bytes(range(nbytes))

    def discrete_laplace(self, _scale, size):
        return np.zeros(size, np.int64)


SIDES = {
    "texts": ["left", "right", "left"],
    "NumPy": np.array(["left", "right", "left"]),
    "Arrow": pa.array(["left", "right", "left"]),
    "dictionary": pa.array(["left", "right", "left"]).dictionary_encode(),
    "byte strings": pa.array([b"left", b"right", b"left"]),
}


@pytest.mark.parametrize("sides", SIDES.values(), ids=SIDES)
def test_a_column_says_which_stream_an_event_is_of(sides):
    joined = inner(coins=Still())
    joined.update(["ada", "grace", "ada"], [1, 5, 3], sides=sides)
    left, right = states(joined)
    assert (np.abs(left).sum(), np.abs(right).sum()) == (4, 5)


def test_whole_numbers_may_be_sides_and_one_word_may_be_those_of_all():
    joined = inner(left="0", right="1", coins=Still())
    joined.update([7, 8], sides=[1, 0])
    joined.update([7, 8], [2, 2], sides="1")
    joined.update([7])  # of the left one, where nothing is said
    left, right = (np.abs(cells).sum() for cells in states(joined))
    assert (left, right) == (2, 5)


def test_a_user_meets_the_same_cell_and_sign_in_both_streams():
    joined = inner(coins=Still(), clip=0)
    users = np.arange(1_000)
    joined.update(users, sides="left")
    joined.update(users, np.full(1_000, 3), sides="right")
    left, right = states(joined)
    assert (3 * left == right).all()
    assert (left < 0).any()


@pytest.mark.parametrize(
    ("sides", "says"),
    [
        (["left", "RIGHT"], "row 2 .*: the side must be left or right, as left= and right= say"),
        (["left", None], "row 2 .*: the side must be left or right"),
        ("middle", "the side must be left or right"),
        (["left"], "one side for each id: 2 ids, 1 sides"),
        ([1.5, 2.5], "the side must be left or right"),
    ],
)
def test_a_side_that_is_none_is_refused_with_its_row(sides, says):
    joined = inner()
    before = joined.state()
    with pytest.raises(pp.InputError, match=says):
        joined.update([1, 2], sides=sides)
    assert joined.state() == before


def test_a_delta_that_is_refused_is_named_by_its_row_in_the_batch():
    joined = inner()
    with pytest.raises(pp.InputError, match=r"row 4 .*: delta must lie within ±10"):
        joined.update([1, 2, 3, 4], [1, 1, 1, 99], sides=["left", "right", "left", "right"])


def test_other_statistics_count_the_events_of_both_streams():
    ledger = pp.Ledger(6)
    both = pp.Together(
        {
            "users": pp.Density(universe=1_000, epsilon=3, ledger=ledger),
            "joined": inner(epsilon=3, ledger=ledger),
        }
    )
    both.update(np.arange(900), None, np.repeat(["left", "right"], 450))
    assert both.release().where(statistic="users").only().value > 0.5


def test_groups_have_two_streams_each():
    pages = pp.Grouped(lambda epsilon: inner(epsilon=epsilon, coins=Still()), ["a", "b"], epsilon=4)
    pages.update([1, 1, 1], ["a", "a", "b"], [1, 2, 3], ["left", "right", "right"])
    sums = [[int(np.abs(cells).sum()) for cells in states(one)] for one in pages.members.values()]
    assert sums == [[1, 2], [0, 3]]


# Programs


@pytest.fixture
def sales(tmp_path):
    """20,000 customers buy 8 each; half of them send 5 back."""
    path = tmp_path / "sales.csv"
    rows = [f"{user},sale,8" for user in range(20_000)]
    rows += [f"{user},return,5" for user in range(10_000)]
    path.write_text("customer,kind,items\n" + "\n".join(rows) + "\n")
    return path


STAT = "inner-product,bound=10,left=sale,right=return,expected=100_000:1e7"


def test_run_takes_both_streams_by_a_column(sales):
    columns = ("--user", "customer", "--delta", "items", "--side", "kind")
    result = run_command("run", sales, *columns, "--stat", STAT, "--epsilon", 8, "--demo")
    assert result.code == 0, result.stderr
    row = next(line for line in result.stdout.splitlines() if line.startswith("inner"))
    value = row.replace("inner product", "").split()[0].replace(",", "")
    assert "400,000" in row
    assert abs(int(value) - 400_000) < 150_000


def test_run_wants_the_side(sales):
    arguments = (sales, "--user", "customer", "--delta", "items", "--epsilon", 8)
    refused = run_command("run", *arguments, "--stat", STAT)
    assert refused.code == 2
    assert "inner-product needs --side: the column that says which of two streams" in refused.stderr


def test_a_picture_is_drawn_of_both(sales, tmp_path):
    columns = ("--user", "customer", "--delta", "items", "--side", "kind")
    stats = ("--stat", STAT, "--stat", "moment,order=2,bound=20,expected=1e6:1e7")
    picture = tmp_path / "joined.png"
    result = run_command("run", sales, *columns, *stats, "--epsilon", 16, "--plot", picture)
    assert result.code == 0, result.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_service_counts_both_streams_by_a_column(tmp_path):
    file = tmp_path / "service.toml"
    stat = (
        '[[streams.shop.stat]]\nname = "inner-product"\nbound = 10\nleft = "sale"\nright = "return"'
    )
    lines = '[streams.shop]\nepsilon = 8\nwindow = "1d"\nids = "integers"\ndelta = "items"\n'
    lines += "confidence = 0.999999999\n"  # once, so that it holds the truth in all runs
    file.write_text(lines + 'side = "kind"\n' + stat + '\nexpected = "100000:1e7"\n')
    config = load(file).streams["shop"]
    store = ReleaseStore(f"sqlite:///{tmp_path / 'releases.sqlite'}")
    stream = Stream("shop", config, store, clock=datetime(2026, 11, 16, 9, tzinfo=UTC).timestamp)
    users = np.concatenate([np.arange(20_000), np.arange(10_000)])
    batch = pa.record_batch(
        {
            "user": users,
            "items": np.repeat([8, 5], [20_000, 10_000]),
            "kind": np.repeat(["sale", "return"], [20_000, 10_000]),
        }
    )
    stream.take([batch])
    stream.close()
    (row,) = store.answers()
    assert row.low < 400_000 < row.high
    store.close()


def test_the_service_wants_the_side(tmp_path):
    file = tmp_path / "service.toml"
    lines = '[streams.shop]\nepsilon = 8\nwindow = "1d"\n[[streams.shop.stat]]\n'
    file.write_text(lines + 'name = "inner-product"\nbound = 10\n')
    with pytest.raises(pp.PlanError, match="needs side: the column that says which of two streams"):
        load(file)


# What users move, and what a clip hides


@pytest.mark.parametrize("clip", range(1, 8))
@pytest.mark.parametrize("bound", [1, 2])
@pytest.mark.parametrize("signed", [False, True])
def test_a_user_moves_sums_of_clipped_cells_so_far_and_no_further(signed, bound, clip):
    """By all cells and all that a user may have moved them by."""
    reach = Reach(bound, signed=signed, tables=1)
    assert reach.path == 2 * reach.cell == 2 * bound * (1 + signed)
    ends = range(-clip, clip + 1)
    near = [(a, b) for a in ends for b in ends if abs(a - b) <= reach.path]
    assert reach.squares(clip) == max(b * b - a * a for a, b in near)
    both = max(b * d - a * c for a, b in near for c, d in near)
    assert reach.products(clip) == both
    assert reach.sensitivity(clip) == reach.squares(clip)
    assert reach.sensitivity(0) == reach.path
    two = Reach(bound, signed=signed, tables=2)
    assert two.sensitivity(clip) == reach.products(clip) + 2 * reach.squares(clip)
    assert two.sensitivity(0) == 2 * reach.path


@pytest.mark.parametrize("intrusions", [0, 1, 2])
@pytest.mark.parametrize("tables", [1, 2])
def test_cells_fall_off_as_their_noise_and_users_do(tables, intrusions):
    reach, budget = Reach(5, False, tables), AdditiveBudget(Fraction(1, 2), Fraction(1, 4))
    birth, later = 10.0 * tables, 20.0 * tables
    tails = reach.tails(64, budget, intrusions, 1_000.0)
    widest = later if intrusions else birth
    assert [h * widest for h, _ in tails.tilts] == pytest.approx([0.3, 0.5, 0.7, 0.8, 0.9, 0.95])
    line = np.arange(-20_000.0 * tables, 20_000 * tables + 1)
    for h, grown in tails.tilts:
        means = [
            (np.exp(h * line - np.abs(line) / scale) / np.exp(-np.abs(line) / scale).sum()).sum()
            for scale in (birth, *[later] * intrusions)
        ]
        users = 1_000 * (math.cosh(5 * h) - 1) / (64 * 25)
        assert grown == pytest.approx(math.log(2 * 64 * math.prod(means)) + users, rel=1e-6)


@pytest.mark.parametrize("most", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("tables", [1, 2])
def test_a_clip_is_the_least_that_hides_so_much_but_for_one_part_in_128(tables, most):
    reach, budget = Reach(5, False, tables), AdditiveBudget(Fraction(1, 2), Fraction(1, 4))
    tails = reach.tails(64, budget, 1, 1_000.0)
    clip = reach.clip(64, budget, tails, most)
    least = next(at for at in range(reach.path, 10**6) if tails.hidden(at) <= most)
    assert least <= clip <= least + max(least >> 7, 1)


def test_no_clip_is_narrower_than_what_a_user_moves_unless_it_hides_enough():
    reach, budget = Reach(5, False, 1), AdditiveBudget(Fraction(1), Fraction(1))
    nothing = Tails(((100.0, -1e6),))
    assert reach.clip(64, budget, nothing, 1.0) == 2


def test_squares_fit_below_two_to_the_62_and_noise_below_two_to_the_56():
    assert squares_fit(1, (1 << 31) - 1)
    assert not squares_fit(1, 1 << 31)
    assert not squares_fit(4, 1 << 30)
    assert squares_fit(3, 1 << 30)
    check_clip((1 << 31) - 1, None)
    check_clip(None, 1)
    check_clip(0, 1)
    with pytest.raises(pp.PlanError) as refused:
        check_clip(1 << 31, None)
    assert str(refused.value) == (
        "clip (2,147,483,648) is so large that its squares do not fit in 64 bits: say a smaller one"
    )
    with pytest.raises(pp.PlanError, match="clip"):
        check_clip(1 << 30, 4)
    reach, tails = Reach(1, False, 1), Tails(((1e-6, 10.0),))
    budget = AdditiveBudget(Fraction(1), Fraction(1))
    clip = reach.clip(1, budget, tails, 1e12)
    limit = Fraction(reach.sensitivity(clip), 1 << 56)
    for release, fits in ((limit * Fraction(101, 100), True), (limit, False)):
        found = reach.clip(1, AdditiveBudget(Fraction(1), release), tails, 1e12)
        assert (found is not None) == fits
    assert reach.clip(1 << 40, budget, tails, 1e12) is None


@pytest.mark.parametrize("tables", [1, 2])
def test_a_clip_hides_a_hundredth_of_the_deviation_of_empty_cells(tables):
    reach, budget = Reach(5, False, tables), AdditiveBudget(Fraction(1, 2), Fraction(1, 4))
    for intrusions in (0, 1):
        request = Request(Fraction(2), 1, intrusions)
        named = {"reach": reach, "request": request, "cells": 256, "budget": budget}
        publish, clip = _clips(**named, moment=1e4, clip=None)
        empty = reach.noise(budget, intrusions, published=False)
        most = math.sqrt(256 * empty.of_products) / 100
        hidden = reach.tails(256, budget, intrusions, 1e4)
        assert publish == 0
        assert clip == reach.clip(256, budget, hidden, most)
        assert list(_clips(**named, moment=1e4, clip=77)) == [77]


def test_all_designs_are_those_of_every_second_share_and_of_every_power_of_two():
    request, reach = Request(Fraction(1)), Reach(5, False, 1)
    found = designs(reach, request, 1_000, 1e4)
    splits = [(one.state, one.release) for one in budgets(request)[::2]]
    assert {size for size, _, _ in found} == {64, 128, 256, 512}
    assert [(one.state, one.release) for one in dict.fromkeys(one for _, one, _ in found)] == splits
    assert {size for size, _, _ in designs(reach, request, 1_000, 1e4, cells=7)} == {7}
    assert {where for _, _, where in designs(reach, request, 1_000, 1e4, clip=9)} == {9}


PLANS = {
    "unless told": ({}, (8_192, 0, "335/1024", (250_000, 25 * 10**9))),
    "a sum": ({"order": 1}, (1, 0, "335/1024", (50_000, 5 * 10**9))),
    "known": ({"expected": (4 * 10**7, 10**8)}, (131_072, 160, "467/512", (4 * 10**7, 10**8))),
    "signed": (
        {"bound": 100, "signed": True, "epsilon": 4},
        (16_384, 0, "335/256", (10**8, 10**13)),
    ),
    "releases": ({"releases": 10}, (131_072, 2_740, "335/1024", (250_000, 25 * 10**9))),
    "intrusions": (
        {"intrusions": 1, "epsilon": 2},
        (8_192, 0, "319/512", (250_000, 25 * 10**9)),
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_what_was_planned_once_is_planned_again(name):
    """A state has so many cells, and is refused where another plan is made."""
    given, (cells, clip, state, expected) = PLANS[name]
    plan = moment(**{"bound": 5, "epsilon": 1, **given}).plan
    assert (plan.cells, plan.clip, plan.split.budget.state, plan.expected) == (
        cells, clip, Fraction(state), expected,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "publishes", "groups"),
    [({"order": 1}, False, 1), ({"clip": 0}, True, None), ({"clip": 50}, False, 1)],
)
def test_cells_are_published_unless_they_are_summed(given, publishes, groups):
    plan = moment(**given).plan
    assert plan.publishes_cells is publishes
    assert plan.groups == (groups or plan.cells)
    assert inner(clip=50).plan.groups == 3
    assert inner(clip=0).plan.groups == inner(clip=0).plan.cells


@pytest.mark.parametrize("order", [1, 2])
def test_a_plan_says_what_it_answers_and_in_what(order):
    plan = moment(order=order).plan
    what = ["do the states", "do the squares of the states"][order - 1]
    assert plan.question == f"how much {what} of all users add up to?"
    assert plan.unit == ["added up over users", "squares added up over users"][order - 1]
    assert plan.truth(plan.name, np.array([1, -2, 3]), None) == [2, 14][order - 1]
    assert plan.alike(-1.0)[0] == 0
    assert plan.alike(100.0) == (10 if order == 1 else 1, 10)
    assert moment(order=order, bound=1).plan.alike(9.0) == (9, 1)
    assert plan.limit == plan.largest == plan.planned[1] == plan.expected[1]
    assert plan.planned[0] == plan.expected[0]


def test_what_users_hide_is_read_as_noise():
    plan = moment().plan
    model = plan.model(0)
    assert plan.reach(0.95, 1e9) == noise_quantile(0.95, model.output_share(1e9))
    shares = [model.output_share(float(one)) for one in plan._truths]
    assert plan.reach(0.95, None) == noise_quantile(0.95, max(shares))
