"""Results of ended windows: found by place, as a table, in words, and summed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy.statistics.composites.windows import Window, Windows
from panprivacy.statistics.frames import COLUMNS, MOST_SHOWN
from panprivacy.statistics.release import Lost

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
DAY = timedelta(days=1)


def answer(estimate, error=3, statistic="visitors", group=None, question="distinct"):
    name = pp.Name(statistic, question, (), group)
    return pp.Release(
        estimate, 0.0, 1e5, 0.95, 0.5, (), name, estimate=estimate, standard_error=error
    )


def of(*releases, **given):
    """Make the results of windows of a day each, the first one cut short."""
    return Windows(
        (
            Window(MONDAY + number * DAY, MONDAY + (number + 1) * DAY, number > 0, one)
            for number, one in enumerate(releases)
        ),
        **given,
    )


class TestPlaces:
    WINDOWS = of(answer(30), None, answer(50))

    def test_windows_come_oldest_first(self):
        assert len(self.WINDOWS) == 3
        assert [one.start for one in self.WINDOWS] == [MONDAY, MONDAY + DAY, MONDAY + 2 * DAY]
        assert self.WINDOWS[0].release.value == 30
        assert self.WINDOWS[-1].release.value == 50

    def test_some_windows_are_windows(self):
        some = self.WINDOWS[1:]
        assert isinstance(some, Windows)
        assert list(some) == list(self.WINDOWS)[1:]
        with pytest.raises(pp.PanPrivacyError, match="go on from window to window"):
            of(answer(30), answer(50), lasting=True)[1:].total()

    @pytest.mark.parametrize("place", ["visitors", 1.0, None, answer(1).name])
    def test_what_is_no_place_is_refused(self, place):
        with pytest.raises(TypeError, match=r"by their places, such as windows\[-1\]"):
            self.WINDOWS[place]

    def test_a_place_beyond_the_last_is_none(self):
        with pytest.raises(IndexError):
            self.WINDOWS[3]


class TestTable:
    def test_a_row_for_each_answer_of_each_window(self):
        several = pp.Answers([answer(1, group="a"), answer(2, group="b")])
        found = of(several, None, answer(3)).to_arrow()
        assert found.column_names == ["start", "end", "complete", *COLUMNS]
        assert found["start"].to_pylist() == [MONDAY, MONDAY, MONDAY + 2 * DAY]
        assert found["end"].to_pylist() == [MONDAY + DAY, MONDAY + DAY, MONDAY + 3 * DAY]
        assert found["complete"].to_pylist() == [False, False, True]
        assert found["value"].to_pylist() == [1, 2, 3]
        assert found["group"].to_pylist() == ["a", "b", None]

    def test_no_windows_have_the_same_columns(self):
        empty = of().to_arrow()
        assert empty.num_rows == 0
        assert empty.schema == of(answer(3)).to_arrow().schema
        assert empty.schema.field("start").type == pa.timestamp("us", tz="UTC")
        assert empty.schema.field("complete").type == pa.bool_()

    def test_the_windows_of_a_program_are_such_a_table(self):
        now = MONDAY.timestamp()
        daily = pp.Windowed(
            lambda: pp.Density(universe=1_000, epsilon=1), every=86_400, clock=lambda: now
        )
        assert daily.release().to_arrow().num_rows == 0
        for _ in range(2):
            daily.update([3])
            now += 86_400
        windows = daily.release()
        found = windows.to_arrow()
        assert found["start"].to_pylist() == [MONDAY, MONDAY + DAY]
        assert found["complete"].to_pylist() == [True, True]
        assert found["value"].to_pylist() == [one.release.value for one in windows]
        assert len(windows.to_pandas()) == 2
        assert len(daily.release()) == 0


class TestTotal:
    def test_windows_have_independent_noise(self):
        total = of(answer(30, 3), None, answer(40, 4)).total()
        assert (total.estimate, total.standard_error) == (70, 5)

    def test_answers_of_one_table_have_noise_in_common(self):
        def of_states(*states):
            return pp.Answers(
                pp.Release(9.0, 0.0, 99.0, 0.95, 0.5, (), name, estimate=9.0, standard_error=3)
                for name in (pp.Name("often", "exactly", (("state", k),)) for k in states)
            )

        assert of(of_states(1, 2)).total().standard_error == 6

    @pytest.mark.parametrize("part", ["statistic", "group"])
    def test_tables_of_a_window_have_independent_noise(self, part):
        both = pp.Answers([answer(30, 3, **{part: "a"}), answer(40, 4, **{part: "b"})])
        assert of(both).total().standard_error == 5

    def test_the_interval_is_of_the_confidence_that_is_asked(self):
        narrow, wide = (of(answer(500)).total(confidence=level) for level in (0.5, 0.99))
        assert (narrow.confidence, wide.confidence) == (0.5, 0.99)
        assert wide.low < narrow.low < narrow.high < wide.high

    @pytest.mark.parametrize(
        ("windows", "said"),
        [
            (of(), "needs one answer or more"),
            (of(None), "needs one answer or more"),
            (of(answer(3), Lost((answer(3).name,))), "is lost"),
            (of(answer(3), answer(3, question="density")), "answers to one question"),
            (of(answer(3), answer(4), lasting=True), "the last one is of all of them"),
        ],
    )
    def test_what_has_no_total_is_refused(self, windows, said):
        with pytest.raises(pp.PanPrivacyError, match=said):
            windows.total()

    def test_the_windows_of_a_count_that_goes_on_have_no_total(self):
        now = MONDAY.timestamp()
        hourly = pp.Windowed(
            lambda: pp.RunningCount(horizon=9, epsilon=1), every=3_600, clock=lambda: now
        )
        now += 2 * 3_600
        for windows in (hourly.releases, hourly.release()):
            with pytest.raises(pp.PanPrivacyError, match="go on from window to window"):
                windows.total()


class TestWords:
    def test_a_line_for_each_answer(self):
        titles, cut, none, whole = str(of(answer(30), None, answer(50))).splitlines()
        assert titles.split()[:3] == ["start", "end", "complete"]
        assert cut.startswith("2026-11-16 00:00 UTC  2026-11-17 00:00 UTC  no ")
        assert "no answer" in none
        assert whole.startswith("2026-11-18 00:00 UTC  2026-11-19 00:00 UTC  yes ")
        assert " 50 " in whole

    def test_of_what_is_no_answer_the_type_is_named(self):
        assert "bytes" in str(of(b"sums"))
        assert "sums" not in str(of(b"sums"))

    def test_there_may_be_none(self):
        assert str(of()) == "no windows have ended"

    @pytest.mark.parametrize("hidden", [0, 1, 1_200])
    def test_the_last_windows_are_shown(self, hidden):
        windows = of(*map(answer, range(hidden + MOST_SHOWN)))
        shown = str(windows)
        assert shown.count("distinct") == MOST_SHOWN
        more = f"... after {hidden:,} earlier windows"
        assert shown.endswith(more) is (hidden > 0)
        assert f"{windows[-1].start:%Y-%m-%d}" in shown
        assert windows._repr_html_().count("<tr>") == 1 + MOST_SHOWN

    def test_its_representation_has_the_starts(self):
        assert repr(of(answer(1), None)) == "<Windows 2026-11-16 00:00, 2026-11-17 00:00>"
