"""A device: what it keeps, what it refuses, and that nothing of it depends on what it observed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy import SystemCoins
from panprivacy.audit.ideal import IdealEncryption, MemoryStorage
from panprivacy.devices.federated import elgamal, rows
from panprivacy.devices.federated.collector import Collector
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.device import Device, encryption_of
from panprivacy.devices.federated.elgamal import CIPHERTEXT_BYTES, DecryptionKey, EncryptionKey
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.messages import DeviceState, Report
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.storage import FileStorage
from panprivacy.devices.federated.task import Task
from panprivacy.devices.federated.two_servers import TwoServers

EXAMPLE = Path(__file__).parents[2] / "examples" / "one_device.py"
KEY = DecryptionKey.generate(SystemCoins())
ONE = Promise(epsilon=Fraction(1))
SURE = Promise(epsilon=Fraction(30))
"""With so much epsilon reports tell the truth, but for once in 10**13."""
WITH_DELTA = Promise(epsilon=Fraction(1), delta=Fraction(1, 1000))

KINDS = [
    (CountNonZero.planned(ONE), ONE),
    (DeviceHistogram.planned(ONE, most=2), ONE),
    (Mean.planned(WITH_DELTA, most=3), WITH_DELTA),
]
EACH = pytest.mark.parametrize(("kind", "promise"), KINDS, ids=["count", "histogram", "mean"])
STREAMS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=5)


OTHER = DecryptionKey.generate(SystemCoins())
HEX = {name: bytes(key.public).hex() for name, key in [("leader", KEY), ("helper", OTHER)]}
ASKED = {
    "one server": bytes(KEY.public),
    "two servers": TwoServers(**HEX, collusion="none", batch=1),
    "joint key": TwoServers(**HEX, collusion="one-server", batch=1),
}
BY_EACH = pytest.mark.parametrize(
    ("kind", "promise", "to"),
    [
        pytest.param(kind, promise, key, id=f"{type(kind).__name__}, {name}")
        for kind, promise in KINDS
        for name, key in ASKED.items()
        if name == "one server" or not kind.adds
    ],
)


def task_of(kind, promise, horizon=3, to=ASKED["one server"]):
    return Task.new(kind, promise, horizon=horizon, key=to)


class Watched(MemoryStorage):
    """Keeps all that was ever written."""

    def __init__(self):
        super().__init__()
        self.written = []

    def write(self, state):
        super().write(state)
        self.written.append(state)


class CountedCoins(SystemCoins):
    """Notes what was asked for."""

    __slots__ = ("asked",)

    def __init__(self):
        self.asked = []

    def bernoulli(self, probability, size):
        self.asked.append(("bernoulli", probability, size))
        return super().bernoulli(probability, size)

    def secret(self, nbytes):
        self.asked.append(("secret", nbytes))
        return super().secret(nbytes)

    def key(self, nbytes):
        self.asked.append(("key", nbytes))
        return super().key(nbytes)

    def discrete_gaussian(self, variance, size):
        self.asked.append(("gaussian", variance, size))
        return super().discrete_gaussian(variance, size)


class CountedEncryption:
    """Notes which operations were done, on how much."""

    def __init__(self, inner):
        self._inner, self.done, self.entry_bytes = inner, [], inner.entry_bytes

    def __getattr__(self, name):
        def noted(*given):
            sizes = [len(one) for one in given if isinstance(one, (bytes, list))]
            self.done.append((name, *sizes))
            return getattr(self._inner, name)(*given)

        return noted


def lived(task, stream):
    """The device that observed a stream, its storage, coins, encryption and report."""
    storage, coins = Watched(), CountedCoins()
    encryption = CountedEncryption(encryption_of(task))
    device = Device(task, storage, encryption=encryption, coins=coins)
    for event in stream:
        device.observe(event)
    return device.report(), storage.written, coins.asked, encryption.done


def ciphertexts(states):
    held = b"".join(DeviceState.read(state).row for state in states)
    return rows.entries(held, CIPHERTEXT_BYTES)


@pytest.mark.long
@BY_EACH
@settings(max_examples=5)
@given(streams=STREAMS)
def test_no_two_inputs_can_be_told_apart_by_what_is_done(kind, promise, to, streams):
    task = task_of(kind, promise, len(streams), to)
    first, second = (lived(task, stream) for stream in zip(*streams, strict=True))
    assert len(first[0]) == len(second[0])
    assert [len(state) for state in first[1]] == [len(state) for state in second[1]]
    assert first[2:] == second[2:]


@BY_EACH
def test_no_ciphertext_or_point_ever_comes_twice(kind, promise, to):
    task = task_of(kind, promise, 4, to)
    _, written, _, _ = lived(task, [False, True, True, False])
    assert len(written) == 6
    seen = ciphertexts(written)
    points = [half for one in seen for half in (one[:33], one[33:])]
    held = task.entry_bytes // CIPHERTEXT_BYTES * (5 * kind.width + kind.answers)
    assert len(set(points)) == len(points) == 2 * held


@EACH
@pytest.mark.parametrize("events", [0, 1, 2, 5])
def test_what_is_held_is_what_was_observed(kind, promise, events):
    """With an ideal scheme, whose table says what is in each ciphertext."""
    task = Task.new(kind, promise, horizon=5, key=bytes(33))
    encryption, storage = IdealEncryption(), MemoryStorage()
    device = Device(task, storage, encryption=encryption)
    for tick in range(5):
        device.observe(tick < events)
    held = encryption.values(DeviceState.read(storage.state).row)
    if isinstance(kind, CountNonZero):
        assert held == [min(events, 1)]
    elif isinstance(kind, Mean):
        assert held == [int(events >= i) for i in (1, 2, 3)]
    else:
        assert held == [
            *[int(events == i) for i in range(3)],
            *[int(events >= i) for i in range(3)],
        ]


def true_counts(kind, streams):
    task = task_of(kind, SURE, len(streams[0]))
    collector = Collector(task, KEY)
    for stream in streams:
        collector.add(lived(task, stream)[0])
    return collector.release(confidence=1 - 1e-8)


def test_devices_are_counted_by_real_ciphertexts():
    streams = [[False] * 3, [True, False, True], [False, False, True], [False] * 3]
    counted = true_counts(CountNonZero(epsilon_0=Fraction(30)), streams)
    assert round(counted.only()) == 2
    wide = DeviceHistogram(most=2, epsilon_0=Fraction(30))
    found = true_counts(wide, streams)
    assert all(
        one.low <= truth <= one.high for one, truth in zip(found.values(), (2, 1, 1), strict=True)
    )


class Quiet(SystemCoins):
    """Draws no noise."""

    __slots__ = ()

    def discrete_gaussian(self, variance, size):
        return np.zeros(size, np.int64)


def test_a_mean_is_found_by_real_ciphertexts():
    task = task_of(*KINDS[2], horizon=5)
    collector = Collector(task, KEY)
    for events in (0, 1, 5, 5):
        device = Device(task, MemoryStorage(), coins=Quiet())
        for tick in range(5):
            device.observe(tick < events)
        collector.add(device.report())
    mean = collector.release().only()
    assert float(mean) == 7 / 4
    assert mean.unit == "events per device"


# Crashes and storage


@EACH
def test_a_device_goes_on_from_its_file(kind, promise, tmp_path):
    task = task_of(kind, promise)
    for tick in range(3):
        with FileStorage(tmp_path / "state") as storage:
            device = Device(task, storage)
            assert device.tick == tick
            device.observe(event=tick == 1)
    with FileStorage(tmp_path / "state") as storage:
        report = Device(task, storage).report()
    with FileStorage(tmp_path / "state") as storage:
        device = Device(task, storage)
        assert device.reported
        assert device.report() == report
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state", "state.lock"]


class Stopped(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_loses_one_tick_at_most_and_leaves_nothing(tmp_path, monkeypatch, step, after):
    task = task_of(*KINDS[0])
    storage = FileStorage(tmp_path / "state")
    device = Device(task, storage)
    device.observe(True)
    where, name = {"fsync": (os, "fsync"), "replace": (Path, "replace")}[step]
    real = getattr(where, name)

    def dying(*given):
        if after:
            real(*given)
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(where, name, dying)
        patched.setattr(Path, "unlink", lambda *_, **__: None)  # a dead process tidies nothing
        with pytest.raises(Stopped):
            device.observe(False)
    storage.close()
    with FileStorage(tmp_path / "state") as storage:
        assert sorted(path.name for path in tmp_path.iterdir()) == ["state", "state.lock"]
        assert Device(task, storage).tick in {1, 2}


def test_a_state_that_cannot_be_written_is_as_it_was(tmp_path, monkeypatch):
    task = task_of(*KINDS[0])
    with FileStorage(tmp_path / "state") as storage:
        device = Device(task, storage)
        before = (tmp_path / "state").read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
            with pytest.raises(OSError, match="full"):
                device.observe(True)
        assert (tmp_path / "state").read_bytes() == before
        assert device.tick == 0
        device.observe(True)
        assert device.tick == 1


def test_an_old_file_that_is_put_back_gives_a_report_of_the_same_id(tmp_path):
    """So that the collector counts one of both, also if the device itself began anew from it."""
    task, path = task_of(*KINDS[0], horizon=1), tmp_path / "state"
    with FileStorage(path) as storage:
        device = Device(task, storage)
        born = path.read_bytes()
        device.observe(False)
        old = path.read_bytes()
        first = device.report()
    collector = Collector(task, KEY)
    collector.add(first)
    for kept, ticks in ((old, []), (born, [True])):
        path.write_bytes(kept)
        with FileStorage(path) as storage:
            device = Device(task, storage)
            for event in ticks:
                device.observe(event)
            other = device.report()
        assert Report.read(other, task).name == Report.read(first, task).name
        assert Report.read(other, task).row != Report.read(first, task).row
        with pytest.raises(pp.InputError, match="the id or the ciphertexts of another"):
            collector.add(other)
    assert len(collector) == 1


@pytest.mark.long
def test_the_example_of_a_device_refuses_a_misspelt_tick(tmp_path):
    task, signing = task_of(*KINDS[0]), Ed25519PrivateKey.generate()
    (tmp_path / "task.json").write_bytes(task.signed(signing))
    signer = signing.public_key().public_bytes_raw().hex()
    words = [str(EXAMPLE), "task.json", signer, "phone"]
    refused = subprocess.run(
        [sys.executable, *words],
        check=False,
        input=b"none\nnonne\nnone\n",
        cwd=tmp_path,
        capture_output=True,
    )
    assert (refused.returncode, refused.stdout) == (1, b"")
    assert refused.stderr.startswith(b"line 2 is neither event nor none")
    assert refused.stderr.count(b"\n") == 1
    with FileStorage(tmp_path / "phone") as storage:
        assert Device(task, storage).tick == 1


def test_two_programs_cannot_be_one_device(tmp_path):
    with FileStorage(tmp_path / "state"), pytest.raises(pp.PlanError, match="another program"):
        FileStorage(tmp_path / "state")
    FileStorage(tmp_path / "state").close()


@pytest.mark.parametrize("again", [False, True])
def test_a_device_whose_lock_was_removed_writes_no_more(tmp_path, again):
    """Another program may open the storage then: two devices would report for one."""
    task = task_of(*KINDS[0])
    first = FileStorage(tmp_path / "state")
    device = Device(task, first)
    (tmp_path / "state.lock").unlink()
    other = FileStorage(tmp_path / "state") if again else None
    before = (tmp_path / "state").read_bytes()
    with pytest.raises(pp.PlanError, match="removed, so that another program"):
        device.observe(True)
    assert (tmp_path / "state").read_bytes() == before
    assert device.tick == 0
    first.close()
    if other is not None:
        Device(task, other).observe(True)
        other.close()


class Folderless:
    """fsync as on a disk that takes files but no names."""

    def __init__(self, monkeypatch):
        self.fails, self._real = True, os.fsync
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, file):
        if self.fails and stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(5, "Input/output error")
        self._real(file)


@pytest.mark.parametrize("work", ["observe", "report"])
def test_memory_and_disk_never_differ_by_a_tick(tmp_path, monkeypatch, work):
    """What is on the disk is not known then: the device is closed, and goes on from the file."""
    task = task_of(*KINDS[0], horizon=1)
    storage = FileStorage(tmp_path / "state")
    device = Device(task, storage)
    if work == "report":
        device.observe(True)
    act = {"observe": lambda: device.observe(True), "report": device.report}[work]
    folder = Folderless(monkeypatch)
    with pytest.raises(OSError, match="Input/output"):
        act()
    with pytest.raises(pp.PlanError, match="closed: open it again"):
        act()
    with pytest.raises(OSError, match="Input/output"):  # what is read must be on the disk
        FileStorage(tmp_path / "state")
    folder.fails = False
    with FileStorage(tmp_path / "state") as storage:
        again = Device(task, storage)
        assert again.tick == 1
        assert again.reported is (work == "report")
        assert again.report() == again.report()


def test_a_closed_storage_takes_nothing(tmp_path):
    storage = FileStorage(tmp_path / "state")
    storage.close()
    with pytest.raises(pp.PlanError, match="closed"):
        storage.write(b"")


def test_the_file_is_its_owners(tmp_path):
    with FileStorage(tmp_path / "state") as storage:
        Device(task_of(*KINDS[0]), storage)
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


# What is refused


def test_ticks_are_those_of_the_horizon():
    device = Device(task_of(*KINDS[0], horizon=2), storage := MemoryStorage())
    device.observe(True)
    before = storage.state
    with pytest.raises(pp.PlanError, match="1 of 2 ticks"):
        device.report()
    assert storage.state == before
    device.observe(False)
    with pytest.raises(pp.PlanError, match="all 2 ticks"):
        device.observe(False)
    device.report()
    with pytest.raises(pp.PlanError, match="all 2 ticks"):
        device.observe(False)


@pytest.mark.parametrize("event", [1, 0, None, "True", 0.0])
def test_an_event_is_true_or_false(event):
    device = Device(task_of(*KINDS[0]), MemoryStorage())
    with pytest.raises(pp.PlanError, match="True or False"):
        device.observe(event)
    assert device.tick == 0


def test_a_state_of_another_task_is_refused_until_it_is_reported():
    storage = MemoryStorage()
    first, second = (task_of(*KINDS[0], horizon=1) for _ in range(2))
    device = Device(first, storage)
    before = storage.state
    with pytest.raises(pp.InputError, match="another task"):
        Device(second, storage)
    assert storage.state == before
    device.observe(True)
    device.report()
    assert Device(second, storage).tick == 0


def test_a_state_of_another_version_is_refused():
    storage = MemoryStorage()
    Device(task := task_of(*KINDS[0]), storage)
    storage.state = storage.state[:4] + b"\x02" + storage.state[5:]
    with pytest.raises(pp.InputError, match="version 2"):
        Device(task, storage)


@settings(max_examples=60)
@given(data=st.data())
def test_a_damaged_state_is_refused_in_one_line(data):
    storage = MemoryStorage()
    task = task_of(*KINDS[0])
    Device(task, storage)
    whole = storage.state
    cut = data.draw(st.integers(0, len(whole) - 1))
    storage.state = data.draw(
        st.sampled_from(
            [
                whole[:cut],
                whole + b"x",
                bytes([whole[cut] ^ 0xFF]).join([whole[:cut], whole[cut + 1 :]]),
            ]
        )
    )
    damaged = storage.state
    try:
        Device(task, storage)
    except pp.InputError as error:
        said = str(error)
        assert "\n" not in said
        assert storage.state == damaged
    else:  # a flipped bit in a point may give another point, one in the tick another tick
        assert len(damaged) == len(whole)


TASK, BORN = task_of(*KINDS[0]), MemoryStorage()
Device(TASK, BORN)


@settings(max_examples=200)
@given(data=st.binary(max_size=300), front=st.integers(0, 200))
def test_any_state_is_refused_in_one_line_and_kept(data, front):
    storage = MemoryStorage()
    storage.state = kept = BORN.state[:front] + data
    try:
        device = Device(TASK, storage)
    except pp.InputError as error:
        said = str(error)
        assert "\n" not in said
    else:
        assert device.tick <= TASK.horizon
    assert storage.state == kept


def test_a_wrong_key_opens_nothing():
    other = DecryptionKey.generate(SystemCoins())
    task = task_of(*KINDS[0])
    report, written, _, _ = lived(task, [True, False, True])
    for state in written:
        with pytest.raises(pp.InputError):
            other.bits(DeviceState.read(state).row)
    with pytest.raises(pp.PlanError, match="secret key"):
        Collector(task, other)
    assert report


def test_ciphertexts_are_as_long_as_those_of_the_scheme():
    assert rows.CIPHERTEXT_BYTES == elgamal.CIPHERTEXT_BYTES


def test_the_key_of_a_task_is_a_point():
    task = Task.new(*KINDS[0], horizon=1, key=bytes(33))
    with pytest.raises(pp.InputError):
        Device(task, MemoryStorage())
    assert EncryptionKey(bytes.fromhex(task_of(*KINDS[0]).key))


def test_a_report_is_read_as_it_was_made():
    task = task_of(*KINDS[1], horizon=1)
    report, _, _, _ = lived(task, [True])
    assert Report.read(report, task).to_bytes(task) == report
