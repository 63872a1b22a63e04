"""Compressed bodies count as what is in them, and are bounded by that."""

from __future__ import annotations

import asyncio
import gzip
import struct

import pyarrow as pa
import pytest

from panprivacy.service.incoming.problems import Problem
from panprivacy.service.incoming.unpacking import Unpacker
from tests.service.asking import NUMBERS, client_in, refused
from tests.service.test_app import taken

PACK = {"gzip": gzip.compress, "zstd": lambda data: pa.compress(data, "zstd", asbytes=True)}
LINES = b"user\n" + b"".join(b"u%d\n" % n for n in range(20_000))


NOTHING = {
    "members": ("gzip", gzip.compress(b"")),
    "frames": ("zstd", pa.compress(b"", "zstd", asbytes=True)),
    "skipped frames": ("zstd", struct.pack("<II", 0x184D2A50, 0)),
}
"""What is unpacked to nothing, by how it is repeated."""
SHORT = b"".join(gzip.compress(b"u%d\n" % n) for n in range(20_000))
"""A member for each line, which is longer than what it holds."""


@pytest.fixture
def unpacker():
    found = Unpacker()
    found.start()
    yield found
    found.stop()


async def joined(unpacker, encoding, body):
    return b"".join([piece async for piece in unpacker.unpacked(encoding, bytearray(body))])


def blocks_of_nothing(size):
    """A body of so many bytes, of beginnings of blocks: each takes long, and holds nothing."""
    front = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    lengths = {18: 1, 1: 2, 0: 2}  # of the codes of lengths
    order = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1)
    numbers = [(0, 1), (2, 2), (0, 5), (0, 5), (14, 4), *((lengths.get(n, 0), 3) for n in order)]
    numbers += [(0, 1), (127, 7), (0, 1), (107, 7), (3, 2), (3, 2), (0, 1)]
    bits = "".join(f"{number:0{width}b}"[::-1] for number, width in numbers) * 8
    block = int(bits[::-1], 2).to_bytes(len(bits) // 8, "little")
    return (front + block * (size // len(block) + 1))[:size]


@pytest.mark.parametrize("encoding", PACK)
@pytest.mark.parametrize("data", [b"", b"a", bytes(3 << 20), LINES])
def test_the_pieces_are_what_was_packed(unpacker, encoding, data):
    pack = PACK[encoding]
    assert asyncio.run(joined(unpacker, encoding, pack(data))) == data
    assert asyncio.run(joined(unpacker, encoding, pack(data) + pack(data))) == 2 * data


def test_a_sender_may_pack_each_line_by_itself(unpacker):
    lines = b"".join(b"u%d\n" % n for n in range(20_000))
    assert len(SHORT) > 3 * len(lines)
    assert asyncio.run(joined(unpacker, "gzip", SHORT)) == lines


@pytest.mark.parametrize("encoding", PACK)
@pytest.mark.parametrize("body", [b"user\nada\n", "cut"])
def test_what_is_damaged_is_refused(unpacker, encoding, body):
    body = PACK[encoding](LINES)[:-30] if body == "cut" else body
    with pytest.raises(Problem, match=f"no {encoding}, or it is damaged"):
        asyncio.run(joined(unpacker, encoding, body))


@pytest.mark.parametrize("encoding", PACK)
def test_no_part_of_a_body_counts(unpacker, encoding):
    whole = PACK[encoding](LINES[:3_000])
    for size in range(1, len(whole)):
        with pytest.raises(Problem, match="damaged"):
            asyncio.run(joined(unpacker, encoding, whole[:size]))


@pytest.mark.parametrize(("encoding", "part"), NOTHING.values(), ids=NOTHING)
def test_a_long_body_of_nothing_is_refused(unpacker, encoding, part):
    assert asyncio.run(joined(unpacker, encoding, 100 * part)) == b""
    with pytest.raises(Problem, match="damaged"):
        asyncio.run(joined(unpacker, encoding, ((1 << 20) // len(part)) * part))


def test_others_do_not_wait_for_a_body_that_takes_long(unpacker):
    async def turns():
        task = asyncio.ensure_future(joined(unpacker, "gzip", blocks_of_nothing(1 << 18)))
        count = 0
        while not task.done():
            count += 1
            await asyncio.sleep(0)
        with pytest.raises(Problem, match="damaged"):
            await task
        return count

    assert asyncio.run(turns()) > 100


def test_a_sender_waits_for_one_piece_of_another(unpacker):
    over = []

    async def send(token, pieces):
        body = bytearray(gzip.compress(bytes(pieces << 20)))
        async for _ in unpacker.unpacked("gzip", body, token):
            pass
        over.append(token)

    async def both():
        await asyncio.gather(*(send("much", 30) for _ in range(5)), send("little", 2))

    asyncio.run(both())
    assert over[0] == "little"


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
