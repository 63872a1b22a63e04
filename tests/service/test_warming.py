"""What is done before the service listens."""

import gc
from fractions import Fraction

import pytest

from panprivacy.intake.programs.intake import Intake
from panprivacy.intake.sources import MEDIA_TYPES, BodyReader
from panprivacy.service.config.stream import IdKind, StreamConfig
from panprivacy.service.incoming import warming
from tests.service.asking import engine_in


@pytest.fixture
def engine(tmp_path):
    engine = engine_in(tmp_path)
    yield engine
    engine.store.close()


def test_each_format_has_been_read_and_nothing_counted(engine, monkeypatch):
    read, plain = [], BodyReader.read

    def spied(reader, kind, *given):
        batches = plain(reader, kind, *given)
        read.append((kind, sum(batch.num_rows for batch in batches)))
        return batches

    monkeypatch.setattr(BodyReader, "read", spied)
    before = [stream.state() for stream in engine.streams.values()]
    frozen = gc.get_freeze_count()
    engine.warm_up()
    assert gc.get_freeze_count() > frozen
    assert gc.get_threshold()[2] == 20  # all objects of 1,800 connections take 0.1 s
    assert [stream.state() for stream in engine.streams.values()] == before
    assert {kind for kind, rows in read if rows == 1} == {*MEDIA_TYPES.values()}


def test_a_row_of_the_first_group_is_counted_and_the_others_are_not_made(monkeypatch):
    applied = []

    class Spied(Intake):
        def prepare(self, counting, *given):
            checked = super().prepare(counting, *given)
            applied.append(counting.groups)
            return checked

    monkeypatch.setattr(warming, "Intake", Spied)
    plain = {"stat": ({"name": "distinct", "expected": "10:1000"},), "window": "1d"}
    groups = {"by": "page", "groups": ("a", "b"), "per_user": 2}
    warming.warm_up(StreamConfig(epsilon=Fraction(2), ids=IdKind.text, **plain, **groups))
    assert applied == [("a",)] * (len({*MEDIA_TYPES.values()}) - 1)  # ids alone have no group
