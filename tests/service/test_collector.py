"""A collector as a process: reports arrive once, and none that was acknowledged is lost."""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
import signal
import threading
import time
from collections import deque
from fractions import Fraction

import httpx
import pyrage
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from panprivacy.audit.ideal import MemoryStorage
from panprivacy.devices.collector.mark import Mark
from panprivacy.devices.collector.secrets import Secrets
from panprivacy.devices.federated.device import Device
from panprivacy.devices.federated.messages import report_bytes
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.task import CountNonZero, Task
from panprivacy.errors import InputError, PlanError
from tests.commands import run_command
from tests.service.running import shared

_PATIENCE = 60
_LISTENING = re.compile(r"(http://127\.0\.0\.1:\d+)")


def made(folder, *more):
    """A task, the tokens by role, and the key that signs."""
    words = ["--horizon", "1", "--epsilon", "1", "--signer", folder / "signer"]
    result = run_command("task", folder / "task.json", "--kind", "count-nonzero", *words, *more)
    assert result.code == 0, result.stderr
    tokens = dict(re.findall(r"(ingest|release) +(pp_\S+)", result.stdout))
    signer = bytes.fromhex(re.search(r"^    ([0-9a-f]{64})$", result.stdout, re.MULTILINE)[1])
    return Task.read((folder / "task.json").read_bytes(), signer), tokens


def report(task, event=True):
    device = Device(task, MemoryStorage())
    for _ in range(task.horizon):
        device.observe(event)
    return device.report()


class Running:
    """A collector in a process of its own."""

    def __init__(self, folder, tokens, *options):
        self._folder, self._tokens, self._options = folder, tokens, options
        self.client = httpx.Client(trust_env=False, timeout=_PATIENCE)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.end(signal.SIGKILL)
        self.client.close()

    def start(self, *more):
        """Start it, and wait until it listens."""
        log = self._folder / "log"
        words = ["collector", self._folder / "task.json", "--listen", "127.0.0.1:0"]
        log.write_text("")
        self._process = shared().start(log, [*words, *self._options, *more])
        end = time.monotonic() + _PATIENCE
        while not (found := _LISTENING.search(log.read_text())):
            assert self._process.poll() is None, log.read_text()
            assert time.monotonic() < end
            time.sleep(0.05)
        self.url = found[1]
        return self

    def end(self, number):
        """End it by a signal."""
        self._process.send_signal(number)
        return self._process.wait(_PATIENCE)

    def send(self, body, role="ingest", client=None):
        """Post a report."""
        return self.post("/v1/reports", role, client, content=body)

    def post(self, path, role, client=None, **given):
        """Post anything, with the token of a role."""
        token = self._tokens.get(role, role)
        headers = {"Authorization": f"Bearer {token}"}
        return (client or self.client).post(self.url + path, headers=headers, **given)

    def get(self, path):
        """Get what anybody may."""
        return self.client.get(self.url + path)


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A collector that is killed after a few reports, and goes on."""
    folder = tmp_path_factory.mktemp("collector")
    task, tokens = made(folder)
    with Running(folder, tokens) as running:
        yield running, task, folder


@pytest.mark.long
def test_what_was_acknowledged_outlives_a_kill_and_counts_once(collected):
    running, task, folder = collected
    first, second, third = (report(task) for _ in range(3))
    assert [running.send(one).status_code for one in (first, first, second)] == [201, 200, 201]
    running.end(signal.SIGKILL)
    running.start()
    assert [running.send(one).status_code for one in (second, first, third)] == [200, 200, 201]
    assert (folder / "task.sqlite").stat().st_mode & 0o777 == 0o600
    assert running.get("/healthz").json()["status"] == "open"


@pytest.mark.long
def test_what_is_no_report_is_refused(collected):
    running, task, _ = collected
    good = report(task)
    other = Promise(epsilon=Fraction(1))
    another = Task.new(CountNonZero.planned(other), other, horizon=1, key=bytes.fromhex(task.key))
    for body, status, said in [
        (b"", 400, "no report"),
        (good[:-1], 400, "too short"),
        (good + b"x", 413, f"{report_bytes(task):,} bytes"),
        (good[:4] + b"\x09" + good[5:], 400, "version 9"),
        (report(another), 400, "another task"),
        (good[:-33] + b"\x02" + b"\xff" * 32, 400, "no point"),
    ]:
        answer = running.send(body)
        assert answer.status_code == status
        assert said in answer.json()["detail"]
    assert running.send(good, "nobody").status_code == 401
    assert running.send(good, "release").status_code == 403
    assert running.post("/v1/release", "ingest").status_code == 403
    wrong = running.get("/v1/reports")
    assert (wrong.status_code, wrong.json()["detail"]) == (405, "this path takes POST")
    assert running.get("/else").status_code == 404
    assert Task.unverified(running.get("/v1/task").content) == task


@pytest.mark.long
def test_the_answer_is_given_once_and_outlives_a_kill(tmp_path):
    identity = pyrage.x25519.Identity.generate()
    (tmp_path / "identity").write_text(f"{identity}\n")
    promise = ["--devices", "3", "--delta", "0.01", "--recipient", str(identity.to_public())]
    task, tokens = made(tmp_path, *promise)
    assert b"age-encryption" in (tmp_path / "task.secret").read_bytes()
    refused = run_command("collector", tmp_path / "task.json")
    assert refused.code == 2
    assert "--identity" in refused.stderr
    with Running(tmp_path, tokens, "--identity", str(tmp_path / "identity")) as running:
        for _ in range(2):
            assert running.send(report(task)).status_code == 201
        early = running.post("/v1/release", "release")
        assert early.status_code == 409
        assert "from 3 on" in early.json()["detail"]
        last = report(task)
        assert running.send(last).status_code == 201
        found = running.post("/v1/release", "release").json()
        assert found["reports"] == 3
        assert "delta 0.01" in found["guarantee"]
        assert (found["epsilon"], found["delta"], found["adjacency"]) == (1, 0.01, "device")
        assert found["conditions"] == ["in the sum over 3 devices or more that follow the protocol"]
        own = {"guarantee": str(task.promise), **task.promise.guarantee.document()}
        assert json.loads(json.dumps(own)).items() <= found.items()
        (answer,) = found["answers"]
        assert answer["low"] <= answer["high"]
        assert answer["statistic"] == "count-nonzero"
        running.end(signal.SIGKILL)
        running.start()
        late = running.send(report(task))
        assert late.status_code == 409
        assert "the answer was given" in late.json()["detail"]
        assert running.send(last).status_code == 200
        assert running.post("/v1/release", "release").json() == found
        assert running.get("/healthz").json()["status"] == "closed"
        assert running.end(signal.SIGTERM) in {0, -signal.SIGTERM}


@pytest.mark.long
def test_a_collector_does_not_begin_without_its_store(tmp_path):
    task, tokens = made(tmp_path)
    store, mark = tmp_path / "task.sqlite", tmp_path / "task.json.mark"
    with Running(tmp_path, tokens) as running:
        assert running.send(report(task)).status_code == 201
        found = running.post("/v1/release", "release")
        store.rename(tmp_path / "moved")
        for path, role in (("/v1/reports", "ingest"), ("/v1/release", "release")):
            answer = running.post(path, role, content=report(task))
            assert answer.status_code == 503
            assert "put it back" in answer.json()["detail"]
        running.end(signal.SIGKILL)
        for beside in tmp_path.glob("task.sqlite-*"):
            beside.rename(beside.with_name(beside.name.replace("task.sqlite", "moved")))
        noted = mark.read_bytes()
        refused = run_command("collector", tmp_path / "task.json")
        assert (refused.code, len(refused.stderr.splitlines())) == (2, 1)
        assert "put it back as it was" in refused.stderr
        assert "--fresh" in refused.stderr
        assert not store.exists()
        assert mark.read_bytes() == noted
        assert mark.stat().st_mode & 0o777 == 0o600
        (tmp_path / "moved").rename(store)
        for beside in tmp_path.glob("moved-*"):
            beside.rename(beside.with_name(beside.name.replace("moved", "task.sqlite")))
        running.start()
        assert running.post("/v1/release", "release").content == found.content
        running.end(signal.SIGTERM)
        for each in tmp_path.glob("task.sqlite*"):
            each.unlink()
        running.start("--fresh")
        assert running.get("/healthz").json()["status"] == "open"


@pytest.mark.long
def test_two_collectors_on_one_server_give_one_answer(tmp_path, postgres):
    """The one that has been sent fewer reports answers from the store as well."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    task, tokens = made(first, "--devices", "2", "--delta", "0.01")
    shutil.copytree(first, second)
    store = ["--store", postgres.url()]
    with Running(first, tokens, *store) as one, Running(second, tokens, *store) as other:
        bodies = [report(task) for _ in range(3)]
        assert one.send(bodies[0]).status_code == 201
        assert one.post("/v1/release", "release").status_code == 409
        assert [other.send(body).status_code for body in bodies[:2]] == [200, 201]
        found = other.post("/v1/release", "release")
        assert found.json()["reports"] == 2
        assert [one.send(body).status_code for body in bodies] == [200, 200, 409]
        assert one.post("/v1/release", "release").content == found.content


class Sender:
    """Eight threads that send reports, each again until it is told that it is there."""

    def __init__(self, running, bodies):
        self._running, self._bodies = running, bodies
        self.asked, self.told, self._ended = set(), set(), threading.Event()
        self._places = deque(range(len(bodies)))
        self._threads = [threading.Thread(target=self._run) for _ in range(8)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _run(self):
        with httpx.Client(trust_env=False, timeout=_PATIENCE) as client:
            while not self._ended.wait(0.02):
                try:
                    place = self._places.popleft()
                except IndexError:  # others send the last ones, and may bring them back
                    continue
                self.asked.add(place)
                if self._sent(place, client):
                    self.told.add(place)
                else:
                    self._places.append(place)

    def _sent(self, place, client):
        with contextlib.suppress(httpx.TransportError):
            return self._running.send(self._bodies[place], client=client).status_code in {200, 201}
        return False


@pytest.mark.slow
def test_fifty_kills_under_load_lose_no_report_and_change_no_answer(tmp_path):
    """Senders try again until they are told; half of the kills come as the answer is asked for."""
    task, tokens = made(tmp_path)
    bodies = [report(task) for _ in range(400)]
    chance = random.Random(5)
    with Running(tmp_path, tokens) as running:
        sender, answers = Sender(running, bodies), set()

        def release():
            with contextlib.suppress(httpx.TransportError):
                answers.add(running.post("/v1/release", "release").content)

        with sender:
            for _ in range(25):
                time.sleep(chance.uniform(0, 0.3))
                running.end(signal.SIGKILL)
                running.start()
        for place in sorted(sender.told):
            assert running.send(bodies[place]).status_code == 200
        for _ in range(25):
            asking = threading.Thread(target=release)
            asking.start()
            time.sleep(chance.uniform(0, 0.1))
            running.end(signal.SIGKILL)
            asking.join()
            running.start()
        release()
        (answer,) = answers
        assert 0 < len(sender.told) <= json.loads(answer)["reports"] <= len(sender.asked)


@pytest.mark.parametrize("sha256", ["", "zz" * 32, "ab"])
def test_a_hash_that_is_none_is_refused_in_one_line(tmp_path, sha256):
    made(tmp_path)
    path = tmp_path / "task.secret"
    secrets = json.loads(path.read_bytes())
    secrets["tokens"]["ingest"] = sha256
    path.write_text(json.dumps(secrets))
    result = run_command("collector", tmp_path / "task.json", "--listen", "127.0.0.1:0")
    assert (result.code, len(result.stderr.splitlines())) == (2, 1)
    assert "64 hexadecimal digits" in result.stderr
    assert not (tmp_path / "task.sqlite").exists()


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.text("0123456789abcdef", min_size=64),
    lambda some: (
        st.lists(some, max_size=3)
        | st.dictionaries(st.sampled_from(["secret", "tokens", "store", "answer", "x"]), some)
    ),
)
FILES = st.binary(max_size=200) | JSON.map(lambda one: json.dumps(one).encode())


@pytest.mark.long
@settings(max_examples=60)
@given(data=FILES)
@example(data=b"[" * 100_000)
@example(data=b'{"x":' * 100_000)
def test_any_file_of_secrets_or_mark_is_refused_in_one_line_or_read(data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "file"
    path.write_bytes(data)

    def secrets():
        found = Secrets.load(path, None)
        return found.key, found.access

    for read in (secrets, lambda: Mark(path, fresh=False)):
        try:
            read()
        except (PlanError, InputError) as error:
            said = str(error)
            assert "\n" not in said
