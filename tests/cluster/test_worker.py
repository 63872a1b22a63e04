"""A worker with a real broker: it removes what the vault has, and goes on where another ended."""

from __future__ import annotations

import errno
import os
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

import pyrage
import pytest
from msgspec import structs

from panprivacy.cluster import worker as workers
from panprivacy.cluster.marks import put_marks
from panprivacy.cluster.queues import Position
from panprivacy.cluster.shard import ShardStream
from panprivacy.cluster.vault import LeasedError, SilentError, Vault
from panprivacy.cluster.worker import Worker, WorkerConfig
from panprivacy.errors import PanPrivacyError, PlanError
from panprivacy.service.config.config import ClusterConfig
from panprivacy.service.outgoing.records import StoreError
from panprivacy.statistics.merging import Merger
from panprivacy.tables.slices import Slice
from tests.cluster.shards import BEGAN, KEY, LATER, NEXT, merged, planned, queue, sealed

pytestmark = pytest.mark.filterwarnings("ignore:epsilon .* protects nobody")

_NAMES = count()
ROOM = 1 << 22


@pytest.fixture
def identity(monkeypatch):
    """The private key of the cluster, in the environment of this process."""
    key = pyrage.x25519.Identity.generate()
    monkeypatch.setenv("PANPRIVACY_IDENTITY", str(key))
    return key


@pytest.fixture
def coordinator():
    """Its key for one release."""
    return pyrage.x25519.Identity.generate()


@pytest.fixture
def vault(tmp_path):
    found = Vault(tmp_path / "panprivacy.sealed")
    yield found
    found.close()


@pytest.fixture
def config(shared_nats, identity, monkeypatch):
    """Of a cluster with one shard, and a name of its own in the shared broker."""
    name = f"test-{os.getpid()}-{next(_NAMES)}"
    monkeypatch.setattr("tests.cluster.shards.NAME", name)
    return WorkerConfig(
        part=Slice(0, 1, KEY),
        streams={"visits": planned()},
        begins={"visits": BEGAN},
        cluster=ClusterConfig(nats=(shared_nats.url,), name=name, queue_bytes=ROOM),
        recipient=str(identity.to_public()),
        every=0.02,
    )


@contextmanager
def working(config, vault, fenced=lambda: None):
    worker = Worker(config, vault, fenced)
    try:
        yield worker
    finally:
        worker.stop()


@contextmanager
def crashed(config, vault):
    """A worker that ends without a last word."""
    worker = Worker(config, vault)
    yield worker
    worker._written = -1
    worker._vault = Silent()
    worker.stop()


class Silent:
    def keep(self, *_):
        raise StoreError("the process is gone")


def wait_until(true, seconds=60.0):
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.005)


def public_of(vault):
    wait_until(vault.report)
    ((_, told),) = vault.report().values()
    return [told["visits"]["public"]]


def send(broker, vault, *bodies):
    """Publish bodies, with the numbers of their users; the last position."""
    public = public_of(vault)
    for users in bodies:
        (position,) = broker.publish([(queue(0, 1), *sealed(public, users))])
    return position


def told(vault):
    return vault.report()[Slice(0, 1, KEY)][1]["visits"]


def contributed(worker, coordinator, through, window=BEGAN, **given):
    asked = {"number": 1, "last": True, "next_start": window + 1_000.0, **given}
    recipient = str(coordinator.to_public())
    packed = worker.contribute("visits", window, through=through, recipient=recipient, **asked)
    return pyrage.decrypt(packed, [coordinator])


def held(broker):
    """How many messages the queue still has."""
    return len(broker.pull(queue(0, 1), Position(0, 0), 100, 0.05))


@pytest.mark.long
def test_what_the_vault_has_is_removed_and_nothing_else(
    config, vault, broker, coordinator, monkeypatch
):
    with working(config, vault) as worker:
        first = send(broker, vault, [1], [1, 2])
        wait_until(lambda: told(vault)["position"] == first and not held(broker))
        with monkeypatch.context() as full:
            full.setattr(os, "fsync", no_space)
            wait_until(lambda: "sealed state" in worker.troubles())
            full.setattr(workers, "PATIENCE", 0.3)
            last = send(broker, vault, [3])
            with pytest.raises(StoreError, match="No space left"):
                contributed(worker, coordinator, last)
            assert (told(vault)["position"], held(broker)) == (first, 1)
        packed = contributed(worker, coordinator, last)
        assert merged([packed]) == [2, 1, 0]
        wait_until(lambda: not held(broker))
        assert "sealed state" not in worker.troubles()
        assert told(vault)["pending"] == [(BEGAN, 1)]


def no_space(_):
    raise OSError(errno.ENOSPC, "")


@pytest.mark.long
def test_another_one_goes_on_where_it_was_killed(config, vault, broker, coordinator):
    with crashed(config, vault) as worker:
        kept = send(broker, vault, [1], [2])
        wait_until(lambda: told(vault)["position"] == kept)
        worker._vault = Silent()
        last = send(broker, vault, [1], [3])
        wait_until(lambda: worker._streams["visits"].position == last)
    with crashed(config, vault) as worker:
        packed = contributed(worker, coordinator, last)
        assert merged([packed]) == [2, 1, 0]
    other = pyrage.x25519.Identity.generate()
    with working(config, vault) as worker:
        assert contributed(worker, other, last) == packed
        wait_until(lambda: worker._told)
        worker.settled("visits", BEGAN, 1)
        wait_until(lambda: not told(vault)["pending"])
        with pytest.raises(PlanError):
            contributed(worker, coordinator, last)
        assert not worker._limits, "a call that was wrong holds nobody"
        last = send(broker, vault, [7])
        assert merged([contributed(worker, coordinator, last, NEXT)]) == [1, 0, 0]


def test_the_process_of_before_ends_and_keeps_nothing(config, vault, broker, coordinator):
    ended = []
    with working(config, vault, lambda: ended.append(1)) as first:
        send(broker, vault, [1])
        before = first._incarnation
        with working(config, vault) as second:
            wait_until(lambda: ended)
            wait_until(lambda: second._incarnation > before)
            last = send(broker, vault, [2])
            assert merged([contributed(second, coordinator, last)]) == [2, 0, 0]
            wait_until(lambda: not first._keeper.is_alive())
            with pytest.raises(StoreError):
                contributed(first, coordinator, last)


@pytest.mark.long
def test_it_ends_itself_before_another_may_begin_without_word_of_it(config, vault, monkeypatch):
    monkeypatch.setattr(workers, "LEASE", 2.0)
    monkeypatch.setattr(workers, "_WATCH_SECONDS", 0.05)
    ended = []
    with working(config, vault, lambda: ended.append(time.monotonic())) as worker:
        wait_until(lambda: worker._told)
        time.sleep(2.5)
        assert not ended, "each answer is another lease"
        before = time.monotonic()
        worker._vault = Cut()
        wait_until(lambda: ended)
        assert ended[0] - before < 30
    with working(config, Full(vault), ended.clear) as worker:
        wait_until(lambda: "sealed state" in worker.troubles())
        time.sleep(2.5)
        assert ended, "a vault that says why it keeps nothing has answered"


class Cut:
    """A vault that is not reached any more."""

    def keep(self, *_):
        raise SilentError("the vault does not answer")


class Full:
    def __init__(self, vault):
        self.begin = vault.begin

    def keep(self, *_):
        raise StoreError("no space")


def test_nothing_beyond_a_cut_is_counted_before_the_window_ends(config, vault, broker, coordinator):
    with working(config, vault) as worker:
        cut = send(broker, vault, [1])
        assert put_marks(broker, [queue(0, 1)], (BEGAN, 1)) == [cut]
        last = send(broker, vault, [2], [3])
        wait_until(lambda: told(vault)["position"] == cut)
        time.sleep(0.2)
        assert worker._streams["visits"].position == cut
        assert merged([contributed(worker, coordinator, cut)]) == [1, 0, 0]
        wait_until(lambda: worker._streams["visits"].position == last)
        assert merged([contributed(worker, coordinator, last, NEXT)]) == [2, 0, 0]


@pytest.mark.parametrize("sealed_at", ["before the cut", "at the cut"])
def test_who_starts_again_at_a_cut_counts_nothing_beyond_it_though_nobody_says_so(
    config, vault, broker, coordinator, sealed_at
):
    with crashed(config, vault) as worker:
        first = send(broker, vault, [1])
        wait_until(lambda: told(vault)["position"] == first)
        if sealed_at == "before the cut":
            worker._vault = Silent()
        (cut,) = put_marks(broker, [queue(0, 1)], (BEGAN, 1))
        last = send(broker, vault, [2], [3])
        wait_until(lambda: worker._limits)
    with working(config, vault) as worker:
        wait_until(lambda: worker._limits)
        time.sleep(0.1)
        assert told(vault)["position"] == cut
        packed = contributed(worker, coordinator, cut)
        assert (merged([packed]), Merger([packed]).complete) == ([1, 0, 0], True)
        packed = contributed(worker, coordinator, last, NEXT)
        assert (merged([packed]), Merger([packed]).complete) == ([2, 0, 0], True)


def test_a_cut_before_the_first_message_is_reached(config, vault, broker, coordinator):
    with working(config, vault) as worker:
        wait_until(lambda: worker._told)
        (cut,) = put_marks(broker, [queue(0, 1)], (BEGAN, 1))
        assert cut.sequence == 0
        last = send(broker, vault, [1])
        assert merged([contributed(worker, coordinator, cut)]) == [0, 0, 0]
        assert merged([contributed(worker, coordinator, last, NEXT)]) == [1, 0, 0]


@pytest.mark.long
def test_a_broker_that_lost_its_memory_makes_a_window_incomplete_and_stops_nobody(
    config, vault, nats, coordinator, monkeypatch
):
    config = replace(config, cluster=structs.replace(config.cluster, nats=(nats.url,)))
    broker = workers.Broker(nats.url)
    with working(config, vault) as worker:
        wait_until(lambda: worker._told)
        first = send(broker, vault, [1])
        wait_until(lambda: told(vault)["position"] == first)
        nats.kill()
        lost = Position(first.born, first.sequence + 1)
        nats.start()
        packed = contributed(worker, coordinator, lost)
        assert merged([packed]) == [1, 0, 0]
        assert not Merger([packed]).complete
        last = send(broker, vault, [2])
        packed = contributed(worker, coordinator, last, NEXT)
        assert merged([packed]) == [1, 0, 0]
        assert Merger([packed]).complete
    broker.close()


def test_the_lease_of_another_node_is_waited_for_without_a_trouble(
    config, vault, monkeypatch, caplog
):
    monkeypatch.setattr(workers, "_PAUSE", 0.01)
    left, before = [3], vault.begin

    def begin(part):
        left[0] -= 1
        if left[0] >= 0:
            raise LeasedError("another process may be the shard")
        return before(part)

    vault.begin = begin
    with working(config, vault) as worker:
        wait_until(lambda: worker._told)
    assert left == [-1]
    assert "beginning" not in caplog.text


def test_announced_intrusions_are_on_disk(config, vault):
    config = replace(config, streams={"visits": planned(intrusions=2)})
    with working(config, vault) as worker:
        wait_until(lambda: worker._incarnation)
        worker.announce("visits", BEGAN, 2)
        assert told(vault)["announced"] == 2
        worker.announce("visits", LATER, 2)


def test_without_an_identity_it_waits_and_says_so(config, vault, broker, coordinator, monkeypatch):
    monkeypatch.setattr(workers, "_PAUSE", 0.05)
    with working(config, vault):
        last = send(broker, vault, [1])
    key = os.environ["PANPRIVACY_IDENTITY"]
    monkeypatch.setenv("PANPRIVACY_IDENTITY", str(pyrage.x25519.Identity.generate()))
    with working(config, vault) as worker:
        wait_until(lambda: "is that of recipient" in worker.troubles().get("beginning", ""))
        monkeypatch.delenv("PANPRIVACY_IDENTITY")
        wait_until(lambda: "no variable" in worker.troubles().get("beginning", ""))
        assert key not in str(worker.troubles())
        monkeypatch.setenv("PANPRIVACY_IDENTITY", key)
        assert merged([contributed(worker, coordinator, last)]) == [1, 0, 0]


@pytest.mark.long
def test_a_new_recipient_needs_the_keys_of_now_and_of_before(
    config, vault, broker, coordinator, monkeypatch
):
    with working(config, vault):
        send(broker, vault, [1])
    before, after = os.environ["PANPRIVACY_IDENTITY"], pyrage.x25519.Identity.generate()
    config = replace(config, recipient=str(after.to_public()))
    with working(config, vault) as worker:
        wait_until(lambda: "is that of recipient" in worker.troubles().get("beginning", ""))
        monkeypatch.setenv("PANPRIVACY_IDENTITY", str(after))
        wait_until(lambda: "key of before too" in worker.troubles().get("beginning", ""))
        monkeypatch.setenv("PANPRIVACY_IDENTITY", f"{before} {after}")
        wait_until(lambda: worker._told)
    monkeypatch.setenv("PANPRIVACY_IDENTITY", str(after))
    with working(config, vault) as worker:
        last = send(broker, vault, [1, 2])
        assert merged([contributed(worker, coordinator, last)]) == [1, 1, 0]


@pytest.mark.long
def test_no_key_is_drawn_before_senders_have_the_last_one(
    config, vault, broker, coordinator, monkeypatch
):
    """A disk is full for longer than a key is used."""
    with working(replace(config, key_seconds=0.1), vault) as worker:
        public = public_of(vault)
        wait_until(lambda: public_of(vault) != public)
        with monkeypatch.context() as full:
            full.setattr(os, "fsync", no_space)
            wait_until(lambda: "sealed state" in worker.troubles())
            public = public_of(vault)
            time.sleep(1.0)
            (last,) = broker.publish([(queue(0, 1), *sealed(public, [1]))])
            wait_until(lambda: worker._streams["visits"].position == last)
        packed = contributed(worker, coordinator, last)
        assert (merged([packed]), Merger([packed]).complete) == ([1, 0, 0], True)


def test_a_first_start_tells_of_an_identity_that_is_missing_or_wrong(config, vault, monkeypatch):
    for wrong, says in (
        ("", "no variable"),
        (pyrage.x25519.Identity.generate(), "no private key here is that of recipient"),
    ):
        monkeypatch.setenv("PANPRIVACY_IDENTITY", str(wrong))
        with working(config, vault) as worker:
            wait_until(lambda says=says: says in worker.troubles().get("beginning", ""))
    assert vault.report() == {}


def test_a_command_brings_the_identity(config, identity):
    said = pyrage.encrypt(b"states", [identity.to_public()])
    prints = [sys.executable, "-c", f"print('# a comment'); print('{identity}')"]

    def by(*command):
        cluster = structs.replace(config.cluster, identity="NONE", identity_command=command)
        return replace(config, cluster=cluster).opened(said)

    assert by(*prints) == b"states"
    for wrong in ([sys.executable, "-c", "raise SystemExit(1)"], ["/no/such/command"]):
        with pytest.raises(PanPrivacyError, match="did not print"):
            by(*wrong)
    with pytest.raises(PanPrivacyError, match="no age identity"):
        by(sys.executable, "-c", "print('nothing')")


def test_what_goes_wrong_is_told_without_frames_or_values(config, vault, monkeypatch):
    def fail(*_, **__):
        raise KeyError("ada")

    with working(config, vault) as worker:
        wait_until(lambda: worker._told)
        monkeypatch.setattr(ShardStream, "announce", fail)
        with pytest.raises(PanPrivacyError, match="failed with KeyError") as raised:
            worker.announce("visits", BEGAN, 1)
        assert raised.value.__context__ is None
        assert "ada" not in str(raised.value)
