"""The engine of a service: what it waits for, what it gives up, and how traces are swept."""

from __future__ import annotations

import asyncio

import pytest

from panprivacy.errors import InputError
from panprivacy.service import engine as module
from panprivacy.service.config.loading import load
from panprivacy.service.engine import LocalEngine, Sweeper, looked_after
from tests.service.asking import checkpoint_table, config_text


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "service.toml"
    file.write_text(config_text(checkpoint=checkpoint_table()))
    return load(file)


@pytest.fixture
def made(config):
    engine = LocalEngine(config)
    yield engine
    engine.store.close()


def test_without_a_checkpoint_there_is_nothing_to_wait_for(tmp_path):
    file = tmp_path / "service.toml"
    file.write_text(config_text())
    engine = LocalEngine(load(file))
    assert engine.checkpoint_file is None
    assert not engine.waiting
    assert engine.most_restored == engine.state_bytes
    engine.give_up()
    engine.store.close()


def test_it_waits_for_a_checkpoint_that_is_there_until_it_is_given_up(config, made):
    assert not made.waiting
    made.checkpoint_file.write_bytes(bytes(made.state_bytes + 1))
    again = LocalEngine(config)
    assert again.waiting
    assert again.most_restored == made.state_bytes + 1
    again.give_up()
    assert not again.waiting
    assert not made.checkpoint_file.exists()
    again.give_up()
    again.store.close()


def test_states_go_on_or_all_stay_as_they_were(config, made):
    states = b"".join(stream.state() for stream in made.streams.values())
    assert len(states) == made.state_bytes
    other = LocalEngine(config)
    before = [stream.state() for stream in other.streams.values()]
    with pytest.raises(InputError):
        other.restore(states[:-1])
    assert [stream.state() for stream in other.streams.values()] == before
    other.store.close()


def test_a_file_of_tokens_is_looked_after_as_the_store_is(config, made, tmp_path):
    tokens, looks = looked_after(config, None, made.store)
    assert set(looks) == {"file of the release store"}
    followed, looks = looked_after(config, tmp_path / "service.toml", made.store)
    assert set(looks) == {"file of the release store", "tokens"}
    assert looks["tokens"] == followed.look
    assert type(followed) is not type(tokens)


def test_traces_are_swept_once_for_many_requests_and_step_by_step(monkeypatch):
    swept = []

    def steps():
        for step in range(3):
            swept.append(step)
            yield

    monkeypatch.setattr(module, "_SWEEP_SECONDS", 0.01)
    monkeypatch.setattr(module, "traces_wiped", steps)

    async def run():
        sweeper = Sweeper()
        for _ in range(5):
            sweeper.soon()
        await asyncio.sleep(0.1)
        assert swept == [0, 1, 2]
        sweeper.soon()
        await asyncio.sleep(0.1)

    asyncio.run(run())
    assert swept == [0, 1, 2] * 2
