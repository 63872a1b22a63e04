"""The parts of a table statistic work on one memory, one question record and one ledger."""

from __future__ import annotations

import pytest

import panprivacy as pp
from panprivacy.papers.published import CalibratedNorm
from panprivacy.statistics.table.contributions import TableContributions
from panprivacy.statistics.table.memory import TableMemory
from panprivacy.statistics.table.releasing import TableReleasing
from panprivacy.statistics.table.windows import TableWindows
from tests import refusals


def visits():
    return pp.Incidence(universe=50, bound=3, epsilon=4, releases=3, intrusions=2)


def test_each_part_is_of_a_table():
    parts = visits().internals
    assert isinstance(parts.memory, TableMemory)
    assert isinstance(parts.windows, TableWindows)
    assert isinstance(parts.contributions, TableContributions)
    assert isinstance(parts.releasing, TableReleasing)


def test_all_parts_see_what_one_does():
    """Each acts on the memory that the others read, and no other statistic is touched."""
    made, other = visits(), visits()
    before = other.state()
    parts = made.internals
    assert parts.releasing.memory is parts.memory
    parts.releasing.release()
    parts.contributions.parts("sums")
    assert (parts.memory.now.releases, parts.releasing.made) == (2, 2)
    assert parts.memory.announced == 1
    with refusals.begun():
        parts.windows.expect(())
    parts.memory.forget()
    for use in (parts.releasing.release, lambda: parts.contributions.parts("sums")):
        with refusals.wiped():
            use()
    assert other.state() == before


def test_windows_and_releases_read_the_same_questions():
    parts = visits().internals
    assert parts.windows.shows_range()
    assert not parts.windows.shows_range(exactly=1)
    assert [str(name) for name in parts.releasing.unread(exactly=1)] == ["exactly 1"]
    for read in (parts.windows.shows_range, parts.releasing.check_release):
        with pytest.raises(pp.PlanError, match="exactli"):
            read(exactli=1)


def test_merge_knows_the_statistics_of_this_package_alone():
    visits().internals.contributions.check_parts("sums")
    sketch = CalibratedNorm(columns=[[1, 0], [3, 1]], modulus=11, universe=20, epsilon=1)
    with pytest.raises(pp.PlanError, match="merge does not know"):
        sketch.internals.contributions.check_parts("sums")
