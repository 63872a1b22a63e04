"""Each of two servers: what lies beside its task, and that it has that alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from panprivacy.devices.aggregator import server
from panprivacy.devices.aggregator.secrets import HelperSecrets, LeaderSecrets
from panprivacy.devices.aggregator.server import Location, help_leader, lead
from panprivacy.errors import PlanError
from panprivacy.service.server import alone
from tests.service.two_servers import HELPER, LEADER, VERIFY_KEY, histogram, task_of

SIGNER = Ed25519PrivateKey.generate()


@pytest.fixture
def place(tmp_path):
    file = tmp_path / "task.json"
    file.write_bytes(task_of(histogram(2)).signed(SIGNER))
    return Location(file, f"sqlite:///{tmp_path}/store.sqlite", "unix:" + str(tmp_path / "socket"))


def secrets(kind, key, **more):
    return kind(secret=bytes(key).hex(), tokens={}, verify_key=VERIFY_KEY.hex(), **more)


STARTS = {
    "leader": lambda place: lead(
        place, secrets(LeaderSecrets, LEADER, peer="word"), "http://127.0.0.1:1"
    ),
    "helper": lambda place: help_leader(place, secrets(HelperSecrets, HELPER)),
}
EACH = pytest.mark.parametrize("role", STARTS)


def test_what_a_role_keeps_lies_beside_the_task():
    place = Location(Path("/tasks/visits.json"), "", "")
    assert place.beside("leader", "mark") == Path("/tasks/visits.json.leader.mark")
    assert not place.fresh


@EACH
def test_it_runs_with_its_task_and_ends_its_store(place, monkeypatch, role):
    ran = []
    monkeypatch.setattr(server, "run", lambda _app, api, sock: ran.append((api, sock)))
    ended = []
    kind = {"leader": "LeaderStore", "helper": "HelperStore"}[role]
    store = getattr(server, kind)
    monkeypatch.setattr(store, "end", lambda self, end=store.end: (ended.append(0), end(self)))
    STARTS[role](place)
    ((_, sock),) = ran
    assert sock.fileno() == -1
    assert len(ended) == 1
    assert place.beside(role, "mark").exists()


@EACH
def test_it_ends_its_store_if_it_fails(place, monkeypatch, role):
    def failing(*_):
        raise RuntimeError("fails")

    monkeypatch.setattr(server, "run", failing)
    with pytest.raises(RuntimeError, match="fails"):
        STARTS[role](place)
    monkeypatch.setattr(server, "run", lambda *_: None)
    STARTS[role](place)  # its lock and its socket are free again


@EACH
def test_two_of_one_role_do_not_run_beside_one_task(place, role):
    with alone(place.beside(role, "lock")), pytest.raises(PlanError, match="runs in"):
        STARTS[role](place)
    assert not Path(place.store.removeprefix("sqlite:///")).exists()
