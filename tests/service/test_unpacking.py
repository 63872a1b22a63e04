"""Compressed bodies count as what is in them, and are bounded by that."""

from __future__ import annotations

import asyncio
import gzip

import pyarrow as pa
import pytest

from panprivacy.service.incoming.problems import Problem
from panprivacy.service.incoming.unpacking import unpacked
from tests.service.asking import NUMBERS, client_in, refused
from tests.service.test_app import taken

PACK = {"gzip": gzip.compress, "zstd": lambda data: pa.compress(data, "zstd", asbytes=True)}
LINES = b"user\n" + b"".join(b"u%d\n" % n for n in range(20_000))


async def joined(encoding, body):
    return b"".join([piece async for piece in unpacked(encoding, bytearray(body))])


@pytest.mark.parametrize("encoding", PACK)
@pytest.mark.parametrize("data", [b"", b"a", bytes(3 << 20), LINES])
def test_the_pieces_are_what_was_packed(encoding, data):
    pack = PACK[encoding]
    assert asyncio.run(joined(encoding, pack(data))) == data
    assert asyncio.run(joined(encoding, pack(data) + pack(data))) == 2 * data


@pytest.mark.parametrize("encoding", PACK)
@pytest.mark.parametrize("body", [b"user\nada\n", "cut"])
def test_what_is_damaged_is_refused(encoding, body):
    body = PACK[encoding](LINES)[:-30] if body == "cut" else body
    with pytest.raises(Problem, match=f"no {encoding}, or it is damaged"):
        asyncio.run(joined(encoding, body))


@pytest.mark.parametrize("encoding", PACK)
def test_a_compressed_batch_is_counted(shared, monkeypatch, encoding):
    seen = taken(shared, monkeypatch)
    before = shared.state
    sent = {"Content-Encoding": encoding, "Idempotency-Key": f"packed {encoding}".replace(" ", "-")}
    for _ in range(2):
        answer = shared.send(PACK[encoding](NUMBERS), **sent)
        assert answer.status_code == 202
    assert len(seen) > 0
    assert shared.state != before
    damaged = shared.send(PACK[encoding](NUMBERS)[:-5], **{"Content-Encoding": encoding})
    assert "damaged" in refused(damaged, 400)


@pytest.mark.parametrize("encoding", PACK)
def test_what_unpacks_to_too_much_is_refused(tmp_path, encoding):
    with client_in(tmp_path, "max_body_bytes = 1000\nmax_waiting_bytes = 9000") as client:
        before = client.state
        headers = {"Content-Encoding": encoding}
        answer = client.send(PACK[encoding](bytes(1_000_008)), **headers)
        assert refused(answer, 413) == "a body may have 1,000 bytes; send it in parts"
        assert client.state == before
        assert client.send(PACK[encoding](bytes(800)), **headers).status_code == 202
