"""The command `panprivacy aggregator`."""

from __future__ import annotations

import pytest

from panprivacy.devices.aggregator import secrets, server
from tests.commands import run_command


@pytest.fixture
def started(monkeypatch):
    """What would have been started."""
    found = []
    monkeypatch.setattr(server, "lead", lambda *given: found.append(("lead", *given)))
    monkeypatch.setattr(server, "help_leader", lambda *given: found.append(("help", *given)))
    for kind in (secrets.LeaderSecrets, secrets.HelperSecrets):
        monkeypatch.setattr(
            kind, "load", classmethod(lambda _cls, file, identity: (file, identity))
        )
    return found


@pytest.fixture
def task(tmp_path):
    file = tmp_path / "task.json"
    file.touch()
    return file


def test_the_leader_has_what_lies_beside_its_task_and_asks_the_helper(started, task):
    assert run_command("aggregator", "--role", "leader", "--task", task).code == 0
    ((role, place, loaded, helper),) = started
    assert (role, helper) == ("lead", "http://127.0.0.1:8645")
    assert loaded == (task.with_name("task.leader.secret"), None)
    assert place.store == f"sqlite:///{task.with_name('task.leader.sqlite')}"
    assert (place.file, place.listen, place.fresh) == (task, "127.0.0.1:8644", False)
    assert place.origins == ()


def test_the_leader_knows_the_sites_of_devices(started, task):
    sites = ("https://one.example", "https://other.example")
    words = [word for site in sites for word in ("--origin", site)]
    assert run_command("aggregator", "--role", "leader", "--task", task, *words).code == 0
    assert started[0][1].origins == sites


def test_the_helper_has_a_port_and_secrets_of_its_own(started, task):
    assert (
        run_command(
            "aggregator", "--role", "helper", "--task", task, "--fresh", "--store", "sqlite:////x"
        ).code
        == 0
    )
    ((role, place, loaded),) = started
    assert (role, loaded[0].name) == ("help", "task.helper.secret")
    assert place[1:] == ("sqlite:////x", "127.0.0.1:8645", True, ())


def test_a_url_of_the_helper_ends_without_a_slash(started, task):
    run_command(
        "aggregator",
        "--role",
        "leader",
        "--task",
        task,
        "--helper",
        "https://h/",
        "--listen",
        "127.0.0.1:9",
    )
    assert started[0][3] == "https://h"
    assert started[0][1].listen == "127.0.0.1:9"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("helper", "--helper", "http://h"), "--helper is for the leader: the helper asks nobody"),
        (("helper", "--origin", "https://app.example"), "--origin is for the leader"),
        (("leader", "--helper", "h:80"), "--helper must be a URL such as"),
    ],
)
def test_what_does_not_fit_is_refused(started, task, arguments, says):
    role, *others = arguments
    result = run_command("aggregator", "--role", role, "--task", task, *others)
    assert result.code == 2
    assert says in result.stderr
    assert started == []


def test_a_task_that_is_not_there_is_refused(started, tmp_path):
    result = run_command("aggregator", "--role", "leader", "--task", tmp_path / "none.json")
    assert result.code == 2
    assert "panprivacy task --servers 2 writes one" in " ".join(result.stderr.split())
    assert started == []
