"""What is asked of Ray, without one; `test_ray` has one."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pyrage
import pytest

from panprivacy.cluster import actors
from panprivacy.cluster.actors import RayShards, connected
from panprivacy.cluster.routing import Router
from panprivacy.cluster.vault import GoneError, SilentError
from panprivacy.cluster.waiting import Patience
from panprivacy.errors import PlanError
from panprivacy.service.config.config import CheckpointConfig, Config
from tests.cluster.shards import BEGAN, KEY, planned

STREAMS = 20


@pytest.fixture
def shards(monkeypatch):
    """Two shards, whose handles are their numbers."""

    class Handle:
        @staticmethod
        def remote(config):
            return SimpleNamespace(hold=config.part.shard)

    recipient = str(pyrage.x25519.Identity.generate().to_public())
    config = Config(streams={"visits": planned()}, checkpoint=CheckpointConfig(recipient=recipient))
    monkeypatch.setattr(actors, "_living_nodes", lambda: ["this one"])
    monkeypatch.setattr(actors, "_here", lambda: "this one")
    monkeypatch.setattr(actors, "_actor", lambda *_, **__: Handle)
    vault = SimpleNamespace(report=None)
    return RayShards(config, Router(2, KEY, numbered=True), {"visits": BEGAN}, vault, {})


def test_a_shard_that_does_not_answer_holds_up_no_other(shards, monkeypatch):
    goes_on = threading.Event()

    def asked(shard):
        return goes_on.wait() if shard == 0 else shard

    monkeypatch.setattr(actors, "call_actor", asked)
    still = [shards.ask(0, "hold") for _ in range(STREAMS)]
    try:
        assert shards.ask(1, "hold").result(5.0) == 1
        assert not any(one.done() for one in still)
    finally:
        goes_on.set()


@pytest.mark.parametrize(("living", "kind"), [(["this one"], SilentError), ([], GoneError)])
def test_a_vault_that_is_silent_is_gone_with_its_node(shards, monkeypatch, living, kind):
    def asked(_):
        message = "it does not answer"
        raise SilentError(message)

    monkeypatch.setattr(actors, "call_actor", asked)
    monkeypatch.setattr(actors, "_living_nodes", lambda: living)
    with pytest.raises(SilentError) as raised:
        shards.report()
    assert type(raised.value) is kind


def test_a_ray_that_is_started_here_has_a_token_that_nobody_else_knows(monkeypatch):
    tokens = []
    monkeypatch.setattr(actors.ray, "init", lambda **_: tokens.append(token()))
    monkeypatch.setattr(actors.ray, "shutdown", lambda: None)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "of the operator")

    def token():
        return actors.os.environ["RAY_AUTH_TOKEN"]

    for address in ("auto", None, None):
        with connected(address, Patience(0)):
            pass
    assert tokens[0] == "of the operator"
    assert len(set(tokens)) == 3
    assert all(len(one) == 64 for one in tokens[1:])


@pytest.mark.parametrize("kind", [RuntimeError, Exception])
@pytest.mark.parametrize("address", [None, "auto"])
def test_a_ray_of_this_machine_is_waited_for_and_another_one_is_not(monkeypatch, address, kind):
    tried = []

    def init(**_):
        tried.append(1)
        if len(tried) == 1:
            raise kind("it has not started in time")

    monkeypatch.setattr(actors.ray, "init", init)
    monkeypatch.setattr(actors.ray, "shutdown", lambda: None)
    patience = Patience(5.0, lambda: 0.0, lambda _: None)
    if address is None:
        with connected(address, patience):
            assert len(tried) == 2
    else:
        with pytest.raises(PlanError, match="cannot be reached"), connected(address, patience):
            pass


def test_a_ray_of_this_machine_that_never_starts_ends_in_one_line(monkeypatch):
    def init(**_):
        message = "it has not started in time.\nTraceback"
        raise RuntimeError(message)

    monkeypatch.setattr(actors.ray, "init", init)
    monkeypatch.setattr(actors.ray, "shutdown", lambda: None)
    says = r"^Ray does not answer within 0 seconds \(it has not started in time\): .*start_patience"
    with pytest.raises(PlanError, match=says), connected(None, Patience(0.0)):
        pass
