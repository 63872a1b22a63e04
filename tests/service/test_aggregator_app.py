"""Two servers over HTTP: who may ask what, and that nothing which is asked breaks anything."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import re
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panprivacy.devices.aggregator.app import (
    _MOST_UPLOAD,
    HelperApi,
    LeaderApi,
    helper_application,
    leader_application,
)
from panprivacy.devices.aggregator.helper_store import HelperStore
from panprivacy.devices.aggregator.leader_store import LeaderStore
from panprivacy.devices.aggregator.messages import (
    AGGREGATE_SHARE_REQ,
    ERRORS,
    JOB_INIT_REQ,
    REPORT,
    SHARE_REQ,
    SHARES,
    UPLOAD,
    UPLOAD_ERRORS,
    UPLOAD_REQ,
    AggregateShareReq,
    HpkeCiphertext,
    Party,
    ReportError,
    base64,
    reports_path,
)
from panprivacy.devices.aggregator.messages import UploadedReport as DapReport
from panprivacy.devices.aggregator.peer import STRIPPED, Peer
from panprivacy.devices.aggregator.presentation import decoded
from panprivacy.devices.aggregator.problems import PeerError
from panprivacy.devices.aggregator.reports import (
    batch_of,
    dap_bytes,
    metadata_of,
    row_of,
    share_of,
    upload,
)
from panprivacy.devices.federated.messages import Report
from panprivacy.devices.federated.task import Task
from panprivacy.errors import PlanError
from panprivacy.service.config.tokens import Role, Token, Tokens, hash_of
from tests.commands import run_command
from tests.service.test_collector import Sender
from tests.service.two_servers import COINS, World, histogram, honest, lying, sharing, sums, task_of

TOKENS = Tokens(
    Token(name=role, may=(Role(role),), sha256=hash_of(f"pp_{role}"))
    for role in ("ingest", "release")
)
_PATIENCE = 60
_LISTENING = re.compile(r"(http://127\.0\.0\.1:\d+)")


class Request:
    """Both servers, which answer in this process."""

    def __init__(self, world):
        self.world, self.task = world, world.task
        self.leader = LeaderApi(b"{}", self.task, world.leader, world.leader_store, TOKENS)
        helper = HelperApi(b"{}", self.task, world.helper, world.helper_store, TOKENS)
        apps = {"leader": leader_application(self.leader), "helper": helper_application(helper)}
        self._clients = {
            role: httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url=f"http://{role}/tasks"
            )
            for role, app in apps.items()
        }

    async def asked(self, server, method, path, media=None, content=b"", role="ingest", task=None):
        """A request, and its answer."""
        name = base64(task or self.task.digest)
        url = path if path.startswith("http") else f"/{name}{path}"
        headers = {"Authorization": f"Bearer pp_{role}"}
        if media is not None:
            headers["Content-Type"] = str(media)
        return await self._clients[server].request(method, url, headers=headers, content=content)

    def ask(self, *given, **named):
        """The same, for who waits."""
        return asyncio.run(self.asked(*given, **named))

    def send(self, *reports, **given):
        """Upload reports."""
        return self.ask("leader", "POST", "/reports", UPLOAD_REQ, UPLOAD.write(reports), **given)

    def release(self):
        return self.ask("leader", "POST", "http://leader/v1/release", role="release")


@pytest.fixture
def asked(tmp_path):
    with World(tmp_path, task_of(histogram(1), "one-server", batch=2)) as world:
        yield Request(world)


def test_an_upload_says_which_reports_are_not_taken(asked):
    first, second = honest(asked.task, [1, 0]), honest(asked.task, [0, 1])
    late = second._replace(metadata=second.metadata._replace(time=5))
    answer = asked.send(first, late, second)
    assert (answer.status_code, answer.headers["content-type"]) == (200, str(UPLOAD_ERRORS))
    (wrong,) = decoded(ERRORS, answer.content)
    assert wrong == (second.metadata.report_id, ReportError.INVALID_MESSAGE)
    again = asked.send(first, second)
    assert (again.status_code, again.content) == (200, b"")
    answer = asked.release()
    assert sums(asked.task, answer.content) == (2, [1, 1])
    assert asked.release().content == answer.content
    (wrong,) = decoded(ERRORS, asked.send(honest(asked.task, [1, 0])).content)
    assert wrong.error == ReportError.BATCH_COLLECTED
    assert asked.ask("leader", "GET", "http://leader/healthz").json()["status"] == "closed"


@pytest.mark.long
def test_an_upload_has_no_more_reports_than_fit_whole(asked, monkeypatch):
    """Reports of nothing are short: 87,000 of them would hold the server up for seconds."""
    read, report = [], type(REPORT).read

    def counted(codec, source):
        if codec is REPORT:
            read.append(None)
        return report(codec, source)

    monkeypatch.setattr(type(REPORT), "read", counted)
    nothing = HpkeCiphertext(Party.LEADER, b"x", b"x")
    names = (number.to_bytes(16, "big") for number in range(87_000))
    body = UPLOAD.write([DapReport(metadata_of(one), b"", nothing, nothing) for one in names])
    assert len(body) < _MOST_UPLOAD
    answer = asked.ask("leader", "POST", "/reports", UPLOAD_REQ, body)
    assert answer.status_code == 400
    assert "send the others in another" in answer.json()["detail"]
    assert len(read) == _MOST_UPLOAD // dap_bytes(asked.task) < 87_000 / 5
    assert len(UPLOAD.write([honest(asked.task, [1, 0])])) == dap_bytes(asked.task)


def test_a_release_that_comes_too_early_says_so(asked):
    asked.send(honest(asked.task, [1, 0]))
    answer = asked.release()
    assert answer.status_code == 409
    assert "a release takes 2 or more" in answer.json()["detail"]


def test_who_may_not_ask_is_told_and_changes_nothing(asked):
    good = honest(asked.task, [1, 1])
    for role, status in [("nobody", 401), ("release", 403)]:
        assert asked.send(good, role=role).status_code == status
    ingest = asked.ask("leader", "POST", "http://leader/v1/release")
    assert ingest.status_code == 403
    name = base64(bytes(16))
    for path, media, role in [
        (f"/aggregation_jobs/{name}", JOB_INIT_REQ, "release"),
        (f"/stripped_shares/{name}", STRIPPED, "release"),
        (f"/aggregate_shares/{name}", SHARE_REQ, "ingest"),
    ]:
        assert asked.ask("helper", "PUT", path, media, role="nobody").status_code == 401
        assert asked.ask("helper", "PUT", path, media, role=role).status_code == 403
        wrong = asked.ask("helper", "PUT", path, "text/plain", role=_other(role))
        assert wrong.status_code == 415
        assert str(media) in wrong.json()["detail"]
        assert asked.ask("helper", "GET", path, role=_other(role)).status_code == 405
    assert asked.world.leader_store.batch()[1] == 0


def _other(role):
    return "ingest" if role == "release" else "release"


def test_a_problem_has_the_name_that_the_draft_gives_it(asked):
    name = base64(bytes(16))
    job, share = f"/aggregation_jobs/{name}", f"/aggregate_shares/{name}"
    request = AggregateShareReq(batch_of(asked.task), b"", 0, bytes(32))
    small = AGGREGATE_SHARE_REQ.write(request)
    parameter = AGGREGATE_SHARE_REQ.write(request._replace(agg_param=b"x"))
    ask = functools.partial(asked.ask, "helper", "PUT")
    for server, found, kind in [
        ("leader", asked.ask("leader", "POST", "/reports", UPLOAD_REQ, b"x"), "invalidMessage"),
        ("leader", asked.send(task=bytes(32)), "unrecognizedTask"),
        ("helper", ask(job, JOB_INIT_REQ, b"x"), "invalidMessage"),
        ("helper", ask(job + "x", JOB_INIT_REQ, b"x"), "invalidMessage"),
        (
            "helper",
            asked.ask("helper", "PUT", share, SHARE_REQ, small, "release"),
            "invalidBatchSize",
        ),
        (
            "helper",
            asked.ask("helper", "PUT", share, SHARE_REQ, parameter, "release"),
            "invalidAggregationParameter",
        ),
    ]:
        document = found.json()
        assert document["type"] == f"urn:ietf:params:ppm:dap:error:{kind}", server
        assert document["taskid"] == base64(asked.task.digest)
        assert found.status_code == document["status"] == (404 if "Task" in kind else 400)
        assert found.headers["content-type"] == "application/problem+json"
    assert "an id has 16 bytes" in ask(job + "x", JOB_INIT_REQ, b"x").json()["detail"]


def test_a_body_that_is_too_long_is_refused_before_it_is_read(asked):
    answer = asked.ask("leader", "POST", "/reports", UPLOAD_REQ, bytes(1 << 23))
    assert answer.status_code == 413


def bodies(task):
    """Requests that are right, each with its place."""
    report, liar = honest(task, [1, 0]), lying(task, 9)
    share = share_of(report.metadata.report_id, row_of(report.leader, Party.LEADER), Party.LEADER)
    request = AggregateShareReq(batch_of(task), b"", 1, bytes(32))
    name = base64(COINS.key(16))
    return [
        ("leader", "POST", "/reports", UPLOAD_REQ, UPLOAD.write((liar, report)), "ingest"),
        ("helper", "PUT", f"/stripped_shares/{name}", STRIPPED, SHARES.write((share,)), "ingest"),
        ("helper", "PUT", f"/aggregation_jobs/{name}", JOB_INIT_REQ, b"", "ingest"),
        (
            "helper",
            "PUT",
            f"/aggregate_shares/{name}",
            SHARE_REQ,
            AGGREGATE_SHARE_REQ.write(request),
            "release",
        ),
    ]


@pytest.mark.long
def test_whatever_is_sent_is_answered_and_no_honest_report_is_lost(asked):
    """Random bytes, and right requests of which some bytes were changed, on every path."""
    task, world = asked.task, asked.world
    good = [honest(task, [1, 0]), honest(task, [0, 1])]
    assert asked.send(good[0]).content == b""
    world.run()
    job = next(body for what, _, body, _ in world.messages if what == "verify")
    right = bodies(task)
    right[2] = (*right[2][:4], job, right[2][5])
    taken = set()

    @settings(max_examples=60, suppress_health_check=list(HealthCheck))
    @given(
        st.sampled_from(range(len(right))),
        st.one_of(
            st.binary(max_size=300).map(lambda body: lambda _: body),
            st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=4)).map(
                lambda change: lambda body: changed(body, *change)
            ),
        ),
    )
    def any_request(place, spoil):
        server, method, path, media, body, role = right[place]
        answer = asked.ask(server, method, path, media, spoil(body), role)
        assert answer.status_code < 500
        if path == "/reports" and answer.status_code == 200:
            refused = {one.report_id for one in decoded(ERRORS, answer.content)}
            new = decoded(UPLOAD, spoil(body))
            taken.update(
                one.metadata.report_id for one in new if one.metadata.report_id not in refused
            )

    any_request()
    assert asked.send(good[1]).content == b""
    came, found = sums(task, asked.release().content)
    assert came == 2 + len(taken)
    mine = bodies_sum(right[0][4], taken)
    assert found[1] == 1
    assert 1 <= found[0] <= 1 + mine


def changed(body, where, put):
    """A body of which some bytes are others."""
    at = int(where * len(body))
    return body[:at] + put + body[at + len(put) :]


def bodies_sum(body, taken):
    """What the one right report among those that were spoiled may add."""
    _, right = decoded(UPLOAD, body)
    return max(1, int(right.metadata.report_id in taken))


def test_a_helper_that_is_gone_is_waited_for(asked, monkeypatch):
    for each in (honest(asked.task, [1, 0]), honest(asked.task, [0, 1])):
        asked.send(each)
    with monkeypatch.context() as patched:
        peer = Peer(asked.task, "http://127.0.0.1:1", "pp_ingest")
        patched.setattr(asked.world.leader, "_helper", peer)
        answer = asked.release()
        assert answer.status_code == 503
        assert "the helper does not answer" in answer.json()["detail"]
        assert asked.ask("leader", "GET", "http://leader/healthz").json()["status"] == "troubled"
        peer.end()
    assert sums(asked.task, asked.release().content) == (2, [1, 1])


@pytest.mark.long
def test_reports_that_come_during_a_release_wait_for_it(asked):
    """Else a release would verify for as long as some come."""
    first, second, late = (honest(asked.task, [1, 0]) for _ in range(3))
    asked.send(first, second)
    verify = asked.world.verify

    async def seen():
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def slowly(name, body):
            loop.call_soon_threadsafe(begun.set)
            time.sleep(0.5)
            return verify(name, body)

        asked.world.verify = slowly
        path = "http://leader/v1/release"
        releasing = asyncio.create_task(asked.asked("leader", "POST", path, role="release"))
        await begun.wait()
        body = UPLOAD.write((late,))
        sent = await asked.asked("leader", "POST", "/reports", UPLOAD_REQ, body)
        return await releasing, sent

    answer, sent = asyncio.run(seen())
    assert sums(asked.task, answer.content)[0] == 2
    (wrong,) = decoded(ERRORS, sent.content)
    assert wrong == (late.metadata.report_id, ReportError.BATCH_COLLECTED)


def test_reports_are_verified_as_they_come(asked):
    async def seen():
        api = asked.leader
        working = asyncio.create_task(api.advance())
        await asyncio.sleep(0.1)
        body = UPLOAD.write((honest(asked.task, [1, 0]),))
        await asked.asked("leader", "POST", "/reports", UPLOAD_REQ, body)
        for _ in range(500):
            if len(asked.world.messages) == 2:
                break
            await asyncio.sleep(0.01)
        working.cancel()

    asyncio.run(seen())
    assert [what for what, *_ in asked.world.messages] == ["strip", "verify"]


# Real processes


def test_a_task_for_one_server_is_not_for_two(tmp_path):
    """And one for two is not for one; nothing is made of either."""
    words = ["--kind", "count-nonzero", "--horizon", "1", "--epsilon", "1"]
    words += ["--signer", tmp_path / "signer"]
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    assert run_command("task", one, *words).code == 0
    assert run_command("task", two, *words, "--servers", "2").code == 0
    (tmp_path / "two.helper.secret").rename(tmp_path / "one.helper.secret")
    (tmp_path / "one.secret").rename(tmp_path / "two.secret")
    before = sorted(tmp_path.iterdir())
    asked = run_command("aggregator", "--role", "helper", "--task", one)
    assert (asked.code, asked.stderr.count("\n")) == (2, 1)
    assert "this task is for one server: run panprivacy collector" in asked.stderr
    asked = run_command("collector", two)
    assert (asked.code, asked.stderr.count("\n")) == (2, 1)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("store", [LeaderStore, HelperStore])
def test_a_store_that_was_begun_under_another_verification_key_is_refused(tmp_path, store):
    """The same shares, verified under two keys, would tell more of them."""
    url, task = f"sqlite:///{tmp_path}/store", task_of(histogram(1), "one-server", batch=2)
    first, second = bytes(32), bytes(31) + b"1"
    for _ in range(2):
        store(url, task, first, tmp_path / "mark").end()
    for fresh in (False, True):
        with pytest.raises(PlanError, match="another verification key: start with the secrets"):
            store(url, task, second, tmp_path / "mark", fresh=fresh)
    store(url, task, first, tmp_path / "mark").end()


@pytest.mark.parametrize("role", ["leader", "helper"])
def test_a_server_without_secrets_says_where_they_come_from(tmp_path, role):
    task = tmp_path / "task.json"
    asked = run_command("aggregator", "--role", role, "--task", task)
    assert (asked.code, asked.stderr.count("\n")) == (2, 1)
    assert "there is no task" in asked.stderr
    task.touch()
    asked = run_command("aggregator", "--role", role, "--task", task)
    assert (asked.code, asked.stderr.count("\n")) == (2, 1)
    assert f"task.{role}.secret is not there: panprivacy task writes it" in asked.stderr
    assert list(tmp_path.iterdir()) == [task]


def test_a_helper_asks_nobody(tmp_path):
    words = ("--task", tmp_path / "task.json", "--helper", "http://127.0.0.1:1")
    asked = run_command("aggregator", "--role", "helper", *words)
    assert (asked.code, asked.stderr.count("\n")) == (2, 1)
    assert "--helper is for the leader" in asked.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch", "3"], "--collusion and --batch are for two servers: add --servers 2"),
        (["--collusion", "none"], "are for two servers"),
        (["--servers", "2", "--collusion", "both"], "collusion must be one of none, one-server"),
        (["--servers", "2", "--batch", "0"], "batch must be"),
        (["--servers", "3"], "--servers must be 1 or 2"),
        (["--recipient", "a", "--recipient", "b"], "give --recipient once for each server"),
    ],
)
def test_servers_that_cannot_be_are_refused_in_one_line(tmp_path, options, message):
    words = ["--kind", "count-nonzero", "--horizon", "1", "--epsilon", "1"]
    words += ["--signer", tmp_path / "signer"]
    asked = run_command("task", tmp_path / "task.json", *words, *options)
    assert (asked.code, asked.stdout, asked.stderr.count("\n")) == (2, "", 1)
    assert message in asked.stderr
    assert not list(tmp_path.iterdir())


class Running:
    """Both servers, each in a process of its own; `leading` are more words for the leader."""

    def __init__(self, folder, *more, leading=()):
        self.leading = leading
        self.folder, self.file = folder, folder / "task.json"
        words = ["--kind", "histogram", "--most", "1", "--horizon", "1", "--epsilon", "100"]
        words += ["--signer", folder / "signer", "--servers", "2", *more]
        result = run_command("task", self.file, *words)
        assert result.code == 0, result.stderr
        self.tokens = dict(re.findall(r"(ingest|release) +(pp_\S+)", result.stdout))
        self.task = Task.unverified(self.file.read_bytes())
        self.client = httpx.Client(trust_env=False, timeout=_PATIENCE)
        self.processes, self.urls, self.ports = {}, {}, {}

    def __enter__(self):
        self.start("helper")
        self.start("leader")
        return self

    def __exit__(self, *_):
        for role in self.processes:
            self.kill(role)
        self.client.close()

    def start(self, role):
        """Start one, and wait until it listens, at the port that it had."""
        log = self.folder / f"{role}.log"
        words = ["aggregator", "--role", role, "--task", self.file]
        words += ["--listen", f"127.0.0.1:{self.ports.get(role, 0)}"]
        if role == "leader":
            words += ["--helper", self.urls["helper"], *self.leading]
        command = [sys.executable, "-c", "from panprivacy.cli import main; main()", *words]
        with log.open("w") as file:
            self.processes[role] = subprocess.Popen(command, stdout=file, stderr=file)
        end = time.monotonic() + _PATIENCE
        while not (found := _LISTENING.search(log.read_text())):
            assert self.processes[role].poll() is None, log.read_text()
            assert time.monotonic() < end
            time.sleep(0.05)
        self.urls[role], self.ports[role] = found[1], int(found[1].rpartition(":")[2])

    def kill(self, role, number=signal.SIGKILL):
        self.processes[role].send_signal(number)
        return self.processes[role].wait(_PATIENCE)

    def kill_and_start(self, role):
        self.kill(role)
        self.start(role)

    def post(self, path, role, client=None, **given):
        headers = {"Authorization": f"Bearer {self.tokens[role]}", **given.pop("headers", {})}
        return (client or self.client).post(self.urls["leader"] + path, headers=headers, **given)

    def send(self, *reports, client=None):
        path = reports_path(self.task.digest)
        headers = {"Content-Type": str(UPLOAD_REQ)}
        body = upload(reports, self.task)
        return self.post(path, "ingest", client, content=body, headers=headers)

    def release(self):
        return self.post("/v1/release", "release")


def made(task, bits):
    """A report as a device gives it."""
    return Report(COINS.key(16), sharing(task).encrypt(bits, COINS)).to_bytes(task)


@pytest.mark.long
def test_two_processes_outlive_kills_and_answer_once(tmp_path):
    with Running(tmp_path, "--collusion", "one-server", "--batch", "3") as running:
        bodies = [made(running.task, bits) for bits in ([1, 0], [0, 1], [0, 1])]
        assert running.send(bodies[0], bodies[1]).status_code == 200
        running.kill("helper")
        assert running.send(bodies[2]).status_code == 200
        assert running.release().status_code == 503
        running.kill("leader")
        running.start("helper")
        running.start("leader")
        assert running.send(*bodies).content == b""
        answer = running.release()
        assert sums(running.task, answer.content) == (3, [1, 2])
        stranger = Peer(running.task, running.urls["helper"], "pp_stranger")
        with pytest.raises(PeerError, match="refuses with 401 send a known token"):
            stranger.verify(bytes(16), b"")
        stranger.end()
        for role in ("leader", "helper"):
            assert (tmp_path / f"task.{role}.sqlite").stat().st_mode & 0o777 == 0o600
        assert running.release().content == answer.content
        assert running.kill("leader", signal.SIGTERM) in {0, -signal.SIGTERM}
        for line in (tmp_path / "leader.log").read_text().splitlines():
            assert line.startswith("panprivacy: ")


@pytest.mark.slow
def test_kills_at_random_lose_no_report_and_change_no_answer(tmp_path):
    """Senders try again until they are told; half of the kills come as the answer is asked for."""
    chance = random.Random(25)
    with Running(tmp_path, "--collusion", "one-server") as running:
        bodies = [made(running.task, [1, 0]) for _ in range(100)]
        answers = set()

        def release():
            with contextlib.suppress(httpx.TransportError):
                answer = running.release()
                if answer.status_code == 200:
                    answers.add(answer.content)

        with Sender(running, bodies) as sender:
            for _ in range(8):
                time.sleep(chance.uniform(0, 0.8))
                running.kill_and_start(chance.choice(["leader", "helper"]))
            while len(sender.told) < len(bodies):
                time.sleep(0.05)
        for _ in range(8):
            asking = threading.Thread(target=release)
            asking.start()
            time.sleep(chance.uniform(0, 0.5))
            running.kill_and_start(chance.choice(["leader", "helper"]))
            asking.join()
        release()
        (answer,) = answers
        assert sums(running.task, answer) == (100, [50, 0])
