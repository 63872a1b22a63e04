"""Pass messages of a Kafka topic to a stream: offsets are committed once their rows are durable.

    python kafka_consumer.py http://127.0.0.1:8642/v1/streams/visits/updates TOPIC < TOKEN

A message is one JSON object such as {"user": "ada"}, or several, one a line. After a crash it comes
once more under the same name, and counts once. Needs `pip install kafka-python httpx`.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx

AT_ONCE = 50
"""Requests at a time; all that wait share a checkpoint."""
MOST = 500
"""Messages between two commits: far fewer than the names that the service remembers."""


def forward(consumer, client, url):
    """Send the messages of one poll, and commit once all are durable."""

    def send(message):
        name = f"{message.topic}-{message.partition}-{message.offset}"
        while True:
            answer = client.post(
                url, params={"durable": 1}, content=message.value, headers={"Idempotency-Key": name}
            )
            if answer.status_code not in {429, 503}:
                return answer.raise_for_status()  # what was refused stays in the topic
            time.sleep(int(answer.headers.get("Retry-After", 1)))

    polled = consumer.poll(timeout_ms=1_000, max_records=MOST)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(send, [one for messages in polled.values() for one in messages]))
    consumer.commit()


if __name__ == "__main__":
    from kafka import KafkaConsumer

    url, topic = sys.argv[1:]
    settings = {"group_id": "panprivacy", "enable_auto_commit": False}
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", **settings)
    headers = {"Authorization": f"Bearer {sys.stdin.readline().strip()}"}
    headers["Content-Type"] = "application/x-ndjson"
    with httpx.Client(headers=headers, timeout=60) as client:
        while True:
            forward(consumer, client, url)
