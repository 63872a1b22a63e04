"""What a service tells of a stream, and what it asks of whatever counts one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.kept.keeper import Keeper
from panprivacy.service.served import Keeping, Served, WindowFacts, described
from panprivacy.service.stream import Stream

BEGAN = datetime(2026, 1, 5, tzinfo=UTC)
SHOWN = WindowFacts(BEGAN, BEGAN + timedelta(days=1), 2, 1, 999)


@pytest.fixture(scope="module")
def told():
    config = StreamConfig(
        stat=({"name": "distinct", "expected": "10000:1000000"},),
        epsilon=Fraction(2),
        window="1d",
        releases=4,
        intrusions=3,
    )
    counting = config.make_counting()

    def tell(**more):
        return described("visits", config, counting, SHOWN, counting.guarantee, **more)

    return tell


def test_it_says_what_is_counted_and_promised(told):
    said = told()
    assert (said["name"], said["statistics"]) == ("visits", ["distinct"])
    assert list(said["questions"]) == ["distinct"]
    assert said["epsilon"] <= 2
    assert (said["window_seconds"], said["zone"]) == (86_400, "UTC")
    assert said["window_began"] == "2026-01-05T00:00:00+00:00"
    assert said["window_ends"] == "2026-01-06T00:00:00+00:00"


def test_it_says_how_much_is_left(told):
    said = told()
    assert (said["releases_made"], said["releases_planned"]) == (2, 4)
    assert [said[f"intrusions_{what}"] for what in ("announced", "planned", "left")] == [1, 3, 2]
    assert said["state_bytes"] == 999


def test_what_may_be_missing_is_told_if_anything_may(told):
    nothing = told(missing=(BEGAN, BEGAN))
    assert nothing["missing_from"] is nothing["missing_to"] is None
    assert told()["missing_from"] is None
    some = told(missing=(BEGAN, BEGAN + timedelta(hours=1)))
    assert some["missing_from"] == "2026-01-05T00:00:00+00:00"
    assert some["missing_to"] == "2026-01-05T01:00:00+00:00"


@pytest.mark.parametrize(("asked", "kind"), [(Served, Stream), (Keeping, Keeper)])
def test_what_runs_in_this_process_has_all_that_is_asked(asked, kind):
    assert {name for name in vars(asked) if not name.startswith("_")} <= set(dir(kind)) | {
        *("name", "config", "columns"),
    }
