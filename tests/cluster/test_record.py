"""What a cluster writes down before it asks its shards for anything."""

from __future__ import annotations

import threading

import pytest

from panprivacy.cluster.queues import Position
from panprivacy.cluster.record import ClusterRecord, Cut, RecordFile, StreamRecord
from panprivacy.errors import PlanError
from panprivacy.tables.slices import Slice

CUT = Cut(
    window=1.0,
    ends=2.0,
    until=2.0,
    number=3,
    last=True,
    next_start=2.0,
    complete=True,
    made=2.5,
    payer="00",
    through=[(7, 1), (7, 9)],
    held=[0, 1],
)


def record():
    stream = StreamRecord(window=1.0, ends=2.0, last_release=1.0, cuts=[CUT])
    return ClusterRecord(
        shards=2, key="00" * 16, streams={"visits": stream}, names={"visits": b"\xff"}
    )


@pytest.fixture
def file(tmp_path):
    made = RecordFile(tmp_path / "record.json", record())
    made.write()
    return made


def test_what_was_written_is_read_again(file):
    assert RecordFile.load(file._path).record == record()
    assert RecordFile.load(file._path.with_name("none")) is None


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"version": 2}', b"\xff", None])
def test_a_damaged_record_or_one_of_another_version_is_refused(file, damage):
    content = file._path.read_bytes()
    file._path.write_bytes(
        content.replace(b'"version": 2', b'"version": 1') if damage is None else damage
    )
    with pytest.raises(PlanError, match=r"record.json is damaged, or of another version: put it"):
        RecordFile.load(file._path)


def test_a_change_is_on_the_disk_when_it_is_over(file):
    with file.changing() as changed:
        changed.names = {}
        assert RecordFile.load(file._path).record.names
    assert not RecordFile.load(file._path).record.names


def test_a_change_that_fails_is_written_with_the_next_one(file):
    def failing():
        with file.changing() as changed:
            changed.streams["visits"].number = 5
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert RecordFile.load(file._path).record.streams["visits"].number == 1
    file.write()
    assert RecordFile.load(file._path).record.streams["visits"].number == 5


def test_what_was_not_changed_is_not_written(file):
    file._path.unlink()
    with file.reading():
        pass
    file.write()
    assert not file._path.exists()


def test_nobody_reads_while_it_is_changed(file):
    with file.changing():
        read = threading.Event()

        def work():
            with file.reading():
                read.set()

        thread = threading.Thread(target=work)
        thread.start()
        assert not read.wait(0.05)
    assert read.wait(10)
    thread.join()


def test_a_cut_has_a_name_and_a_position_of_each_shard():
    assert CUT.name == (1.0, 3)
    assert CUT.position(1) == Position(7, 9)


def test_the_router_is_that_of_the_key():
    made = record()
    assert made.router(numbered=False).slice(1) == Slice(1, 2, bytes(16))
    assert made.router(numbered=True).shards == 2
