"""A real service: what it acknowledged survives crashes and full disks, and is counted once."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import closing, contextmanager, nullcontext, suppress

import httpx
import pyrage
import pytest

import panprivacy as pp
from panprivacy.service.batches import _hash
from panprivacy.service.config.loading import load
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.stream import Stream
from panprivacy.statistics.checkpoint import Checkpoint
from tests.commands import run_command
from tests.service.running import HARDENED, Preloaded, Service, rows_of, wait_until

USERS, KEPT, EACH, CLIENTS = 60_000, 20_000, 3, 4
EXACT = f"""
[streams.visits]
epsilon = 200
window = "3660d"
releases = 2
ids = "integers"
retries = {KEPT}
[[streams.visits.stat]]
name = "incidence"
universe = {USERS}
bound = 3
"""
"""With this epsilon no cell of any run here is noisy, with a probability of 1 - 1e-9: a state loses
40 nats and a release 77, so 200 states of 60,000 cells differ in one with at most 1e-10."""
PACE = 0.01


@pytest.fixture(scope="module")
def preloaded():
    """Starts services whose checkpoints follow one another at once."""
    with Preloaded(every=PACE) as process:
        yield process


@pytest.fixture
def service(tmp_path, preloaded):
    with Service(tmp_path, EXACT, preloaded=preloaded) as one:
        yield one


class Held:
    """What is in the checkpoint of a service.

    Args:
        service: whose file is read, with its key.
    """

    def __init__(self, service):
        config = load(service.config)
        states = Checkpoint(service.sealed, recipient=service.recipient).unsealed(service.identity)
        with closing(ReleaseStore(f"sqlite:///{service.directory}/unused.sqlite")) as store:
            stream = Stream("visits", config.streams["visits"], store)
            stream.resume(states)
        self.batches = set(stream.reception.batch_ids._hashes)
        counts = stream.windows.windowed.current.release().counts
        self.once, self.oftener = counts[1], list(counts[2:])

    def __contains__(self, name):
        return _hash(name.encode()) in self.batches


class Client:
    """Sends batches of users of their own, and again what was not acknowledged.

    Args:
        number: of the client, from 0.
        row_bytes: what each row takes at least.
    """

    def __init__(self, number, row_bytes=0):
        self._number, self._made = number, 0
        self._row_bytes = row_bytes
        self._open = None
        self._random = random.Random(number)
        self.acknowledged = []

    @property
    def sent(self):
        """All names, also of what may have been counted though nobody said so."""
        return [self._name(made) for made in range(self._made)]

    def work(self, service, url):
        """Send until the service is gone."""
        headers = {**service.headers("ingest"), "Content-Type": "application/x-ndjson"}
        with (
            suppress(httpx.TransportError),
            httpx.Client(verify=False, trust_env=False, headers=headers) as client,
        ):
            while True:
                self._send(client, url)

    def finish(self, service):
        """Send what is not acknowledged yet."""
        if self._open is not None:
            assert service.send(self._users(), durable=True, key=self._name(self._open))
            self.acknowledged.append(self._name(self._open))

    def _send(self, client, url):
        if self._open is None:
            self._open, self._made = self._made, self._made + 1
        name = self._name(self._open)
        for _ in range(self._random.choice([1, 1, 2])):  # a sender may have missed the answer
            answer = client.post(url, content=self._body(), headers={"Idempotency-Key": name})
            assert answer.status_code == 200, answer.text
            if name not in self.acknowledged[-1:]:
                self.acknowledged.append(name)
        self._open = None

    def _body(self):
        return rows_of(self._users()).replace(b"}", b" " * self._row_bytes + b"}")

    def _users(self):
        first = EACH * (CLIENTS * self._open + self._number)
        return range(first, first + EACH)

    def _name(self, made):
        return f"{self._number}-{made}"


def check(service, clients):
    """Tables and batch ids agree; all that was acknowledged is there, nothing of it twice."""
    held = Held(service)
    lost = [name for client in clients for name in client.acknowledged if name not in held]
    sent = {_hash(name.encode()) for client in clients for name in client.sent}
    assert not lost
    assert held.batches <= sent
    assert held.once == EACH * len(held.batches)
    assert held.oftener == [0, 0]
    return len(held.batches)


def kill_at_random(service, clients, moments):
    """Run a service for a moment under full load and kill it, again and again."""
    for moment in moments:
        service.begin()
        url = service.url("/v1/streams/visits/updates?durable=1")
        threads = [threading.Thread(target=client.work, args=(service, url)) for client in clients]
        for thread in threads:
            thread.start()
        time.sleep(moment)
        service.kill()
        for thread in threads:
            thread.join()
        if service.sealed.exists():
            check(service, clients)


@pytest.mark.long
@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost_or_counted_twice_by_kills(service, kills):
    """A lost or doubled batch, or one that is counted by half, shows with certainty."""
    clients, seed = [Client(number) for number in range(CLIENTS)], random.Random(kills)
    kill_at_random(service, clients, [seed.uniform(0, 0.25) for _ in range(kills)])
    service.begin()
    for client in clients:
        client.finish(service)
    assert service.stop() == 0
    assert check(service, clients) == sum(len(client.sent) for client in clients)
    acknowledged = sum(len(client.acknowledged) for client in clients)
    assert acknowledged > 2 * kills, "it was killed before anything came"


@pytest.mark.long
def test_bodies_that_are_read_in_turns_are_counted_once_or_not_at_all(service):
    """It is killed while several of 768 KiB have come in part."""
    clients, seed = [Client(number, 1 << 18) for number in range(CLIENTS)], random.Random(43)
    kill_at_random(service, clients, [seed.uniform(0.2, 1.5) for _ in range(10)])
    service.begin()
    for client in clients:
        client.finish(service)
    assert service.stop() == 0
    assert check(service, clients) == sum(len(client.sent) for client in clients)
    assert sum(len(client.acknowledged) for client in clients) > CLIENTS


@pytest.mark.long
def test_the_installed_command_goes_on_after_a_kill(tmp_path):
    with Service(tmp_path, EXACT, command=HARDENED) as service:
        service.start()
        assert service.send([1, 2, 3], durable=True, key="a").status_code == 200
        service.kill()
        service.begin()
        assert service.send([1, 2, 3], durable=True, key="a").status_code == 200
        assert service.send([4], key="b").status_code == 202
        assert service.stop() == 0
        held = Held(service)
        assert (held.once, held.oftener, len(held.batches)) == (4, [0, 0], 2)


@pytest.mark.long
def test_what_an_answer_has_is_in_no_other_after_a_kill(tmp_path):
    """Checkpoints come once a minute, and windows end every two seconds."""
    streams = EXACT.replace("3660d", "2s").replace("bound = 3", 'bound = 3\nexactly = "1:3"')
    with Service(tmp_path, streams, checkpoint='every = "60s"') as service:

        def counted():
            return [round(row["value"]) for row in service.releases() if row["argument"] == 1]

        service.start()
        assert service.send([1, 2, 3], key="a").status_code == 202
        wait_until(lambda: any(counted()))
        service.kill()
        service.begin()
        assert service.send([1, 2, 3], key="a").status_code == 202
        assert service.send([4], key="b").status_code == 202
        wait_until(lambda: sum(counted()) >= 4)
        assert sorted(counted())[-2:] == [1, 3]


@pytest.mark.long
def test_the_same_batch_from_many_at_once_is_counted_once(service):
    service.start()
    answers = []

    def send():
        answers.append(service.send([7], durable=True, key="same").status_code)

    threads = [threading.Thread(target=send) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 16
    service.stop()
    assert Held(service).once == 1


# Disks


def _full(folder):
    filler = folder / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(4_096)):
            pass
    return filler.unlink, "No space left on device"


def _read_only(folder):
    def remount(how):
        command = ["mount", "-o", f"remount,{how}", folder]
        subprocess.run(command, check=True, capture_output=True)

    wait_until(lambda: _tried(remount))
    return lambda: remount("rw"), "Read-only file system"


def _tried(remount):
    """A file that is open for writing keeps a disk from becoming read-only."""
    with suppress(subprocess.CalledProcessError):
        remount("ro")
        return True
    return False


def _gone(folder):
    kept = folder.with_name("elsewhere")
    folder.rename(kept)
    return lambda: kept.rename(folder), "No such file or directory"


@contextmanager
def small_disk(folder):
    """A disk of half a megabyte: room for a checkpoint, and for the next one beside it."""
    mounting = ["mount", "-t", "tmpfs", "-o", "size=900k", "none", folder]
    if os.geteuid() or subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("a disk can be mounted by root alone")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.long
@pytest.mark.parametrize("spoil", [_full, _read_only, _gone])
def test_without_a_disk_it_goes_on_and_says_so_and_recovers(service, tmp_path, spoil):
    folder = tmp_path / "disk"
    folder.mkdir()
    service.sealed = folder / "a.sealed"
    service.configure(EXACT, checkpoint=f'every = "1s"\npath = "{service.sealed}"')
    with nullcontext() if spoil is _gone else small_disk(folder):
        try:
            _spoil_and_mend(service, folder, spoil)
        finally:
            service.kill()


def _spoil_and_mend(service, folder, spoil):
    service.start()
    assert service.send([1], durable=True, key="before").status_code == 200
    mend, reason = spoil(folder)
    refused = service.send([2], durable=True, key="while")
    assert refused.status_code == 503
    assert reason in refused.text
    assert "Retry-After" in refused.headers
    assert service.send([3], key="later").status_code == 202
    wait_until(lambda: reason in service.health()["troubles"].get("checkpoint", ""))
    assert service.status() == "troubled"
    if spoil is not _gone:
        assert "before" in Held(service), "the old file is whole"
        wait_until(lambda: not (folder / "a.sealed.new").exists())  # there during each attempt
    mend()
    again = service.send([2], durable=True, key="while")
    assert again.status_code == 200
    wait_until(lambda: service.status() == "ok")
    service.kill()
    held = Held(service)
    assert (held.once, held.oftener, len(held.batches)) == (3, [0, 0], 3)
    assert service.said.count(reason) == 1, "it is told once, not at each attempt"
    assert "works again what=checkpoint" in service.said


# Restoring


@pytest.fixture
def sealed(service):
    """The bytes of a checkpoint, of a service that was stopped."""
    service.start()
    assert service.send([1, 2], durable=True, key="a").status_code == 200
    service.stop()
    return service.sealed.read_bytes()


def resealed(service, change):
    """The checkpoint with something changed within the seal."""
    plain = Checkpoint(service.sealed, recipient=service.recipient).unsealed(service.identity)
    return pyrage.encrypt(change(plain), [pyrage.x25519.Recipient.from_str(service.recipient)])


def _foreign(service, data):
    service.identity.write_text(f"{pyrage.x25519.Identity.generate()}\n")
    return data


SPOILT = {
    "cut off": (lambda _, data: data[:-1], "damaged, or sealed to another identity"),
    "empty": (lambda _, __: b"", "not sealed"),
    "edited": (
        lambda _, data: data[:-40] + bytes([data[-40] ^ 1]) + data[-39:],
        "damaged, or sealed to another identity",
    ),
    "of another key": (_foreign, "damaged, or sealed to another identity"),
    "plain": (lambda one, _: plain_of(one), "not sealed"),
    "of another version": (
        lambda one, _: resealed(one, lambda plain: plain.replace(VERSION, b"0.0.9")),
        "version 0.0.9",
    ),
    "cut off within": (lambda one, _: resealed(one, lambda plain: plain[:-9]), "cut off"),
    "longer within": (lambda one, _: resealed(one, lambda plain: plain + b"more"), "cut off"),
    "much longer within": (
        lambda one, _: resealed(one, lambda plain: plain + bytes(1 << 22)),
        "cut off",
    ),
    "something else": (lambda one, _: resealed(one, lambda _: bytes(9)), "no state of panprivacy"),
}
VERSION = pp.__version__.encode()


def plain_of(service):
    return Checkpoint(service.sealed, recipient=service.recipient).unsealed(service.identity)


def refuse(service, message):
    """A restore fails with one line, and nothing has happened."""
    before = service.sealed.read_bytes()
    result = service.restore()
    assert result.code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not result.stdout
    assert service.status() == "waiting for restore"
    assert service.send([5], key="b").status_code == 503
    time.sleep(3 * PACE)
    assert service.sealed.read_bytes() == before


@pytest.mark.long
def test_a_spoilt_checkpoint_is_refused_and_left_alone(service, sealed):
    key = service.identity.read_text()
    for spoil, message in SPOILT.values():
        service.sealed.write_bytes(spoil(service, sealed))
        if service._process is None:
            service.start()
        refuse(service, message)
        service.sealed.write_bytes(sealed)
        service.identity.write_text(key)
    assert service.restore().code == 0
    assert service.send([1, 2], durable=True, key="a").status_code == 200
    service.stop()
    assert Held(service).once == 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        pytest.param("epsilon = 200", "epsilon = 150", "another", id="epsilon"),
        pytest.param("3660d", "3650d", "every", id="window"),
        pytest.param(str(KEPT), "7", "batch_ids", id="retries"),
        pytest.param("streams.visits", "streams.views", "stream", id="name"),
    ],
)
def test_a_checkpoint_of_another_configuration_is_refused_by_name(
    service, sealed, before, after, names
):
    service.configure(EXACT.replace(before, after))
    service.start()
    result = service.restore()
    assert result.code == 2
    assert names in result.stderr
    assert service.status() == "waiting for restore"
    assert service.sealed.read_bytes() == sealed
    assert service.stop() == 0
    assert service.sealed.read_bytes() == sealed


@pytest.mark.long
def test_what_is_given_up_begins_anew(service, sealed):
    service.start("--fresh")
    assert service.status() == "ok"
    assert service.send([9], durable=True, key="a").status_code == 200
    service.stop()
    assert Held(service).once == 1


@pytest.mark.long
def test_a_checkpoint_is_given_up_only_by_a_service_that_can_run(service, sealed, tmp_path):
    spoilt = {
        "listening": EXACT,
        "store": f'[releases]\nstore = "sqlite:///{tmp_path}/no/folder.sqlite"\n' + EXACT,
    }
    for what, streams in spoilt.items():
        server = 'listen = "192.0.2.1:1"' if what == "listening" else 'listen = "127.0.0.1:0"'
        service.configure(streams, server=server)
        with pytest.raises(RuntimeError, match="cannot"):
            service.start("--fresh")
        assert service.sealed.read_bytes() == sealed


@pytest.mark.long
@pytest.mark.usefixtures("sealed")
def test_a_release_store_that_is_gone_is_told_and_nothing_goes_on_beside_another(service, tmp_path):
    """An empty store in its place would pay for the same window again."""
    store, away = service.directory / "releases.sqlite", tmp_path / "away"
    away.mkdir()

    def move(source, target):
        for file in source.glob(f"{store.name}*"):
            file.rename(target / file.name)

    service.begin()
    move(service.directory, away)
    told = "file of the release store"
    wait_until(lambda: "put it back" in service.health()["troubles"].get(told, ""))
    service.kill()
    with pytest.raises(RuntimeError, match=r"its release store is not there any more: put .*back"):
        service.start()
    service.start()
    refuse(service, "spent twice: put the store back as it was")
    service.kill()
    for file in service.directory.glob(f"{store.name}*"):
        file.unlink()
    move(away, service.directory)
    service.begin()
    assert service.status() == "ok"


@pytest.mark.long
def test_a_restore_that_nobody_waits_for_is_told_so(service, sealed):
    result = service.restore()
    assert result.code == 2
    assert "no service waits" in result.stderr
    service.start()
    service.kill()
    assert (service.directory / "restore.sock").is_socket(), "a killed service leaves it behind"
    assert "no service waits" in service.restore().stderr
    service.start()
    assert service.restore().code == 0
    assert service.send([3]).status_code == 202, "who has restored it need not wait"
    assert not (service.directory / "restore.sock").exists()
    assert "no service waits" in service.restore().stderr


@pytest.mark.long
def test_of_two_services_in_a_directory_one_is_refused(service):
    service.start()
    result = run_command("serve", service.config)
    assert result.code == 2
    assert "another service, cluster, collector or aggregator runs in" in result.stderr
    assert service.status() == "ok"
    shutil.copy(service.config, service.directory / "other.toml")
    assert run_command("serve", service.directory / "other.toml", "--fresh").code == 2
    assert service.send([1], durable=True, key="a").status_code == 200


# What the file tells


@pytest.mark.long
def test_the_file_is_written_on_the_clock_and_its_size_tells_nothing(service):
    service.start()

    def versions(count):
        seen = {}
        while len(seen) < count:
            with suppress(FileNotFoundError):
                found = service.sealed.stat()
                seen[found.st_mtime_ns] = found.st_size
            time.sleep(PACE / 4)
        return set(seen.values())

    idle = versions(30)
    service.send(range(20_000), durable=True, key="a")
    busy = versions(30)
    plain = len(plain_of(service))
    assert all(plain < size < plain + 1_000 for size in idle | busy)  # age adds a random stanza


# Stopping


@pytest.mark.long
def test_what_was_merely_counted_is_in_the_last_checkpoint(tmp_path):
    with Service(tmp_path, EXACT, checkpoint='every = "1h"') as service:
        service.start()
        wait_until(service.sealed.exists)  # the next one would come in an hour
        for number in range(20):
            assert service.send([number], key=str(number)).status_code == 202
        assert service.stop() == 0
        held = Held(service)
        assert (held.once, len(held.batches)) == (20, 20)
        assert not ledger(service), "nothing was released"


@pytest.mark.long
def test_without_checkpoints_a_stop_releases_the_window_once(tmp_path, preloaded):
    with Service(tmp_path, EXACT, checkpoint=None, preloaded=preloaded) as service:
        service.start()
        assert service.send(range(10)).status_code == 202
        assert service.send([1], durable=True, key="a").status_code == 400
        assert service.stop() == 0
        assert [number for number, *_ in ledger(service)] == [0, 1]
        service.start()
        rows = service.releases()
        assert {row["number"] for row in rows} == {1}
        assert not any(row["complete"] for row in rows)
        once = [
            row["value"] for row in rows if (row["question"], row["argument"]) == ("exactly", 1)
        ]
        assert once == [pytest.approx(10)]


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_does_not_keep_it_from_ending_in_good_order(service, number):
    service.start()
    for each in range(10):
        service.send([each], key=str(each))
    process = service._process
    for _ in range(3):
        process.send_signal(number)
    assert process.wait() == 0
    assert Held(service).once == 10


@pytest.mark.long
def test_a_stop_leaves_a_checkpoint_that_was_not_restored(service, sealed):
    service.start()
    assert service.status() == "waiting for restore"
    assert service.stop() == 0
    assert service.sealed.read_bytes() == sealed


@pytest.mark.long
def test_a_service_that_cannot_listen_for_log_lines_fails_with_a_line(service, tmp_path):
    listen = f'\n[[streams.visits.syslog]]\nlisten = "unix:{tmp_path}/no/a.sock"\n'
    listen += 'format = "lines"\npattern = "^(?P<user>[0-9]+)"\n'
    service.configure(EXACT + listen)
    with pytest.raises(RuntimeError, match="cannot listen") as refusal:
        service.start()
    assert "Traceback" not in str(refusal.value)
    assert service._process.wait() == 2


def ledger(service):
    """Number and price of what was paid."""
    with closing(sqlite3.connect(service.directory / "releases.sqlite")) as store:
        return store.execute("SELECT number, epsilon FROM panprivacy_ledger").fetchall()
