"""What the leader of two servers does with its jobs, and with what a helper answers."""

from __future__ import annotations

import functools
import json
import operator
from hashlib import sha256

import pytest

from panprivacy.devices.aggregator import leader as leader_module
from panprivacy.devices.aggregator.messages import (
    FINISH,
    INITIALIZE,
    JOB,
    RESPONSES,
    ReportError,
)
from panprivacy.devices.aggregator.presentation import decoded
from panprivacy.devices.aggregator.problems import AbortError, PeerError
from panprivacy.devices.aggregator.reports import metadata_of
from panprivacy.devices.vdaf import MODULUS
from panprivacy.errors import PanPrivacyError
from panprivacy.service.outgoing.records import StoreError
from tests.service.test_aggregators import ACCEPTED, outcomes
from tests.service.two_servers import (
    histogram,
    honest,
    lying,
    sent,
    sharded,
    task_of,
)


def test_a_job_keeps_its_reports_and_has_each_once(world):
    both = world(task_of())
    both.leader.take([honest(both.task, [1]) for _ in range(2)])
    both.run()
    ((_, name, body, answer),) = both.messages
    job = decoded(JOB, body)
    half, twice = (
        JOB.write(job._replace(verify_inits=job.verify_inits[:1] * times)) for times in (1, 2)
    )
    with pytest.raises(AbortError, match="another request came for this job"):
        both.helper.verify(name, half)
    with pytest.raises(AbortError, match="none more than once"):
        both.helper.verify(bytes(16), twice)
    share = job.verify_inits[0].report_share
    many = tuple(
        job.verify_inits[0]._replace(
            report_share=share._replace(metadata=metadata_of(number.to_bytes(16, "big")))
        )
        for number in range(501)
    )
    with pytest.raises(AbortError, match="500 reports at most"):
        both.helper.verify(bytes(16), JOB.write(job._replace(verify_inits=many)))
    assert both.helper.verify(name, body) == answer
    assert both.helper.verify(bytes(16), JOB.write(job._replace(verify_inits=()))) == b""


def test_a_job_that_ended_is_not_added_again(world):
    """As by a second leader that shares the database."""
    both = world(task_of())
    both.leader.take([honest(both.task, [1])])
    both.run()
    batch, _ = both.leader_store.batch()
    ((_, name, _, _),) = both.messages
    both.leader_store.finish(name, batch)
    assert both.leader_store.batch() == (batch, 1)


@pytest.mark.parametrize("verifier", [b"", b"x" * 31, b"x" * 33])
def test_a_verifier_that_is_none_costs_its_report_alone(world, verifier):
    both = world(task_of())
    both.leader.take([honest(both.task, [1]) for _ in range(2)])
    real = both.verify

    def spoiled(name, body):
        job = decoded(JOB, body)
        first = job.verify_inits[0]._replace(payload=INITIALIZE.write(verifier))
        return real(name, JOB.write(job._replace(verify_inits=(first, *job.verify_inits[1:]))))

    both.verify = spoiled
    both.run()
    assert list(outcomes(both).values()) == [ReportError.VDAF_VERIFY_ERROR, ACCEPTED]
    assert both.answer() == (2, [1])


ANSWERS = {
    "for others": lambda one: one._replace(report_id=bytes(16)),
    "just the end": lambda one: one._replace(outcome=None),
    "another message": lambda one: one._replace(outcome=FINISH.write(b"x")),
    "accepts what was not sent": lambda one: one._replace(outcome=ACCEPTED),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_a_leader_adds_nothing_if_the_helper_answers_what_it_must_not(world, what):
    both = world(task_of())
    liar = sent(both.task, [b"\xff" * 48], sharded(both.task, [1])[1])
    both.leader.take([honest(both.task, [1]), liar])
    real = both.verify

    def lies(name, body):
        found = decoded(RESPONSES, real(name, body))
        return RESPONSES.write(tuple(map(ANSWERS[what], found)))

    both.verify = lies
    for _ in range(2):
        with pytest.raises(PeerError, match="something else than was asked"):
            both.run()
    both.verify = real
    assert both.answer() == (2, [1])


def test_a_job_has_so_many_values_and_its_batch_a_checksum_of_its_valid_ids(world, monkeypatch):
    monkeypatch.setattr(leader_module, "_MOST_ENTRIES", 4)
    task = task_of(histogram(1))
    both = world(task)
    good = [honest(task, [1, 0]) for _ in range(4)]
    both.leader.take([*good, lying(task, 3)])
    both.run()
    jobs = [decoded(JOB, body) for what, _, body, _ in both.messages if what == "verify"]
    assert sorted(len(job.verify_inits) for job in jobs) == [1, 2, 2]
    digests = [int.from_bytes(sha256(one.metadata.report_id).digest()) for one in good]
    batch, came = both.leader_store.batch()
    assert (batch.reports, came) == (4, 5)
    assert int.from_bytes(batch.checksum) == functools.reduce(operator.xor, digests)


def test_a_release_waits_for_the_batch_and_is_given_once(world):
    both = world(task_of(batch=3))
    reports = [honest(both.task, [1]) for _ in range(4)]
    both.leader.take(reports[:2])
    with pytest.raises(PanPrivacyError, match="2 reports have come, and a release takes 3 or more"):
        both.leader.release()
    assert not both.leader_store.closed
    both.leader.take(reports[2:3])
    first = both.leader.release()  # it verifies what waits
    assert json.loads(first)["reports"] == 3
    assert both.leader.take([reports[3], reports[0]]) == [ReportError.BATCH_COLLECTED, None]
    both.start_leader()
    both.start_helper()
    assert both.leader.release() == first


def test_shares_that_do_not_fit_together_are_not_released(world):
    both = world(task_of())
    both.leader.take([honest(both.task, [1])])
    both.run()
    real = type(both.leader_store).batch

    def spoiled(self):
        batch, came = real(self)
        return batch._replace(shares=((batch.shares[0] + 1) % MODULUS,)), came

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(both.leader_store), "batch", spoiled)
        with pytest.raises(StoreError, match="do not fit together"):
            both.leader.release()
    assert both.answer() == (1, [1])
