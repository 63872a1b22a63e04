"""The tables of a release store: exact numbers, times in UTC, and one version."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import pytest
from sqlalchemy import create_engine, insert, inspect, select, update
from sqlalchemy.exc import IntegrityError, StatementError

from panprivacy.errors import InputError, PlanError
from panprivacy.service.outgoing.tables import (
    IDENTITY_BYTES,
    LEDGER,
    SCHEMA,
    check_tables,
    create_tables,
)

START = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
def engine(tmp_path):
    made = create_engine(f"sqlite:///{tmp_path}/store.sqlite")
    yield made
    made.dispose()


def test_tables_are_made_once_and_have_an_identity(engine):
    with engine.begin() as connection:
        assert create_tables(connection)
        identity = connection.scalar(select(SCHEMA.c.identity))
        assert not create_tables(connection)
        assert connection.scalar(select(SCHEMA.c.identity)) == identity
        check_tables(connection)
    assert len(bytes.fromhex(identity)) == IDENTITY_BYTES == 16
    names = {name.removeprefix("panprivacy_") for name in inspect(engine).get_table_names()}
    assert names == {"schema", "ledger", "announcements", "answers", "promises", "sketches"}


def test_a_database_without_tables_or_of_another_version_is_refused(engine):
    with engine.begin() as connection:
        with pytest.raises(PlanError, match="this database has no tables of a release store"):
            check_tables(connection)
        create_tables(connection)
        connection.execute(update(SCHEMA).values(version=3))
        for call in (check_tables, create_tables):
            with pytest.raises(PlanError, match="have version 3, this program needs 6: use the"):
                call(connection)


def line(**changes):
    plain = {"stream": "s", "start": START, "number": 0, "end": None, "epsilon": Fraction(1, 3)}
    columns = {column.name for column in LEDGER.columns}
    return {name: one for name, one in {**plain, "payer": "", **changes}.items() if name in columns}


def test_epsilon_comes_back_exactly_and_times_in_utc(engine):
    east = timezone(timedelta(hours=2))
    with engine.begin() as connection:
        create_tables(connection)
        connection.execute(insert(LEDGER), line(start=START.astimezone(east)))
        row = connection.execute(select(LEDGER)).one()
    assert row.epsilon == Fraction(1, 3)
    assert row.start == START
    assert row.start.utcoffset() == timedelta(0)
    assert row.end is None


def test_a_time_without_a_zone_is_refused(engine):
    with engine.begin() as connection:
        create_tables(connection)
        with pytest.raises((InputError, StatementError), match="a time needs a time zone"):
            connection.execute(insert(LEDGER), line(start=START.replace(tzinfo=None)))


def test_a_line_is_paid_once(engine):
    with engine.begin() as connection:
        create_tables(connection)
        connection.execute(insert(LEDGER), line())
        connection.execute(insert(LEDGER), line(number=1))
        with pytest.raises(IntegrityError):
            connection.execute(insert(LEDGER), line())
