"""A collector as a process: reports arrive once, and none that was acknowledged is lost."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from fractions import Fraction

import httpx
import pyrage
import pytest

from panprivacy.audit.ideal import MemoryStorage
from panprivacy.federated.device import Device
from panprivacy.federated.messages import report_bytes
from panprivacy.federated.promise import Promise
from panprivacy.federated.task import CountNonZero, Task
from tests.commands import run_command

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

    def start(self):
        """Start it, and wait until it listens."""
        log = self._folder / "log"
        words = ["collector", self._folder / "task.json", "--listen", "127.0.0.1:0"]
        with log.open("w") as file:
            command = [sys.executable, "-m", "panprivacy", *words, *self._options]
            self._process = subprocess.Popen(command, stdout=file, stderr=file)
        end = time.monotonic() + _PATIENCE
        while not (found := _LISTENING.search(log.read_text())):
            assert self._process.poll() is None, log.read_text()
            assert time.monotonic() < end
            time.sleep(0.05)
        self._url = found[1]
        return self

    def end(self, number):
        """End it by a signal."""
        self._process.send_signal(number)
        return self._process.wait(_PATIENCE)

    def send(self, body, role="ingest"):
        """Post a report."""
        return self.post("/v1/reports", role, content=body)

    def post(self, path, role, **given):
        """Post anything, with the token of a role."""
        token = self._tokens.get(role, role)
        headers = {"Authorization": f"Bearer {token}"}
        return self.client.post(self._url + path, headers=headers, **given)

    def get(self, path):
        """Get what anybody may."""
        return self.client.get(self._url + path)


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A collector that is killed after a few reports, and goes on."""
    folder = tmp_path_factory.mktemp("collector")
    task, tokens = made(folder)
    with Running(folder, tokens) as running:
        yield running, task, folder


def test_what_was_acknowledged_outlives_a_kill_and_counts_once(collected):
    running, task, folder = collected
    first, second, third = (report(task) for _ in range(3))
    assert [running.send(one).status_code for one in (first, first, second)] == [201, 200, 201]
    running.end(signal.SIGKILL)
    running.start()
    assert [running.send(one).status_code for one in (second, first, third)] == [200, 200, 201]
    assert (folder / "task.sqlite").stat().st_mode & 0o777 == 0o600
    assert running.get("/healthz").json()["status"] == "open"


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
    assert running.get("/v1/reports").status_code == 405
    assert running.get("/else").status_code == 404
    assert Task.unverified(running.get("/v1/task").content) == task


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kind", "median"], "--kind must be one of"),
        (["--kind", "mean"], "needs --most"),
        (["--kind", "mean", "--most", "3"], "delta above 0"),
        (["--kind", "count-nonzero", "--most", "3"], "takes no --most"),
        (["--kind", "histogram", "--most", "0"], "most must be"),
        (["--kind", "count-nonzero", "--epsilon", "101"], "epsilon"),
    ],
)
def test_a_task_that_cannot_be_is_refused_in_one_line(tmp_path, options, message):
    words = ["--horizon", "1", "--epsilon", "1", "--signer", tmp_path / "signer"]
    result = run_command("task", tmp_path / "task.json", *words, *options)
    assert result.code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert message in result.stderr
    assert not (tmp_path / "task.json").exists()


def test_no_file_is_overwritten(tmp_path):
    made(tmp_path)
    before = (tmp_path / "task.secret").read_bytes()
    words = ["--horizon", "1", "--epsilon", "1", "--signer", tmp_path / "signer"]
    again = run_command("task", tmp_path / "task.json", "--kind", "count-nonzero", *words)
    assert again.code == 2
    assert "there already" in again.stderr
    assert (tmp_path / "task.secret").read_bytes() == before
