"""What the broker tells those who send: keys, columns and shards, or that there are none."""

from __future__ import annotations

import msgspec
import pytest

from panprivacy.cluster.broker import BrokerError
from panprivacy.cluster.directory import COLUMNS, Directory
from panprivacy.cluster.envelopes import KEY_BYTES
from panprivacy.intake.sources.columns import Prefixes

GOOD = Directory(
    key=bytes(16),
    numbered=False,
    columns=("user", "group"),
    publics=(b"a" * KEY_BYTES, b"b" * KEY_BYTES),
    addresses=Prefixes(24, 56),
)


class Broker:
    """Keeps what it is told."""

    def __init__(self):
        self.kept = {}

    def tell(self, name, stream, content):
        self.kept[name, stream] = content

    def directory_entry(self, name, stream):
        return self.kept.get((name, stream), b"")


def put(directory):
    broker = Broker()
    directory.put_up(broker, "web", "visits")
    return broker


def test_it_is_the_same_for_those_who_read_it():
    found = Directory.read(put(GOOD), "web", "visits")
    assert found == GOOD
    assert found.router().shards == 2
    queues = found.queues("web", "visits")
    assert [one.shard for one in queues] == [0, 1]
    assert len({one.subject for one in queues}) == 2


def test_no_directory_is_no_cluster():
    broker = put(GOOD)
    broker.tell("web", "visits", b"")
    for stream in ("visits", "pages"):
        with pytest.raises(
            BrokerError, match=f"no directory of {stream}: no cluster web counts it"
        ):
            Directory.read(broker, "web", stream)


@pytest.mark.parametrize(
    "wrong",
    [
        {"publics": (b"a" * KEY_BYTES, b"b" * (KEY_BYTES - 1))},
        {"columns": ("delta",)},
        {"columns": ("group", "user")},
        {"columns": ("user", "other")},
        {"columns": ("user", "user")},
        {"key": b"short"},
        {"publics": ()},
    ],
)
def test_a_damaged_directory_is_refused(wrong):
    with pytest.raises(BrokerError, match="the directory of visits is damaged, or of another"):
        Directory.read(put(msgspec.structs.replace(GOOD, **wrong)), "web", "visits")


def test_what_is_no_directory_is_refused():
    broker = Broker()
    for content in (b"{}", b"spoilt", b"\xff"):
        broker.tell("web", "visits", content)
        with pytest.raises(BrokerError, match="is damaged"):
            Directory.read(broker, "web", "visits")


def test_columns_have_one_order():
    assert COLUMNS == ("user", "delta", "group", "side")
    for columns in (COLUMNS, ("user",), ("user", "side")):
        made = msgspec.structs.replace(GOOD, columns=columns)
        assert Directory.read(put(made), "web", "visits").columns == columns
