"""The consumer of Kafka messages: with a stand-in of its client, and a service that is killed."""

from __future__ import annotations

import ast
import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from tests.service.running import Service

FILE = Path(__file__).parents[2] / "examples/service/kafka_consumer.py"
EVENTS = """
[streams.visits]
epsilon = 10
window = "1d"
releases = 2
ids = "integers"
[[streams.visits.stat]]
name = "incidence"
bound = 4
universe = 200
exactly = "0:4"
"""


class Consumer:
    """What `KafkaConsumer` does of one partition: polls go on from a position, as commits say.

    Args:
        values: of the messages.
    """

    def __init__(self, values):
        self._values, self._position, self.committed = values, 0, 0

    def poll(self, *, timeout_ms, max_records):
        """The next messages, by partition."""
        assert timeout_ms > 0
        start = self._position
        self._position = min(start + max_records, len(self._values))
        found = [
            SimpleNamespace(topic="visits", partition=0, offset=n, value=self._values[n])
            for n in range(start, self._position)
        ]
        return {("visits", 0): found} if found else {}

    def commit(self):
        """Go on from here after a restart."""
        self.committed = self._position

    def restart(self):
        """What a consumer that crashed does."""
        self._position = self.committed


@pytest.fixture
def recipe():
    return SimpleNamespace(**runpy.run_path(str(FILE)))


def answering(*codes):
    """A client whose server answers with these codes in turn, and its requests."""
    left, requests = list(codes), []

    def answer(request):
        requests.append(request)
        return httpx.Response(left.pop(0) if left else 200, headers={"Retry-After": "0"})

    return httpx.Client(transport=httpx.MockTransport(answer)), requests


def test_offsets_are_committed_after_all_is_durable(recipe):
    consumer = Consumer([b'{"user": "ada"}'] * 700)
    client, requests = answering()
    recipe.forward(consumer, client, "http://service/")
    assert consumer.committed == len(requests) == recipe.MOST
    assert {request.url.params["durable"] for request in requests} == {"1"}


def test_what_is_refused_is_not_committed_and_a_busy_service_is_asked_again(recipe):
    consumer = Consumer([b'{"user": "ada"}'])
    client, requests = answering(429, 503, 400)
    with pytest.raises(httpx.HTTPStatusError):
        recipe.forward(consumer, client, "http://service/")
    assert consumer.committed == 0
    assert len({request.headers["Idempotency-Key"] for request in requests}) == 1
    assert len(requests) == 3


def test_a_message_has_the_same_name_after_a_crash(recipe):
    consumer, (client, requests) = Consumer([b"{}"] * 3), answering()
    recipe.forward(consumer, client, "http://service/")
    consumer.committed = 0
    consumer.restart()
    recipe.forward(consumer, client, "http://service/")
    names = [request.headers["Idempotency-Key"] for request in requests]
    assert len(names) == 6
    assert len({*names}) == 3


def test_the_loop_is_short():
    (loop,) = [one for one in ast.parse(FILE.read_text()).body if isinstance(one, ast.FunctionDef)]
    assert loop.end_lineno - loop.lineno < 20


@pytest.mark.long
def test_each_event_counts_once_though_consumer_and_service_crash(recipe, tmp_path):
    values = [json.dumps({"user": n}).encode() for n in range(200)]
    consumer = Consumer(values)
    with Service(tmp_path, EVENTS) as service:
        service.start()
        headers = service.headers("ingest", Content_Type="application/x-ndjson")
        with httpx.Client(headers=headers, timeout=60) as client:
            path = "/v1/streams/visits/updates"
            recipe.forward(consumer, client, service.url(path))
            consumer.committed = 0  # it died before its commit
            consumer.restart()
            service.kill()
            service.start()
            assert service.restore().code == 0
            recipe.forward(consumer, client, service.url(path))
        assert consumer.committed == 200
        service.release().raise_for_status()
        rows = service.releases()
    often = {one["argument"]: one for one in rows}
    assert often[1]["value"] > 150  # each user once: of none twice or never
    assert often[0]["value"] < 50
    assert often[2]["value"] < 50


@pytest.mark.long
def test_the_real_client_goes_on_from_what_it_committed_at_a_broker(recipe):
    """With `pip install confluent-kafka 'kafka-python<3'`: the former has a broker for tests."""
    producers, kafka = pytest.importorskip("confluent_kafka"), pytest.importorskip("kafka")
    producer = producers.Producer({"bootstrap.servers": "none:1", "test.mock.num.brokers": 1})
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    for n in range(1_200):
        producer.produce("visits", json.dumps({"user": n}).encode())
    assert producer.flush(10) == 0
    client, requests = answering()
    settings = {"group_id": "panprivacy", "enable_auto_commit": False}
    for expected in (recipe.MOST, 1_200):
        consumer = kafka.KafkaConsumer(
            "visits", bootstrap_servers=f"{broker.host}:{broker.port}",
            auto_offset_reset="earliest", **settings,
        )  # fmt: skip
        while len(requests) < expected:
            recipe.forward(consumer, client, "http://service/")
        consumer.close(autocommit=False)
    names = {request.headers["Idempotency-Key"] for request in requests}
    assert len(names) == len(requests) == 1_200
