"""A connection to NATS: what it waits for, and in which words it says what is wrong."""

from __future__ import annotations

import time
from importlib.util import find_spec

import pytest
from nats.errors import MaxPayloadError
from nats.js.errors import APIError, ServiceUnavailableError

from panprivacy.cluster.connection import BrokerConnection, is_full
from panprivacy.cluster.queues import BrokerError, QueueFullError
from panprivacy.errors import InputError
from tests.cluster.nats import NatsServer, Proxy, found_nats


async def nothing():
    """What is done where a connection has ended."""


def connection(url="nats://127.0.0.1:1", credentials=None, patience=0.3, broke=nothing):
    return BrokerConnection(url, credentials, patience, broke)


@pytest.fixture
def away():
    """To a broker that is not there."""
    found = connection(["nats://me:secret@127.0.0.1:1", "nats://127.0.0.1:2"])
    yield found
    found.close()


async def failing(error):
    raise error


def refused(made, error):
    """What is told of an error of the client."""
    with pytest.raises(BrokerError) as found:
        made.call(failing(error)).result(5)
    return found.value


def test_what_it_cannot_be_made_with_is_refused(tmp_path):
    with pytest.raises(InputError, match="nsc"):
        connection(credentials=str(tmp_path / "none"))
    (tmp_path / "some").touch()
    if find_spec("nkeys") is None:
        with pytest.raises(InputError, match="pip install nkeys"):
            connection(credentials=str(tmp_path / "some"))
    for patience in (0, 31, float("nan")):
        with pytest.raises(InputError, match="at most 30"):
            connection(patience=patience)


def test_what_is_called_gives_what_it_returns_and_errors_of_its_own(away):
    async def given():
        return 7

    assert away.call(given()).result(5) == 7
    with pytest.raises(InputError, match="mine"):
        away.call(failing(InputError("mine"))).result(5)
    with pytest.raises(ZeroDivisionError):
        away.call(failing(ZeroDivisionError("a fault"))).result(5)


def test_a_broker_that_is_away_is_waited_for_and_told_without_its_password(away):
    before = time.monotonic()
    with pytest.raises(BrokerError, match="does not answer") as told:
        away.call(away.ready()).result(60)
    assert time.monotonic() - before >= 0.3
    assert "127.0.0.1:1, 127.0.0.1:2" in str(told.value)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (APIError(code=500, err_code=10028), "raise its max_memory_store, or lower queue_bytes"),
        (MaxPayloadError(), "raise max_payload"),
        (ServiceUnavailableError(), "127.0.0.1:2 has no JetStream: start nats-server with -js"),
        (APIError(code=400, description="no", err_code=10_001), "127.0.0.1:2 refuses: no"),
        (OSError(111, "refused"), "127.0.0.1:2 does not answer"),
        (TimeoutError(), "127.0.0.1:2 does not answer"),
    ],
)
def test_each_error_of_the_client_is_told_in_words_of_its_own(away, error, says):
    found = refused(away, error)
    assert type(found) is BrokerError
    assert says in str(found)


@pytest.mark.parametrize(("code", "full"), [(10077, True), (10023, True), (10028, False)])
def test_a_full_queue_and_a_full_server_are_told_from_all_else(away, code, full):
    error = APIError(code=503, err_code=code)
    assert is_full(error) is full
    found = refused(away, error)
    assert isinstance(found, QueueFullError) is full
    assert ("come again later" in str(found)) is full


def test_no_other_error_is_a_full_queue():
    assert not is_full(OSError(28, "No space left on device"))


def test_one_that_was_closed_says_so():
    made = connection()
    made.close()
    made.close()
    with pytest.raises(BrokerError, match="the broker was closed"):
        made.call(nothing())


@pytest.mark.long
def test_a_broker_that_is_not_there_yet_is_waited_for():
    server = NatsServer(found_nats())
    made = connection(f"nats://user:secret@127.0.0.1:{server.port}")
    with pytest.raises(BrokerError, match="does not answer"):
        made.call(made.account()).result(10)
    with server:
        until = time.monotonic() + 10
        while True:
            try:
                made.call(made.account()).result(10)
                break
            except BrokerError:
                assert time.monotonic() < until
        assert made.call(made.ready()).result(5) > 1_000
    made.close()


def test_one_that_breaks_is_told_and_connects_again(shared_nats):
    broken = []

    async def broke():
        broken.append(time.monotonic())

    with Proxy(shared_nats.port) as proxy:
        made = connection(proxy.url, patience=10, broke=broke)
        made.call(made.account()).result(15)
        assert not broken
        proxy.cut()
        until = time.monotonic() + 10
        while not broken:
            assert time.monotonic() < until
            time.sleep(0.01)
        made.call(made.account()).result(15)
        made.close()


@pytest.mark.long
@pytest.mark.parametrize("pause", [0.0, 0.01, 0.05])
def test_nobody_waits_for_a_call_that_had_begun_to_connect_when_it_was_closed(pause):
    for _ in range(20):
        made = connection(patience=30)
        called = made.call(made.ready())
        time.sleep(pause)
        made.patience = 5
        made.close()
        assert called.done()
        assert called.cancelled() or called.exception() is not None
