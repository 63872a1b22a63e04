"""Two servers: no report that was told to be there is lost or counts twice, and none of a liar."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from sqlalchemy.engine.default import DefaultDialect

from panprivacy.devices.aggregator.messages import (
    FINISH,
    INITIALIZE,
    JOB,
    RESPONSES,
    ReportError,
    VerifyResp,
)
from panprivacy.devices.aggregator.presentation import decoded
from panprivacy.devices.aggregator.problems import AbortError, PeerError
from tests.service.two_servers import (
    DiedError,
    World,
    copied,
    histogram,
    honest,
    lying,
    sent,
    sharded,
    sums,
    task_of,
)

EACH = pytest.mark.parametrize("collusion", ["none", "one-server"])


def outcomes(world, number=-1):
    """What the helper said of each report of a job, by id."""
    found = [answer for what, _, _, answer in world.messages if what == "verify"][number]
    return {one.report_id: one.outcome for one in decoded(RESPONSES, found)}


ACCEPTED = FINISH.write(b"")
REFUSED = INITIALIZE.write(b"\xff" * 32)
"""What is sent in the place of a verifier, of shares that are not verified."""


# What comes out


@EACH
def test_the_sum_is_that_of_the_bits(world, collusion):
    both = world(task_of(histogram(2), collusion))
    rows = [[1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 1, 1]]
    assert both.leader.take([honest(both.task, bits) for bits in rows]) == [None] * 4
    both.run()
    assert both.answer() == (4, [2, 2, 1])


@pytest.mark.long
def test_both_stores_may_be_on_a_server(tmp_path, postgres):
    urls = {role: postgres.url() for role in ("leader", "helper")}
    with World(tmp_path, task_of(collusion="one-server"), urls) as both:
        reports = four(both.task)
        both.leader.take(reports[:3])
        both.run()
        both.start_leader()
        both.start_helper()
        both.leader.take(reports)
        answer = both.leader.release()
        assert sums(both.task, answer) == (4, [2])
        both.start_leader()
        assert both.leader.release() == answer


def test_neither_server_has_a_share_of_one_report_on_its_disk(world, tmp_path):
    """A report stays encrypted until it is added up; then its sum is there, and digests."""
    both = world(task_of())
    leader, helper = sharded(both.task, [1])
    report = sent(both.task, leader, helper)
    others = [honest(both.task, [0]) for _ in range(3)]
    both.leader.take([report, *others])
    both.run()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*.sqlite*"))
    assert leader[0][:8] not in kept
    assert leader[0][8:] not in kept
    assert helper[0] not in kept


def test_a_disk_tells_which_reports_are_valid(world, tmp_path):
    """What no sender and no reader is told, as the page on guarantees says."""
    kept = []
    for fits in (True, False):
        both = world(task_of())
        leader, helper = sharded(both.task, [0])
        later = helper if fits else sharded(both.task, [0])[1]
        report = sent(both.task, leader, later)
        both.leader.take([report])
        both.run()
        (path,) = (tmp_path / str(len(kept))).glob("helper.sqlite-wal")
        accepted = RESPONSES.write((VerifyResp(report.metadata.report_id, ACCEPTED),))
        kept.append(accepted in path.read_bytes())
        assert both.leader_store.batch()[0].reports == fits
    assert kept == [True, False]


def test_an_older_copy_from_before_the_answer_is_not_noticed_and_gives_none(world, tmp_path):
    """And the leader verifies a copy at a second point, which it would not have done."""
    both = world(task_of())
    report = honest(both.task, [1], name=b"\xff" * 16)
    both.leader.take([report])
    (file,) = tmp_path.rglob("leader.sqlite")
    both.leader_store.end()
    older = file.read_bytes()
    both.start_leader()
    both.run()
    both.leader_store.end()
    file.write_bytes(older)
    both.start_leader()
    both.leader.take([copied(both.task, report, name=bytes(16))])
    both.run()
    jobs = [decoded(JOB, body).verify_inits for what, _, body, _ in both.messages]
    assert jobs[0][0].payload != jobs[1][0].payload != REFUSED
    with pytest.raises(AbortError, match="do not agree"):
        both.leader.release()


# Liars


def refused_by_leader(world):
    """The ids of those reports of the last job of which no verifier was sent."""
    body = [body for what, _, body, _ in world.messages if what == "verify"][-1]
    return {
        one.report_share.metadata.report_id
        for one in decoded(JOB, body).verify_inits
        if not one.payload[5:].strip(b"\xff")
    }


SPOILED = {
    "a wrong proof": lambda leader, helper: ([leader[0], leader[1][:40] + bytes(8)], helper),
    "exchanged": lambda leader, helper: (leader[::-1], helper),
    "no field elements": lambda leader, helper: ([b"\xff" * 48, leader[1]], helper),
    "cut short": lambda leader, helper: ([leader[0][:40], leader[1]], helper),
    "a short seed": lambda leader, helper: (leader, [helper[0][:31], helper[1]]),
    "one payload twice": lambda leader, helper: (leader[:1] * 2, helper[:1] * 2),
}
OPENED_BY_NOBODY = ["no field elements", "cut short", "one payload twice"]
"""All other lies are found out by their proofs."""
LIES = {"2": 2, "minus one": -1, "a million": 1_000_000}


@EACH
def test_what_a_liar_sends_is_refused_and_the_sum_is_that_of_the_others(world, collusion):
    task = task_of(histogram(1), collusion)
    other = task_of(histogram(1), collusion)
    both = world(task)
    bad = {name: lying(task, amount, place=1) for name, amount in LIES.items()}
    for name, spoil in SPOILED.items():
        leader, helper = sharded(task, [1, 1])
        bad[name] = sent(task, *spoil(leader, helper))
    bad["halves of two"] = sent(task, sharded(task, [1, 1])[0], sharded(task, [1, 1])[1])
    bad["of another task"] = honest(other, [1, 1])
    good = [honest(task, [1, 0]), honest(task, [0, 1]), honest(task, [0, 1])]
    reports = [good[0], *bad.values(), *good[1:]]
    assert both.leader.take(reports) == [None] * len(reports), "nobody is told"
    both.run()
    found = outcomes(both)
    errors = {name: found[report.metadata.report_id] for name, report in bad.items()}
    assert errors.pop("a short seed") == ReportError.HPKE_DECRYPT_ERROR
    assert errors.pop("one payload twice") == ReportError.REPORT_REPLAYED
    assert set(errors.values()) == {ReportError.VDAF_VERIFY_ERROR}
    refused = refused_by_leader(both)
    assert refused == {bad[name].metadata.report_id for name in OPENED_BY_NOBODY}
    for report in good:
        assert found[report.metadata.report_id] == ACCEPTED
    assert both.answer() == (len(reports), [1, 2])


def test_halves_of_two_ticks_do_not_show_in_the_answer(world):
    """Whoever saw a device twice and can send could tell an event from it, if they did."""
    answers = []
    for fits in (True, False):
        both = world(task_of(histogram(1)))
        leader, helper = sharded(both.task, [0, 0])
        later = helper if fits else sharded(both.task, [0, 0])[1]
        both.leader.take([sent(both.task, leader, later), honest(both.task, [1, 0])])
        both.run()
        answers.append(both.leader.release())
    assert answers[0] == answers[1]


# The release


# Processes that die between two steps


class Steps:
    """Counts commits, replaced files and messages; a process dies before or after one of them."""

    def __init__(self, at):
        self.at, self.passed, self.quiet = at, 0, False

    def take(self):
        """One step; whoever takes it may die."""
        if self.quiet:
            return
        self.passed += 1
        if self.passed - 1 == self.at:
            raise DiedError


@contextlib.contextmanager
def counted(monkeypatch, world, at):
    """Have every step counted, before it is done and after."""
    steps = Steps(at)

    def around(real):
        def done(*given):
            steps.take()
            found = real(*given)
            steps.take()
            return found

        return done

    with monkeypatch.context() as patched:
        patched.setattr(DefaultDialect, "do_commit", around(DefaultDialect.do_commit))
        patched.setattr(Path, "replace", around(Path.replace))
        patched.setattr(Path, "unlink", lambda *_, **__: None)  # a dead process tidies nothing
        world.step = lambda _: steps.take()
        yield steps


def persistently(world, work):
    """Do something, by a leader that is begun again when it dies or the helper does."""
    while True:
        try:
            return work()
        except DiedError:
            world.start_leader()
        except PeerError:
            pass


def a_life(world, reports):
    """Two uploads, what comes of them, and the release."""
    for some in (reports[:3], reports[3:]):
        assert persistently(world, lambda some=some: world.leader.take(some)) == [None] * len(some)
        persistently(world, world.run)
    answer = persistently(world, world.leader.release)
    assert persistently(world, world.leader.release) == answer
    return answer


def four(task):
    """Two honest reports, a lie, and a copy."""
    first = honest(task, [1])
    return [first, lying(task, 7), copied(task, first), honest(task, [1])]


def lives_with_deaths(monkeypatch, world, task, places):
    """What comes out, and the messages, of lives in which somebody dies at one place each."""
    for at in places:
        both, reports = world(task), four(task)
        with counted(monkeypatch, both, at) as steps:
            answer = a_life(both, reports)
        assert sums(task, answer) == (4, [2]), at
        assert at is None or steps.passed > at, "nobody died"
        bodies = {}
        for _, name, body, response in both.messages:
            assert bodies.setdefault((name, body), response) == response, "asked again, the same"
        assert len({name for _, name, _, _ in both.messages}) == 3, "two jobs and a share"
        yield steps.passed


@pytest.mark.long
def test_whoever_dies_wherever_nothing_is_lost_or_counted_twice(world, monkeypatch):
    task = task_of(collusion="one-server")
    (places,) = lives_with_deaths(monkeypatch, world, task, [None])
    assert places > 40
    every = range(0, places, 2)  # `test_whoever_dies_at_any_step` has all of them
    assert len(list(lives_with_deaths(monkeypatch, world, task, every))) == len(every)


@pytest.mark.slow
@EACH
def test_whoever_dies_at_any_step(world, monkeypatch, collusion):
    task = task_of(collusion=collusion)
    (places,) = lives_with_deaths(monkeypatch, world, task, [None])
    assert len(list(lives_with_deaths(monkeypatch, world, task, range(places)))) == places
