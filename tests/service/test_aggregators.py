"""Two servers: no report that was told to be there is lost or counts twice, and none of a liar."""

from __future__ import annotations

import contextlib
import functools
import json
import operator
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy.engine.default import DefaultDialect

from panprivacy.aggregator import leader as leader_module
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
from panprivacy.aggregator.reports import batch_of, dap_report, metadata_of, row_of, share_of
from panprivacy.aggregator.verifying import OpenedRows
from panprivacy.errors import PanPrivacyError
from panprivacy.federated.shares import open_leader
from panprivacy.service.outgoing.records import StoreError
from panprivacy.vdaf import MODULUS, Prio3Count
from tests.service.two_servers import (
    COINS,
    LEADER,
    VERIFY_KEY,
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
    rows = [[1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 1, 1]]
    assert both.leader.take([honest(both.task, bits) for bits in rows]) == [None] * 4
    both.run()
    assert both.answer() == (4, [2, 2, 1])


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


def test_the_helper_takes_its_layer_off_the_first_row_of_a_report_alone(world):
    task = task_of(collusion="one-server")
    both = world(task)
    first, other = honest(task, [1]), honest(task, [1])
    name = first.metadata.report_id

    def stripped(*reports):
        asked = tuple(
            share_of(name, row_of(one.leader, Party.LEADER), Party.LEADER) for name, one in reports
        )
        found = decoded(SHARES, both.helper.strip(bytes(16), SHARES.write(asked)))
        return [one.metadata.report_id for one in found]

    assert stripped((name, first)) == [name]
    assert stripped((name, first)) == [name]
    assert stripped((name, other)) == []
    both.leader.take([first])
    both.leader.release()
    assert stripped((COINS.key(16), other)) == []


def test_the_helper_takes_nothing_off_where_the_leader_opens_by_itself(world):
    with pytest.raises(AbortError, match="opens its rows of this task by itself"):
        world(task_of()).helper.strip(bytes(16), b"")


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

    def spoiled(self):
        batch, came = real(self)
        return batch._replace(shares=((batch.shares[0] + 1) % MODULUS,)), came

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
    every = range(0, places, 2)  # `test_whoever_dies_at_any_step` has all of them
    assert len(list(lives_with_deaths(monkeypatch, world, task, every))) == len(every)


@pytest.mark.slow
@EACH
def test_whoever_dies_at_any_step(world, monkeypatch, collusion):
    task = task_of(collusion=collusion)
    (places,) = lives_with_deaths(monkeypatch, world, task, [None])
    assert len(list(lives_with_deaths(monkeypatch, world, task, range(places)))) == places
