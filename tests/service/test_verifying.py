"""Shares of two servers, verified."""

from __future__ import annotations

from panprivacy.devices.aggregator.verifying import OpenedRows
from panprivacy.devices.federated.shares import open_leader
from panprivacy.devices.vdaf import Prio3Count
from tests.service.two_servers import (
    LEADER,
    VERIFY_KEY,
    honest,
    task_of,
)


def test_shares_that_may_not_be_verified_stay_out_of_the_computation():
    task = task_of()
    reports = [honest(task, [bit]) for bit in (0, 1)]
    names = [one.metadata.report_id for one in reports]
    rows = OpenedRows(
        task, names, [one.leader.enc + one.leader.payload for one in reports], open_leader, LEADER
    )
    prio, computed = Prio3Count(task.context), []

    def verify(nonces, payloads):
        computed.append(payloads)
        return prio.verify_leader(VERIFY_KEY, nonces, payloads)

    found = rows.verified(verify, {names[1]})
    assert not any(computed[0][:48])
    assert any(computed[0][48:])
    assert found.valid.tolist() == [False, True]
    assert found.verifiers[0] == b"\xff" * 32
