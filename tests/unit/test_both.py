"""Users of two streams: what is refused, what is said before, and where the streams come from."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from benchmarks import both as errors
from benchmarks.counters import table

import panprivacy as pp
from panprivacy.service.config.loading import load
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.stream import Stream
from panprivacy.statistics.both.plan import QUESTIONS
from panprivacy.statistics.release import Name
from panprivacy.testing import SeededCoins
from tests.commands import run_command

CONFIDENCE = 0.999_999_999
"""Intervals that miss the truth once in 1e9 runs: at most 5e-9 for the five answers of a run."""


def counted(left=3_000, both=1_000, **arguments):
    """A count of two streams of as many users each."""
    count = pp.BothCount(**{"expected": left, "epsilon": 4, **arguments})
    users = np.arange(2 * left - both)
    count.update(users[:left], sides=count.plan.left)
    count.update(users[left - both :], sides=count.plan.right)
    return count


TRUTHS = dict(zip(QUESTIONS, (3_000, 3_000, 1_000, 5_000, 1 / 3), strict=True))


class TestAnswers:
    """Five answers of one release."""

    def test_all_intervals_hold_the_truth(self):
        answers = counted().release(confidence=CONFIDENCE)
        assert [name.question for name in answers] == list(QUESTIONS)
        for question, truth in TRUTHS.items():
            assert answers[question].low <= truth <= answers[question].high

    def test_who_comes_again_counts_once(self):
        count = pp.BothCount(expected=3_000, epsilon=4)
        for side in ("left", "right") * 3:
            count.update(np.arange(3_000), sides=side)
        answers = count.release(confidence=CONFIDENCE)
        assert answers["intersection"].low < 3_000 < answers["intersection"].high

    def test_one_release_is_paid_for(self):
        count = counted()
        answers = count.release()
        assert count.ledger.spent == count.ledger.total
        assert len({one.counts for one in answers.values()}) == 1
        with pytest.raises(pp.BudgetError, match="all 1 planned releases"):
            count.release()

    def test_nobody_in_both_is_noise_and_says_so(self):
        count = counted(both=0, epsilon=1, coins=SeededCoins(1))  # of these it is below 2 errors
        answer = count.release(confidence=CONFIDENCE)["intersection"]
        assert answer.low == 0
        assert answer.note.startswith("more noise than signal")

    def test_the_truth_is_that_of_two_columns_of_states(self):
        plan = counted().plan
        states = np.array([[1, 0], [2, 5], [0, 1], [1, 1]])
        found = [plan.truth(Name("", one), states, states) for one in QUESTIONS]
        assert found == [3, 3, 2, 4, 2 / 3]

    def test_shards_of_different_users_are_merged(self):
        shards = []
        for first in (0, 100_000):
            count = pp.BothCount(expected=6_000, epsilon=8)
            count.update(np.arange(first, first + 2_000), sides="left")
            count.update(np.arange(first + 1_000, first + 3_000), sides="right")
            shards.append(count.contribute())
        answers = pp.merge(shards, confidence=CONFIDENCE)
        for question, truth in zip(QUESTIONS, (4_000, 4_000, 2_000, 6_000, 0.5), strict=True):
            assert answers[question].low <= truth <= answers[question].high


class TestRefusals:
    """One line, and nothing is counted."""

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            ({"left": "x", "right": "x"}, "left and right must be different words"),
            ({"intrusions": 1}, "no intrusion can be announced to pairs of bits"),
            ({"share": 2}, "share must be a number from 0 to 1"),
            ({"share": "many"}, "share must be a number from 0 to 1"),
            ({"left": ""}, "left must be what the column of sides calls a stream"),
            ({"expected": 0}, "expected"),
        ],
    )
    def test_sizes_that_do_not_go_together_are_refused(self, arguments, says):
        with pytest.raises(pp.PlanError, match=says):
            pp.BothCount(**{"expected": 3_000, "epsilon": 1, **arguments})

    def test_a_side_that_is_none_is_refused_with_its_row(self):
        count = counted()
        before = count.state()
        with pytest.raises(
            pp.InputError, match=r"row 2 \(counting from 1\): the side must be left or right"
        ):
            count.update([1, 2], sides=["left", "centre"])
        assert count.state() == before

    def test_nobody_leaves(self):
        with pytest.raises(
            pp.InputError, match=r"row 2 .*: delta must be at least 1: nobody leaves"
        ):
            counted().update([1, 2], [1, -1], sides=["left", "right"])


class TestPlans:
    """What is said before anybody is counted."""

    @pytest.mark.long
    def test_the_tables_of_the_pages_are_those_of_the_code(self):
        for page, rows in (
            ("both.md", errors.error_rows()),
            ("guarantees/both.md", errors.law_rows()),
        ):
            body = table([""], rows).split("\n", 2)[2].strip()
            assert body in (errors.DOCS / page).read_text()

    @pytest.mark.long
    def test_the_command_says_the_error_and_of_what(self):
        said = run_command("plan", "both,expected=100_000,share=0.1", "--epsilon", 1)
        assert said.code == 0
        assert "10 % of the users of each stream are in the other one too" in said.stdout
        assert "within this share of the users of either stream" in said.stdout

    def test_a_plan_for_a_range_has_levels(self):
        plan = pp.BothCount(expected=(100, 100_000), memory=16_384, epsilon=2).plan
        assert plan.levels > 1
        assert plan.groups == 4 * plan.levels
        assert plan.table.nbytes <= 16_384

    def test_more_cells_err_less_within_one_memory(self):
        few, many = (
            pp.BothCount(expected=10_000, cells=cells, epsilon=2).plan for cells in (8_000, 30_000)
        )
        assert few.cells == 8_000
        assert many.absolute_error(10_000) < few.absolute_error(10_000)

    def test_a_state_goes_on_only_under_its_law(self):
        count = counted()
        again = pp.BothCount(expected=3_000, epsilon=4)
        again.resume(count.state())
        assert again.state() == count.state()
        other = pp.BothCount(expected=3_000, epsilon=5)
        with pytest.raises(pp.InputError):
            other.resume(count.state())


STAT = "both,left=shoes,right=checkout,expected=4_000"


@pytest.fixture
def visits(tmp_path):
    """4,000 see shoes, half of them check out."""
    path = tmp_path / "visits.csv"
    rows = [f"{user},shoes" for user in range(4_000)]
    rows += [f"{user},checkout" for user in range(2_000)]
    path.write_text("visitor,page\n" + "\n".join(rows) + "\n")
    return path


class TestSurfaces:
    """A column says which stream an event is of."""

    def test_run_takes_both_streams_by_a_column(self, visits):
        columns = ("--user", "visitor", "--side", "page", "--confidence", CONFIDENCE)
        result = run_command("run", visits, *columns, "--stat", STAT, "--epsilon", 4, "--json")
        assert result.code == 0, result.stderr
        found = {one["question"]: one for one in json.loads(result.stdout)["answers"]}
        assert list(found) == list(QUESTIONS)
        assert found["intersection"]["low"] < 2_000 < found["intersection"]["high"]
        assert found["share"]["low"] < 0.5 < found["share"]["high"]

    def test_run_shows_the_truth_of_public_data(self, visits):
        columns = ("--user", "visitor", "--side", "page")
        result = run_command("run", visits, *columns, "--stat", STAT, "--epsilon", 4, "--demo")
        row = next(line for line in result.stdout.splitlines() if line.startswith("intersection"))
        assert row.endswith("2,000")

    def test_run_wants_the_side(self, visits):
        refused = run_command("run", visits, "--user", "visitor", "--stat", STAT, "--epsilon", 4)
        assert refused.code == 2
        assert "both needs --side: the column that says which of two streams" in refused.stderr
        assert "shoes or checkout" in refused.stderr

    def test_run_refuses_another_page_by_its_row(self, visits):
        visits.write_text(visits.read_text() + "77,shop\n")
        columns = ("--user", "visitor", "--side", "page")
        refused = run_command("run", visits, *columns, "--stat", STAT, "--epsilon", 4)
        assert refused.code != 0
        assert "row 6,001 (line 6,002): the side must be shoes or checkout" in refused.stderr
        assert not refused.stdout

    def test_the_service_counts_both_streams_by_a_column(self, tmp_path):
        file = tmp_path / "service.toml"
        lines = '[streams.shop]\nepsilon = 4\nwindow = "1d"\nids = "integers"\nside = "page"\n'
        lines += f"confidence = {CONFIDENCE}\n[[streams.shop.stat]]\n"
        file.write_text(
            lines + 'name = "both"\nleft = "shoes"\nright = "checkout"\nexpected = 4_000\n'
        )
        config = load(file).streams["shop"]
        store = ReleaseStore(f"sqlite:///{tmp_path / 'releases.sqlite'}")
        moment = datetime(2026, 11, 16, 9, tzinfo=UTC).timestamp
        stream = Stream("shop", config, store, clock=moment)
        users = np.concatenate([np.arange(4_000), np.arange(2_000)])
        pages = np.repeat(["shoes", "checkout"], [4_000, 2_000])
        stream.take([pa.record_batch({"user": users, "page": pages})])
        stream.close()
        rows = {row.question: row for row in store.answers()}
        assert rows.keys() == set(QUESTIONS)
        assert rows["intersection"].low < 2_000 < rows["intersection"].high
        store.close()

    def test_a_count_is_one_of_several_and_has_groups(self):
        shops = pp.Grouped(
            lambda epsilon: pp.BothCount(expected=3_000, epsilon=epsilon), ["a", "b"], epsilon=4
        )
        users = np.arange(3_000)
        for side in ("left", "right"):
            shops.update(users, np.repeat(["a", "b"], 1_500), sides=np.repeat(side, 3_000))
        answers = shops.release(confidence=CONFIDENCE)
        for group in ("a", "b"):
            found = answers[group]["intersection"]
            assert found.low < 1_500 < found.high
