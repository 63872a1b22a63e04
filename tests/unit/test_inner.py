"""Inner products: what they refuse, what they are fed, and which cells both streams have."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy.service.config.loading import load
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.stream import Stream
from tests.commands import run_command
from tests.unit.test_moment import inner, moment


def states(statistic):
    """What the cells of each stream hold."""
    table = statistic.internals.memory.now.table
    return np.split(table, 2)


class Still:
    """Coins of no noise."""

    def key(self, nbytes):
        return bytes(range(nbytes))

    def discrete_laplace(self, _scale, size):
        return np.zeros(size, np.int64)


def test_a_user_of_two_streams_shares_one_epsilon():
    one, two = moment(bound=10, clip=0).plan, inner(epsilon=2, clip=0).plan
    budget = one.split.budget
    assert two.moves.initial(budget) == 2 * one.moves.initial(budget)
    assert two.sensitivity(0) == 2 * one.sensitivity(0) == 4 * one.moves.cell


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


SIDES = {
    "texts": ["left", "right", "left"],
    "NumPy": np.array(["left", "right", "left"]),
    "Arrow": pa.array(["left", "right", "left"]),
    "dictionary": pa.array(["left", "right", "left"]).dictionary_encode(),
    "byte strings": pa.array([b"left", b"right", b"left"]),
}


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
        ("", r"row 1 .*: the side must be left or right"),
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


@pytest.mark.long
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


@pytest.mark.parametrize("sides", SIDES.values(), ids=SIDES)
def test_a_column_says_which_stream_an_event_is_of(sides):
    joined = inner(coins=Still())
    joined.update(["ada", "grace", "ada"], [1, 5, 3], sides=sides)
    left, right = states(joined)
    assert (np.abs(left).sum(), np.abs(right).sum()) == (4, 5)
