"""Two servers: no report that was told to be there is lost or counts twice, and none of a liar."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from sqlalchemy.engine.default import DefaultDialect

from panprivacy.aggregator.helper import Helper
from panprivacy.aggregator.messages import (
    AGGREGATE_SHARE_REQ,
    FINISH,
    INITIALIZE,
    JOB,
    RESPONSES,
    SHARES,
    AggregateShareReq,
    Party,
    ReportError,
    VerifyResp,
)
from panprivacy.aggregator.presentation import decoded
from panprivacy.aggregator.problems import AbortError, PeerError
from panprivacy.aggregator.reports import batch_of, dap_report, row_of
from panprivacy.errors import PanPrivacyError
from panprivacy.service.outgoing.records import StoreError
from tests.service.two_servers import (
    COINS,
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


@pytest.fixture
def world(tmp_path):
    """Makes worlds."""
    with contextlib.ExitStack() as stack:

        def made(task):
            folder = tmp_path / str(len(list(tmp_path.iterdir())))
            folder.mkdir()
            return stack.enter_context(World(folder, task))

        yield made


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
    rows = [[1, 0, 0], [0, 1, 0], [0, 1, 0], [1, 1, 1]]
    assert both.leader.take([honest(both.task, bits) for bits in rows]) == [None] * 4
    both.run()
    assert both.answer() == (4, [2, 3, 1])


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


LIES = {"2": 2, "minus one": -1, "a million": 1_000_000}


@EACH
def test_what_a_liar_sends_is_refused_and_the_sum_is_that_of_the_others(world, collusion):
    task = task_of(histogram(1), collusion)
    other = task_of(histogram(1), collusion)
    both = world(task)
    leader, helper = sharded(task, [1, 1])
    bad = {name: lying(task, amount, place=1) for name, amount in LIES.items()}
    bad["a wrong proof"] = sent(task, [leader[0], leader[1][:40] + bytes(8)], helper)
    bad["no field elements"] = sent(task, [b"\xff" * 48, leader[1]], sharded(task, [1, 1])[1])
    bad["of another task"] = honest(other, [1, 1])
    bad["cut short"] = sent(task, [leader[0][:40], leader[1]], helper)
    bad["a short seed"] = sent(task, sharded(task, [1, 1])[0], [helper[0][:31], helper[1]])
    bad["halves of two"] = sent(task, sharded(task, [1, 1])[0], sharded(task, [1, 1])[1])
    bad["one payload twice"] = sent(task, *[[one[0]] * 2 for one in sharded(task, [1, 1])])
    good = [honest(task, [1, 0]), honest(task, [0, 1]), honest(task, [0, 1])]
    reports = [good[0], *bad.values(), *good[1:]]
    assert both.leader.take(reports) == [None] * len(reports), "nobody is told"
    both.run()
    found = outcomes(both)
    for name, report in bad.items():
        assert isinstance(found[report.metadata.report_id], ReportError), name
    for report in good:
        assert found[report.metadata.report_id] == ACCEPTED
    assert both.answer() == (len(reports), [1, 2])


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


def test_a_helper_that_strips_other_rows_when_it_is_asked_again_is_told_nothing(world, monkeypatch):
    """It would have two points of the line on which a bit is; that it is asked, it can arrange."""
    both = world(task_of(collusion="one-server"))
    strip, verify, asked = Helper.strip, Helper.verify, []

    def swaps(self, job, body):
        rows = decoded(SHARES, strip(self, job, body))
        asked.append(body)
        given = rows[:: -1 if len(asked) > 1 else 1]
        swapped = (
            one._replace(encrypted_input_share=other.encrypted_input_share)
            for one, other in zip(rows, given, strict=True)
        )
        return SHARES.write(tuple(swapped))

    def breaks_off(self, job, body):
        if len(asked) == 1:
            raise DiedError
        return verify(self, job, body)

    monkeypatch.setattr(Helper, "strip", swaps)
    monkeypatch.setattr(Helper, "verify", breaks_off)
    both.leader.take([honest(both.task, [1]), honest(both.task, [0])])
    with pytest.raises(PeerError):
        both.leader.advance()
    both.run()
    *_, (_, _, body, _) = both.messages
    assert {one.payload for one in decoded(JOB, body).verify_inits} == {REFUSED}
    assert both.answer() == (2, [0])


def test_the_helper_refuses_what_a_leader_lets_through(world, monkeypatch):
    """The same report in two jobs, and a copy of it that the leader does not look at."""
    both = world(task_of())
    first = honest(both.task, [1])
    both.leader.take([first])
    both.run()
    _, _, body, _ = both.messages[-1]
    again = decoded(RESPONSES, both.helper.verify(COINS.key(16), body))
    assert [one.outcome for one in again] == [ReportError.REPORT_REPLAYED]
    monkeypatch.setattr(
        type(both.leader_store), "_new", lambda self, connection, opened: set(opened)
    )
    copy = copied(both.task, first)
    both.leader.take([copy])
    both.run()
    assert outcomes(both) == {copy.metadata.report_id: ReportError.REPORT_REPLAYED}
    assert both.answer() == (2, [1])


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


def test_the_helper_gives_its_share_for_the_whole_batch_alone_and_once(world):
    both = world(task_of(batch=2))
    both.leader.take([honest(both.task, [1]) for _ in range(2)])
    both.run()
    batch, _ = both.leader_store.batch()
    right = AggregateShareReq(batch_of(both.task), b"", batch.reports, batch.checksum)
    wrong = {
        "do not agree": right._replace(report_count=1),
        "agree": right._replace(checksum=bytes(32)),
        "one batch": right._replace(batch_selector=batch_of(task_of())),
        "parameter": right._replace(agg_param=b"x"),
    }
    for said, request in wrong.items():
        with pytest.raises(AbortError, match=said):
            both.helper.share(bytes(16), AGGREGATE_SHARE_REQ.write(request))
    given = both.helper.share(bytes(16), AGGREGATE_SHARE_REQ.write(right))
    assert both.helper.share(bytes(16), AGGREGATE_SHARE_REQ.write(right)) == given
    with pytest.raises(AbortError, match="another request"):
        both.helper.share(b"x" * 16, AGGREGATE_SHARE_REQ.write(right))
    late = honest(both.task, [1])
    both.leader.take([late])
    both.run()
    assert outcomes(both) == {late.metadata.report_id: ReportError.BATCH_COLLECTED}


def test_the_helper_gives_no_share_of_too_few(world):
    both = world(task_of(batch=2))
    both.leader.take([honest(both.task, [1])])
    both.run()
    batch, _ = both.leader_store.batch()
    request = AggregateShareReq(batch_of(both.task), b"", batch.reports, batch.checksum)
    with pytest.raises(AbortError, match="1 reports have come, and a release takes 2"):
        both.helper.share(bytes(16), AGGREGATE_SHARE_REQ.write(request))


def test_shares_that_do_not_fit_together_are_not_released(world):
    both = world(task_of())
    both.leader.take([honest(both.task, [1])])
    both.run()
    real = type(both.leader_store).batch
    spoiled = lambda self: (real(self)[0]._replace(shares=(5,)), 1)  # noqa: E731
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(both.leader_store), "batch", spoiled)
        with pytest.raises(StoreError, match="do not fit together"):
            both.leader.release()
    assert both.answer() == (1, [1])


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


def test_whoever_dies_wherever_nothing_is_lost_or_counted_twice(world, monkeypatch):
    task = task_of(collusion="one-server")
    (places,) = lives_with_deaths(monkeypatch, world, task, [None])
    assert places > 40
    every = range(0, places, 4)  # `test_whoever_dies_at_any_step` has all of them
    assert len(list(lives_with_deaths(monkeypatch, world, task, every))) == len(every)


@pytest.mark.slow
@EACH
def test_whoever_dies_at_any_step(world, monkeypatch, collusion):
    task = task_of(collusion=collusion)
    (places,) = lives_with_deaths(monkeypatch, world, task, [None])
    assert len(list(lives_with_deaths(monkeypatch, world, task, range(places)))) == places
