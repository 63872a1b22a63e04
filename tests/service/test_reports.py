"""Reports of devices to two servers."""

from __future__ import annotations

import pytest

from panprivacy.devices.aggregator.messages import (
    INITIALIZE,
    JOB,
    Party,
    ReportError,
)
from panprivacy.devices.aggregator.presentation import decoded
from panprivacy.devices.aggregator.reports import dap_report, row_of
from tests.service.test_aggregators import EACH, REFUSED, outcomes
from tests.service.two_servers import (
    COINS,
    copied,
    histogram,
    honest,
    sent,
    sharded,
    task_of,
)


def test_what_is_no_report_is_refused_when_it_comes(world):
    task = task_of()
    both = world(task)
    good = honest(task, [1])
    name = good.metadata.report_id
    row = row_of(good.leader, Party.LEADER)
    wrong = {
        "no point": good._replace(leader=good.leader._replace(enc=b"\x02" + b"\xff" * 32)),
        "too long": dap_report(name, row * 2, row),
        "too short": dap_report(name, row, row[:66]),
        "nothing": dap_report(name, row[:33], row),
        "time": good._replace(metadata=good.metadata._replace(time=1)),
        "extension": good._replace(metadata=good.metadata._replace(public_extensions=((1, b""),))),
        "public share": good._replace(public_share=b"x"),
    }
    for what, report in wrong.items():
        assert both.leader.take([report]) == [ReportError.INVALID_MESSAGE], what
    swapped = good._replace(leader=good.helper, helper=good.leader)
    assert both.leader.take([swapped, good]) == [ReportError.OUTDATED_CONFIG, None]
    both.run()
    assert both.answer() == (1, [1])


@EACH
def test_a_report_that_comes_again_counts_once(world, collusion):
    """Also as a copy that nobody can tell from it, of which no verifier leaves."""
    both = world(task_of(collusion=collusion))
    first, other = honest(both.task, [1]), honest(both.task, [1])
    renamed = first._replace(metadata=other.metadata._replace(report_id=COINS.key(16)))
    thief = other._replace(metadata=first.metadata)
    assert both.leader.take([first, first, renamed, thief]) == [
        None,
        None,
        ReportError.REPORT_REPLAYED,
        ReportError.REPORT_REPLAYED,
    ]
    both.run()
    again = copied(both.task, first)
    assert both.leader.take([again, other]) == [None, None]
    both.run()
    (job,) = [decoded(JOB, body) for what, _, body, _ in both.messages if what == "verify"][1:]
    payloads = {one.report_share.metadata.report_id: one.payload for one in job.verify_inits}
    assert payloads[again.metadata.report_id] == REFUSED
    assert outcomes(both)[again.metadata.report_id] == ReportError.REPORT_REPLAYED
    assert both.answer() == (3, [2])


@pytest.mark.parametrize("taken", [0, 1])
def test_half_of_a_share_that_came_before_is_not_verified_at_another_point(world, taken):
    """A helper would have two points of the line on which the bit is."""
    task = task_of()
    both = world(task)
    victim, liar = honest(task, [1]), sent(task, *sharded(task, [0]))
    stolen, own = (row_of(copied(task, one).leader, Party.LEADER) for one in (victim, liar))
    halves = [own[:66], own[66:]]
    halves[taken] = stolen[66 * taken : 66 * (taken + 1)]
    mixed = dap_report(COINS.key(16), b"".join(halves), row_of(liar.helper, Party.HELPER))
    for report in (victim, mixed):
        both.leader.take([report])
        both.run()
    *_, (_, _, body, _) = both.messages
    (init,) = decoded(JOB, body).verify_inits
    assert init.payload == REFUSED


@EACH
def test_nothing_is_verified_of_a_report_of_which_a_part_cannot_be_opened(world, collusion):
    """And what could be opened of it is known from then on."""
    task = task_of(histogram(1), collusion)
    both = world(task)
    leader, helper = sharded(task, [1, 0])
    torn = sent(task, [leader[0], leader[1][:40]], helper)
    again = sent(task, [leader[0], sharded(task, [0])[0][0]], sharded(task, [1, 0])[1])
    for report in (torn, again):
        both.leader.take([report])
        both.run()
        *_, (_, _, body, _) = both.messages
        (init,) = decoded(JOB, body).verify_inits
        assert init.payload == INITIALIZE.write(b"\xff" * 64)
