"""Ten devices, two servers that see no report, and a device that lies.

make federated-demo

The servers are processes of their own, which talk over HTTP. It prints the histogram that they
release, and draws what each party sees.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from panprivacy.devices.aggregator.messages import UPLOAD, UPLOAD_REQ, Party, reports_path
from panprivacy.devices.aggregator.presentation import decoded
from panprivacy.devices.aggregator.reports import dap_report, row_of, upload
from panprivacy.devices.aggregator.secrets import HelperSecrets, LeaderSecrets, verify_key_of
from panprivacy.devices.federated import Device, FileStorage, Task
from panprivacy.devices.federated.joint import payload_keys
from panprivacy.devices.federated.messages import DeviceState
from panprivacy.devices.federated.rows import SHARED_BYTES, entries
from panprivacy.devices.federated.shares import embedded, open_helper, open_leader
from panprivacy.devices.vdaf import MODULUS, Prio3Count
from panprivacy.privacy.coins import SystemCoins

TICKS, MOST, EPSILON = 6, 2, "5"
EVENTS = [0, 0, 0, 0, 1, 1, 1, 2, 2]
"""Of the nine honest devices, in their first ticks; the tenth lies."""
A_MILLION = 1_000_000
"""What the tenth device adds to the devices with two events or more."""
SEEN = 7
"""The device whose storage is shown: it has events at ticks 1 and 2."""
LIAR = len(EVENTS) + 1
NAMES = ["0 events", "1 event", "2 or more"]
FILE, RED = Path("build/two-servers.png"), "#c8553d"


class Run(NamedTuple):
    """What comes of a run.

    Args:
        looks: the storage of one device after each tick.
        sent: the reports, as the leader has them.
        answers: the rows of the release.
    """

    looks: list[bytes]
    sent: list[bytes]
    answers: list[dict]


def command(*words: object) -> str:
    """What a command of panprivacy prints."""
    line = [sys.executable, "-m", "panprivacy", *map(str, words)]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout


@contextmanager
def running(role: str, file: Path, *more: str) -> Iterator[str]:
    """A server, and where it listens."""
    words = ["aggregator", "--role", role, "--task", str(file), "--listen", "127.0.0.1:0", *more]
    line = [sys.executable, "-m", "panprivacy", *words]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield re.search(r"where=(\S+)", process.stderr.readline())[1]
        finally:
            process.terminate()


def observed(task: Task, folder: Path, number: int, events: int) -> tuple[bytes, list[bytes]]:
    """The report of an honest device, and what was in its storage after each tick."""
    looks = []
    with FileStorage(folder / f"device-{number}") as storage:
        device = Device(task, storage)
        for tick in range(task.horizon):
            device.observe(tick < events)
            looks.append(storage.read())
        return device.report(), looks


def lie(task: Task) -> bytes:
    """An upload that says a million, with the best proof that a liar can make: that of a 0."""
    coins, prio = SystemCoins(), Prio3Count(task.context)
    leader, helper = prio.shard([0] * (MOST + 1), coins.secret((MOST + 1) * prio.RANDOM_BYTES))
    last = entries(leader, prio.LEADER_BYTES)[-1]
    share = (int.from_bytes(last[:8], "little") + A_MILLION) % MODULUS
    leader = leader[: -len(last)] + share.to_bytes(8, "little") + last[8:]
    rows = []
    sizes = prio.LEADER_BYTES, prio.HELPER_BYTES
    for key, payloads, size in zip(payload_keys(task.key), (leader, helper), sizes, strict=True):
        rows.append(key.encrypt_points(embedded(payloads, size), coins))
    return UPLOAD.write((dap_report(coins.key(16), *rows),))


def run(folder: Path) -> tuple[Run, Task]:
    """Ask, observe, report and release."""
    file = folder / "task.json"
    words = ["--kind", "histogram", "--most", MOST, "--horizon", TICKS, "--epsilon", EPSILON]
    words += ["--signer", folder / "signer", "--servers", 2, "--batch", LIAR]
    tokens = dict(re.findall(r"(ingest|release) +(pp_\S+)", command("task", file, *words)))
    task, looks = Task.unverified(file.read_bytes()), []
    with ExitStack() as stack:
        helper = stack.enter_context(running("helper", file))
        leader = stack.enter_context(running("leader", file, "--helper", helper))
        client = stack.enter_context(httpx.Client(base_url=leader, trust_env=False, timeout=60))
        sent = []
        for number, events in enumerate(EVENTS):
            report, seen = observed(task, folder, number, events)
            sent.append(upload([report], task))
            looks = seen if number == SEEN else looks
        sent.append(lie(task))
        for body in sent:
            headers = {
                "Authorization": f"Bearer {tokens['ingest']}",
                "Content-Type": str(UPLOAD_REQ),
            }
            client.post(reports_path(task.digest), content=body, headers=headers).raise_for_status()
        headers = {"Authorization": f"Bearer {tokens['release']}"}
        answer = client.post("/v1/release", headers=headers).raise_for_status().json()
    return Run(looks, sent, answer["answers"]), task


# What each party sees


class Seen(NamedTuple):
    """What the servers see of the reports.

    Args:
        leader: its shares, of shape (reports, values).
        helper: its shares.
        accepted: which reports both find valid.
    """

    leader: NDArray[np.uint64]
    helper: NDArray[np.uint64]
    accepted: NDArray[np.bool_]


def seen_by_servers(run: Run, task: Task, folder: Path) -> Seen:
    """Open and verify the reports once more, as both servers did."""
    reports = [decoded(UPLOAD, body)[0] for body in run.sent]
    leader = LeaderSecrets.load(folder / "task.leader.secret", None)
    helper = HelperSecrets.load(folder / "task.helper.secret", None)
    prio, verify_key = Prio3Count(task.context), verify_key_of(helper)
    nonces = b"".join(one.metadata.report_id * (MOST + 1) for one in reports)
    rows = b"".join(row_of(one.leader, Party.LEADER) for one in reports)
    one = prio.verify_leader(verify_key, nonces, open_leader(rows, leader.key).payloads)
    rows = b"".join(row_of(one.helper, Party.HELPER) for one in reports)
    other = prio.verify_helper(verify_key, nonces, open_helper(rows, helper.key).payloads)
    accepted = prio.decide(one.verifiers, other.verifiers)
    shape = len(reports), MOST + 1
    return Seen(
        one.outputs.reshape(shape), other.outputs.reshape(shape), accepted.reshape(shape).all(1)
    )


def draw(run: Run, seen: Seen) -> None:
    """Four pictures: the device, both servers, and the reader."""
    figure = Figure(figsize=(11, 7.2), layout="constrained", dpi=100)
    (device, reader), (leader, helper) = figure.subplots(2, 2)
    _draw_storage(device, run)
    _draw_shares(leader, seen.leader, seen.accepted, "the leader")
    _draw_shares(helper, seen.helper, seen.accepted, "the helper")
    _draw_release(reader, run)
    FILE.parent.mkdir(exist_ok=True)
    figure.savefig(FILE, metadata={"Software": None})


def _draw_storage(axes: Axes, run: Run) -> None:
    """The ciphertexts of one bit at each tick."""
    rows = np.array(
        [list(DeviceState.read(look).row[:SHARED_BYTES]) for look in run.looks], np.uint8
    )
    axes.imshow(rows, cmap="gray", aspect="auto", interpolation="nearest")
    axes.set(xlabel="byte of the ciphertexts of one bit", ylabel="after tick")
    axes.set_yticks(range(TICKS), [str(tick + 1) for tick in range(TICKS)])
    axes.set_title("whoever takes a device sees noise, new at every tick")


def _draw_shares(
    axes: Axes, found: NDArray[np.uint64], accepted: NDArray[np.bool_], who: str
) -> None:
    """A server's shares as greys; a cross for what is refused."""
    axes.imshow(found.T / MODULUS, cmap="gray", aspect="auto", vmin=0, vmax=1)
    for report in np.flatnonzero(~accepted):
        axes.plot([report] * (MOST + 1), range(MOST + 1), "x", color=RED, markersize=14, mew=3)
    axes.set_xticks(range(len(found)), [str(number + 1) for number in range(len(found))])
    axes.set_yticks(range(MOST + 1), NAMES)
    axes.set_xlabel("report")
    axes.set_title(f"{who} sees random numbers (x: refused)")


def _draw_release(axes: Axes, run: Run) -> None:
    """The histogram, with its intervals and the truth."""
    places = np.arange(MOST + 1)
    values = np.array([one["value"] for one in run.answers])
    ends = np.array([[one["low"], one["high"]] for one in run.answers]).T
    axes.bar(places, values, color="#9bb3c9", label="estimate")
    axes.vlines(places, *ends, color="#1b3a57", label="95 %")
    axes.plot(places, truth(), "o", color=RED, label="the honest devices")
    axes.set_xticks(places, NAMES)
    axes.set(ylabel="devices", ylim=(None, len(run.sent) + 2.5))
    axes.set_title(f"the reader sees a histogram, at epsilon {EPSILON} a device")
    axes.legend(ncols=3, loc="upper center")


def truth() -> NDArray[np.int64]:
    """How many honest devices had each number of events."""
    return np.bincount(EVENTS, minlength=MOST + 1)


def main() -> None:
    """Run it in a folder of its own, and say what came out."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        found, task = run(Path(name))
        seen = seen_by_servers(found, task, Path(name))
    draw(found, seen)
    for what, one, true in zip(NAMES, found.answers, truth(), strict=True):
        interval = f"{one['low']:g} to {one['high']:g}, 95 %"
        print(f"{what}: {one['value']:.1f} ({interval}); of the honest devices {true}")
    refused = (np.flatnonzero(~seen.accepted) + 1).tolist()
    print(f"Report {LIAR} said {A_MILLION:,}. The servers refused {refused}.")
    print(f"{FILE} shows who sees what. It took {time.monotonic() - began:.0f} seconds.")


if __name__ == "__main__":
    main()
