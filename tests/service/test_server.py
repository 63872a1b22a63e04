"""A service that has its folder alone, says where it listens, and ends in order."""

from __future__ import annotations

import asyncio
import signal
from types import SimpleNamespace

import pytest

from panprivacy.errors import PanPrivacyError, PlanError
from panprivacy.service import server
from panprivacy.service.server import Server, alone, uncounted
from tests.service.asking import engine_in


def test_two_programs_do_not_have_one_folder(tmp_path):
    file = tmp_path / "lock"
    with alone(file):
        assert file.stat().st_mode & 0o777 == 0o600
        with (
            pytest.raises(
                PlanError, match="another service, cluster, collector or aggregator runs"
            ),
            alone(file),
        ):
            pass
    with alone(file):
        pass


def test_a_folder_that_is_not_there_or_a_link_is_refused(tmp_path):
    with (
        pytest.raises(PlanError, match=r"cannot write in .*: No such file or directory"),
        alone(tmp_path / "no" / "lock"),
    ):
        pass
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PlanError, match="cannot write in"), alone(tmp_path / "lock"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_is_given_back_if_what_it_is_for_fails(tmp_path):
    with pytest.raises(KeyError), alone(tmp_path / "lock"):
        raise KeyError
    with alone(tmp_path / "lock"):
        pass


def test_a_signal_hurries_those_who_wait_before_it_ends(tmp_path):
    engine, order = engine_in(tmp_path), []
    made = Server(lambda *_: None, None, lambda: order.append(made.should_exit))
    made.handle_exit(signal.SIGTERM, None)
    assert order == [False]
    assert made.should_exit
    engine.store.close()


def test_it_says_where_it_listens_and_what_it_promises(tmp_path, caplog):
    engine = engine_in(tmp_path)
    sock = SimpleNamespace(getsockname=lambda: ("127.0.0.1", 8123))
    server._say_where(engine, sock)
    said = caplog.text
    assert "http://127.0.0.1:8123" in said
    assert said.count("guarantee=") == 3
    sock.getsockname = lambda: "/run/panprivacy.sock"
    server._say_where(engine, sock)
    assert "unix:/run/panprivacy.sock" in caplog.text
    engine.store.close()


def test_a_failure_ends_the_program_and_is_kept(monkeypatch):
    raised = []
    monkeypatch.setattr(signal, "raise_signal", raised.append)
    failures = []
    with pytest.raises(PanPrivacyError), server._ending_for(failures):
        raise PanPrivacyError("it cannot")
    assert raised == [signal.SIGTERM]
    assert [str(one) for one in failures] == ["it cannot"]
    with pytest.raises(KeyError), server._ending_for(failures):
        raise KeyError
    assert len(raised) == 1


def test_tasks_are_not_numbered():
    """Their numbers would tell how many requests there were."""

    async def named():
        async with uncounted():
            made = [asyncio.ensure_future(asyncio.sleep(0)) for _ in range(2)]
            names = [one.get_name() for one in made]
            await asyncio.gather(*made)
            mine = asyncio.create_task(asyncio.sleep(0), name="mine")
            await mine
            return [*names, mine.get_name()]

    assert asyncio.run(named()) == ["task", "task", "mine"]
