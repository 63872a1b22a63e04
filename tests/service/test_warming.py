"""What is done before the service listens."""

import gc

import pytest

from panprivacy.service.incoming import warming
from panprivacy.sources import MEDIA_TYPES, read_body
from tests.service.asking import engine_in


@pytest.fixture
def engine(tmp_path):
    engine = engine_in(tmp_path)
    yield engine
    engine.store.close()


def test_each_format_has_been_read_and_nothing_counted(engine, monkeypatch):
    read = []

    def spied(kind, *given):
        batches = read_body(kind, *given)
        read.append((kind, sum(batch.num_rows for batch in batches)))
        return batches

    monkeypatch.setattr(warming, "read_body", spied)
    before = [stream.state() for stream in engine.streams.values()]
    frozen = gc.get_freeze_count()
    engine.warm_up()
    assert gc.get_freeze_count() > frozen
    assert [stream.state() for stream in engine.streams.values()] == before
    assert {kind for kind, rows in read if rows == 1} == {*MEDIA_TYPES.values()}
