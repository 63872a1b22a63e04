"""The known-broken programs of the audit: each is caught with the loss that it has."""

from __future__ import annotations

import pytest

from panprivacy.audit import LeakError, exact_loss
from panprivacy.audit.controls import CONTROLS
from panprivacy.cli.audit import line
from tests.exact.test_products import PAGE, audited

REFUSED = [control for control in CONTROLS if control.refused]


LOSING = [control for control in CONTROLS if not control.refused]


@pytest.mark.long
@pytest.mark.traces
@pytest.mark.parametrize("control", REFUSED, ids=lambda control: control.name)
def test_a_control_that_no_loss_shows_is_refused(control):
    with pytest.raises(LeakError, match=control.refused):
        control.measured_loss()
    row = audited(control)
    assert not row.holds
    assert row.is_right
    assert row.verdict == "refused"
    assert control.refused in row.says
    assert line(row).rstrip() in PAGE
    assert f"\n| `{control.name}` |" in PAGE


ELSEWHERE = {"raw-interval"}
"""Of those that no walk alone shows as the page does."""


LONG = {
    "both-shards",
    "crash-for-nothing",
    "d3",
    "dishonest-factory",
    "m3",
    "m9",
    "n4-experts",
    "n4-tree",
    "raw-interval",
    "row-interval",
    "second-crash-for-nothing",
    "shard-sums",
    "sketch-crash-for-nothing",
}
"""Of those that take about half a second or more."""


def marked(control):
    marks = [(pytest.mark.long, LONG), (pytest.mark.traces, ELSEWHERE)]
    return pytest.param(control, marks=[mark for mark, names in marks if control.name in names])


@pytest.mark.parametrize(
    "control", [marked(one) for one in LOSING], ids=lambda control: control.name
)
def test_a_control_is_caught_with_the_loss_that_it_has(control):
    assert float(control.measured_loss()) == pytest.approx(control.true_loss, rel=2e-3)
    row = audited(control)
    assert not row.holds
    assert row.is_right
    assert row.verdict == "caught"
    assert not row.worst.within(control.limit(control.adjacency))
    assert float(row.worst) >= 0.999 * control.true_loss
    assert line(row).rstrip() in PAGE
    assert f"\n| `{control.name}` |" in PAGE


@pytest.mark.parametrize(("times", "loss"), [(1, 0.74), (5, 3.7), (20, 14.9)])
def test_distinct_sampling_loses_more_with_every_appearance(times, loss):
    (control,) = [one for one in CONTROLS if one.name == "d3"]
    found = exact_loss(control.make, [[0]] * times, [[]] * times)
    assert float(found) == pytest.approx(loss, rel=1e-2)


def test_every_printed_error_of_loss_is_a_control():
    names = {control.name.split("-")[0] for control in CONTROLS}
    assert {"d1", "d2", "d3", "f1", "f2", "f3", "m3", "m7", "m8", "m9", "n1", "r1"} <= names
    assert sum(control.name.startswith("d1-") for control in CONTROLS) == 2
