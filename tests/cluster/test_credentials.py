"""Who may use the broker: real servers that ask for a password, a token, or a file as of nsc."""

from __future__ import annotations

import base64
import json
import os
from contextlib import closing

import pytest

from panprivacy.cluster.broker import Broker
from panprivacy.cluster.queues import BrokerError, Queue
from tests.cluster.nats import NatsServer, found_nats

QUEUE = Queue("panprivacy", "visits", 1, 0)
SECRETS = ("s3cret", "wr0ng")


def published(url, **given):
    """Where a message is that was sent by who says that he may."""
    with closing(Broker(url, patience=0.5, most_bytes=1 << 20, **given)) as broker:
        broker.wait()
        broker.open(QUEUE)
        return broker.publish([(QUEUE, b"a message")])


@pytest.mark.long
@pytest.mark.parametrize(
    ("asks", "says"),
    [
        ('user: "shop", password: "s3cret"', "shop:{}@"),
        ('token: "s3cret"', "{}@"),
    ],
)
def test_a_password_or_a_token_stands_in_the_url_and_in_no_error(asks, says):
    with NatsServer(found_nats(), extra=f"authorization {{ {asks} }}") as server:
        right, wrong = (server.url.replace("//", f"//{says.format(one)}") for one in SECRETS)
        (position,) = published(right)
        assert position.sequence == 1
        for url in (wrong, server.url):
            with pytest.raises(BrokerError, match="Authorization Violation") as refused:
                published(url)
            assert not any(one in str(refused.value) for one in SECRETS)


def test_a_file_of_credentials_says_who_one_is(tmp_path):
    nkeys = pytest.importorskip("nkeys", reason="nkeys has no wheel, and is in no extra")
    kinds = "OPERATOR", "ACCOUNT", "ACCOUNT", "ACCOUNT", "USER"
    operator, system, account, stranger, user = (
        nkeys.from_seed(nkeys.encode_seed(os.urandom(32), getattr(nkeys, f"PREFIX_BYTE_{kind}")))
        for kind in kinds
    )
    limits = dict.fromkeys(("subs", "data", "payload", "conn"), -1)
    stores = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)
    about = {
        one: signed(operator, one, {"type": "account", "limits": allowed, "version": 2})
        for one, allowed in ((system, limits), (account, limits | stores))
    }
    extra = f"""
    operator: {signed(operator, operator, {"type": "operator", "version": 2})}
    system_account: {name(system)}
    resolver: MEMORY
    resolver_preload: {{ {", ".join(f"{name(one)}: {text}" for one, text in about.items())} }}
    """
    claims = {"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1}
    mine, theirs = (
        credentials(tmp_path / f"{one}.creds", signed(by, user, claims), user)
        for one, by in (("mine", account), ("theirs", stranger))
    )
    with NatsServer(found_nats(), extra=extra) as server:
        (position,) = published(server.url, credentials=mine)
        assert position.sequence == 1
        for given in ({"credentials": theirs}, {}):
            with pytest.raises(BrokerError, match="Authorization Violation"):
                published(server.url, **given)


def name(key):
    return key.public_key.decode()


def signed(by, subject, claims):
    """A token of NATS: what `by` says of `subject`."""
    head = {"typ": "JWT", "alg": "ed25519-nkey"}
    body = {"iss": name(by), "sub": name(subject), "name": "test", "iat": 0, "nats": claims}
    text = ".".join(coded(json.dumps(part).encode()) for part in (head, body))
    return f"{text}.{coded(by.sign(text.encode()))}"


def coded(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def credentials(path, token, user):
    """A file as nsc writes it."""
    path.write_text(
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n------END USER NKEY SEED------\n"
    )
    return str(path)
