"""Secrets of each of two servers."""

from __future__ import annotations

import pytest
from pyrage.x25519 import Identity

from panprivacy.devices.aggregator.secrets import HelperSecrets, LeaderSecrets, verify_key_of
from panprivacy.errors import InputError
from tests.commands import run_command


def test_secrets_are_not_shown():
    for made in (
        LeaderSecrets(secret="aa", tokens={}, verify_key="bb", peer="cc"),
        HelperSecrets(secret="aa", tokens={}, verify_key="bb"),
    ):
        assert repr(made) == f"{type(made).__name__}(...)"


@pytest.mark.parametrize("peer", ["", "a b", "a\tb", "a\r\nX: b", "a\x00", "\x7f", "é", "a "])
def test_a_token_that_http_cannot_send_is_refused(peer):
    secrets = LeaderSecrets(secret="", tokens={}, verify_key="", peer=peer)
    with pytest.raises(InputError, match="one word of visible ASCII characters") as error:
        _ = secrets.peer_token
    assert "a b" not in str(error.value)
    assert "\n" not in str(error.value)
    assert LeaderSecrets(secret="", tokens={}, verify_key="", peer="pp_a-b").peer_token == "pp_a-b"


@pytest.mark.parametrize("key", ["", "00", "zz" * 32, "00" * 33])
def test_a_verification_key_that_is_none_is_refused(key):
    secrets = HelperSecrets(secret="", tokens={}, verify_key=key)
    with pytest.raises(InputError, match="verification key has 32 bytes"):
        verify_key_of(secrets)


def test_each_of_two_servers_has_secrets_that_it_alone_can_open(tmp_path):
    keys = {role: Identity.generate() for role in ("leader", "helper")}
    words = ["--kind", "count-nonzero", "--horizon", "1", "--epsilon", "1", "--servers", "2"]
    words += ["--signer", tmp_path / "signer"]
    words += [word for key in keys.values() for word in ("--recipient", str(key.to_public()))]
    assert run_command("task", tmp_path / "task.json", *words).code == 0
    for role, kind in (("leader", LeaderSecrets), ("helper", HelperSecrets)):
        for other, key in keys.items():
            (tmp_path / "key.txt").write_text(str(key))
            sealed = tmp_path / f"task.{role}.secret"
            if other == role:
                assert kind.load(sealed, tmp_path / "key.txt").verify_key
            else:
                with pytest.raises(InputError):
                    kind.load(sealed, tmp_path / "key.txt")
