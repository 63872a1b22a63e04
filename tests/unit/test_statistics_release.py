"""What leaves: answers, their names, and tables of them."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.devices.federated import CountNonZero, DeviceHistogram, Mean
from panprivacy.statistics.catalogue import KINDS
from panprivacy.statistics.frames import COLUMNS, as_table
from panprivacy.statistics.notes import format_number
from panprivacy.statistics.release import Lost

SUM = pp.Name("visits", "cropped_sum", (("tau", 10),))
LEVELS = (0.01, 0.5, 0.95, 1 - 1e-6)
ANSWER = pp.Release(1234.5, 1100.25, 1400.0, 0.95, 0.1, (7, 8), SUM, "visits")


@given(st.tuples(*[st.floats(allow_nan=False)] * 2), st.floats(allow_nan=False))
def test_an_answer_lies_in_its_interval_whatever_its_estimate_was(ends, estimate):
    low, high = sorted(ends)
    answer = pp.Release(estimate, low, high, 0.9, 1, ())
    assert low <= answer.value <= high
    assert answer.value in {low, high, estimate}


def exact(statistic, reading):
    """What a release would noise."""
    return reading.sums(statistic.plan.table, statistic.internals.memory.now.table)


TRIALS = [(kind, trial) for kind in KINDS for trial in kind.entry.trials]


@pytest.mark.parametrize(("kind", "trial"), TRIALS, ids=lambda one: getattr(one, "entry", one).name)
def test_all_answers_lie_in_their_intervals_however_far_noise_takes_the_counts(kind, trial):
    statistic, rng = kind(**trial.sizes, epsilon=2), np.random.default_rng(3)
    answers = []
    if statistic.internals.windows.lasting:  # a step has noise of its own
        answers = [kind(**trial.sizes, epsilon="0.1").release(confidence=c) for c in LEVELS]
    else:
        reading = statistic.internals.releasing.reading()
        sums, scale = exact(statistic, reading), max(map(float, reading.scales))
        for level, spread in itertools.product(LEVELS, (0, 3, 300, 1e6)):
            counts = sums + np.rint(rng.laplace(size=sums.shape) * scale * spread).astype(np.int64)
            with contextlib.suppress(pp.LostReleaseError):
                answers.append(statistic.internals.releasing.answer(reading, counts, level))
    found = [one for answer in answers for one in answer.answers().values() if one is not None]
    assert found
    for one in found:
        assert one.low <= one.value <= one.high
        assert one.value == min(max(one.estimate, one.low), one.high)
        assert one.standard_error > 0
        assert one.bias >= 0


@pytest.mark.parametrize("asked", [{"exactly": 1}, {"at_least": 2}, {"cropped_sum": 3}, {}])
@pytest.mark.parametrize("universe", [20_000, None])
def test_all_questions_to_a_histogram_have_answers_in_their_intervals(universe, asked):
    size = {"universe": universe} if universe else {"expected": 20_000}
    visits, rng = pp.Incidence(bound=3, epsilon=2, **size), np.random.default_rng(4)
    reading = visits.internals.releasing.reading(**asked)
    sums, scale = exact(visits, reading), max(map(float, reading.scales))
    for level, spread in itertools.product(LEVELS, (0, 3, 300)):
        counts = sums + np.rint(rng.laplace(size=sums.shape) * scale * spread).astype(np.int64)
        rows = visits.internals.releasing.answer(reading, counts, level)
        tables = [rows.to_arrow()]
        if universe and not asked:
            tables.append(rows.to_arrow(constrained=True))
        for row in [row for table in tables for row in table.to_pylist()]:
            assert row["low"] <= row["value"] <= row["high"]
            assert row["standard_error"] > 0


@pytest.mark.parametrize(
    "kind",
    [CountNonZero(epsilon_0=1), DeviceHistogram(most=2, epsilon_0=1), Mean(most=3, variance=9)],
)
@pytest.mark.parametrize("share", [0, 0.3, 1, 3])
def test_answers_of_devices_lie_in_their_intervals(kind, share):
    sums = [round(share * 40)] * (3 if isinstance(kind, DeviceHistogram) else 1)
    for level in LEVELS:
        for one in kind.release(sums, 40, level, 1.0).answers().values():
            assert one.low <= one.value <= one.high
            assert one.value == min(max(one.estimate, one.low), one.high)
            assert one.standard_error > 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (pp.Name("x", "distinct"), "distinct"),
        (pp.Name("x", "exactly", (("state", 3),)), "exactly 3"),
        (SUM, "cropped sum 10"),
        (
            pp.Name("x", "cropped_moment", (("tau", 10), ("power", 2)), "home"),
            "cropped moment 10**2",
        ),
    ],
)
def test_a_name_in_words(name, text):
    assert str(name) == text


def test_a_name_moves_under_another_statistic_or_group():
    assert SUM.under("other", None) == SUM._replace(statistic="other")
    assert SUM.under(None, 0) == SUM._replace(group=0)
    assert SUM.under(None, None) == SUM
    assert SUM.columns() == {
        "statistic": "visits",
        "question": "cropped_sum",
        "argument": 10,
        "arguments": "tau=10",
        "group": None,
    }
    assert SUM.under(None, 80).columns()["group"] == "80"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (-0.4, "users", "0"),
        (-0.6, "users", "-1"),
        (-0.00004, "events per device", "0.0000"),
        (-0.0001, "share", "-0.0001"),
        (1234.5, "users", "1,234"),
        (math.inf, "users", "inf"),
    ],
)
def test_a_number_for_people_has_no_sign_where_it_is_0(value, unit, text):
    assert format_number(value, unit) == text


class TestRelease:
    def test_it_is_a_number_where_one_is_wanted(self):
        assert float(ANSWER) == 1234.5
        assert (round(ANSWER), round(ANSWER, 1)) == (1234, 1234.5)
        assert isinstance(round(ANSWER), int)
        assert (int(ANSWER), int(dataclasses.replace(ANSWER, value=1234.9))) == (1234, 1234)
        assert (f"{ANSWER:,.0f}", f"{ANSWER:.2e}") == ("1,234", "1.23e+03")
        assert f"{ANSWER}" == str(ANSWER) == "1,234 (1,100 to 1,400, 95 %)"

    def test_its_representation_has_its_name_and_no_counts(self):
        assert repr(ANSWER) == "<Release cropped sum 10: 1,234 (1,100 to 1,400, 95 %)>"
        bare = dataclasses.replace(ANSWER, name=pp.Name("", ""))
        assert repr(bare) == "<Release 1,234 (1,100 to 1,400, 95 %)>"

    def test_shares_are_shown_with_digits_and_no_upper_end_as_infinite(self):
        share = dataclasses.replace(ANSWER, value=0.5, low=0.25, high=1.0, unit="share of all")
        assert share.formatted() == ("0.5000", "0.2500", "1.0000")
        assert dataclasses.replace(ANSWER, high=math.inf).formatted()[2] == "inf"

    def test_its_columns_are_those_of_every_table(self):
        row = ANSWER.to_dict()
        assert list(row) == list(COLUMNS)
        numbers = {"value": 1234.5, "low": 1100.25, "high": 1400.0, "estimate": 1234.5}
        others = {"standard_error": None, "bias": 0.0, "confidence": 0.95, "epsilon": 0.1}
        assert row == {**SUM.columns(), **numbers, **others, "note": None}
        assert ANSWER.to_arrow().to_pylist() == [row]
        assert ANSWER.to_arrow().schema == pa.schema(
            [(name, kind) for name, (kind, _) in COLUMNS.items()]
        )
        assert isinstance(ANSWER.to_pandas(), pd.DataFrame)

    def test_a_page_shows_no_markup_of_a_group(self):
        page = ANSWER.under(group="<b>&")._repr_html_()
        assert "&lt;b&gt;&amp;" in page
        assert "<b>" not in page
        assert "<td>cropped sum 10</td>" in page


class TestAnswers:
    ANSWERS = pp.Answers([
        ANSWER.under("visits", "home"),
        Lost((SUM._replace(group="help"), pp.Name("visits", "distinct", (), "help"))),
        dataclasses.replace(ANSWER, counts=(9,), name=pp.Name("who", "distinct", (), "home")),
    ])  # fmt: skip

    def test_it_is_a_mapping_of_names(self):
        assert len(self.ANSWERS) == len(list(self.ANSWERS)) == 4
        assert self.ANSWERS[SUM._replace(group="home")].value == 1234.5
        assert self.ANSWERS[SUM._replace(group="help")] is None
        with pytest.raises(
            KeyError, match="no answer is called that; groups there are: home, help"
        ):
            self.ANSWERS[SUM]
        assert SUM not in self.ANSWERS
        assert self.ANSWERS == dict(self.ANSWERS.items()) == self.ANSWERS.under()
        assert pp.Answers([ANSWER]) != self.ANSWERS
        assert self.ANSWERS.lost
        assert self.ANSWERS.counts == (7, 8, 9)

    def test_some_are_chosen_by_parts_of_their_names(self):
        home = self.ANSWERS.where(group="home")
        assert not home.lost
        assert [name.statistic for name in home] == ["visits", "who"]
        assert home.where(statistic="who").only().counts == (9,)
        assert len(self.ANSWERS.where(group="help", question="distinct")) == 1
        assert len(self.ANSWERS.where(group="shop")) == 0

    @pytest.mark.parametrize("wanted", [{"group": "home"}, {"group": "shop"}, {"statistic": "no"},
                                        {"group": "help", "question": "distinct"}])  # fmt: skip
    def test_only_wants_one_that_is_there(self, wanted):
        with pytest.raises(pp.PanPrivacyError, match="wants one that is not lost"):
            self.ANSWERS.where(**wanted).only()

    def test_rows_and_tables_have_the_columns_and_nulls_for_what_is_lost(self):
        rows, found = self.ANSWERS.rows(), self.ANSWERS.to_arrow()
        assert found.to_pylist() == rows
        assert found.column_names == list(COLUMNS)
        assert all(list(row) == list(COLUMNS) for row in rows)
        assert found["value"].to_pylist() == [1234.5, None, None, 1234.5]
        assert found["confidence"].null_count == 2
        assert found["group"].to_pylist() == ["home", "help", "help", "home"]
        assert len(self.ANSWERS.to_pandas()) == 4
        assert as_table([]).column_names == list(COLUMNS)

    def test_it_is_shown_in_words(self):
        assert "cropped sum 10 of home: 1,234" in repr(self.ANSWERS)
        titles, home, lost, *_ = str(self.ANSWERS).splitlines()
        assert titles.split() == ["statistic", "answer", "group", "value", "low", "high"]
        assert home.split() == ["visits", "cropped", "sum", "10", "home", "1,234", "1,100", "1,400"]
        assert lost.split()[-2:] == ["help", "lost"]
        page = self.ANSWERS._repr_html_()
        assert page.count("<tr>") == 5
        assert page.count("<td>lost</td>") == 2

    def test_of_many_states_a_few_are_shown_and_all_are_in_the_table(self):
        visits = pp.Incidence(universe=1_000, bound=60, epsilon=1)
        answers = pp.Answers([visits.release()])
        assert len(answers) == answers.to_arrow().num_rows == 62  # and who is above the bound
        assert repr(answers).count("exactly") == 21
        assert repr(answers).endswith(", ...>")
        assert str(answers).endswith("\n... and 40 more")
        assert answers._repr_html_().count("<tr>") == 23
        histogram = pp.Incidence(universe=1_000, bound=60, epsilon=1).release()
        assert str(histogram).count("exactly") == repr(histogram).count("exactly") == 21
        assert histogram[3].value == pytest.approx(histogram.exactly(3).value)
