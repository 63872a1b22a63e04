"""Another recipient of the checkpoint, while the service is killed in between."""

from __future__ import annotations

import random

import pyrage
import pytest

from tests.service.test_durability import (
    CLIENTS,
    Client,
    Held,
    check,
    kill_at_random,
    preloaded,
    service,
)

__all__ = ["preloaded", "service"]

pytestmark = pytest.mark.long


def change_recipient(service):
    """Have states be sealed to a new key from the next start on; return the key of before."""
    before, key = service.identity.read_text(), pyrage.x25519.Identity.generate()
    text = service.config.read_text()
    assert service.recipient in text
    service.config.write_text(text.replace(service.recipient, str(key.to_public())))
    service.recipient = str(key.to_public())
    service.identity.write_text(f"{key}\n{before}")
    return before


def test_no_row_is_lost_or_doubled_by_kills_while_the_recipient_changes(service):
    clients, seed = [Client(number) for number in range(CLIENTS)], random.Random(43)
    for number in range(12):
        if number % 2:
            change_recipient(service)
        kill_at_random(service, clients, [seed.uniform(0, 0.25)])
    service.begin()
    for client in clients:
        client.finish(service)
    assert service.stop() == 0
    newest = service.identity.read_text().split()[0]
    service.identity.write_text(newest)
    assert check(service, clients) == sum(len(client.sent) for client in clients)
    assert sum(len(client.acknowledged) for client in clients) > 24


def test_the_key_of_before_opens_the_checkpoint_until_there_is_another(service):
    service.start()
    assert service.send([1, 2], durable=True, key="a").status_code == 200
    service.kill()
    before = change_recipient(service)
    service.start()
    newest, *_ = service.identity.read_text().split()
    for keys, says in ((newest, "sealed to another identity"), ("", "there is no age identity")):
        service.identity.write_text(keys)
        refused = service.restore()
        assert (refused.code, refused.stderr.count("\n"), says in refused.stderr) == (2, 1, True)
        assert service.status() == "waiting for restore"
    service.kill()
    service.start()
    service.identity.write_text(before)
    assert service.restore().code == 0
    assert service.send([1, 2], durable=True, key="a").status_code == 200
    assert service.send([3], durable=True, key="b").status_code == 200
    service.kill()
    service.start()
    assert "sealed to another identity" in service.restore().stderr
    service.identity.write_text(newest)
    assert service.restore().code == 0
    assert service.stop() == 0
    held = Held(service)
    assert (held.once, held.oftener, len(held.batches)) == (3, [0, 0], 2)
