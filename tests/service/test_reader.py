"""What reads a release store and cannot write to it."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from panprivacy.errors import PlanError
from panprivacy.service.outgoing.reader import ReleaseReader
from panprivacy.service.outgoing.records import Page, StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from tests.service.test_databases import as_nobody
from tests.service.test_store import ANSWER, ENTRY, LOST, answer_of, run_sql, window


@pytest.fixture
def store(url):
    with contextlib.closing(ReleaseStore(url)) as store:
        yield store


@pytest.fixture
def reader(store, url):
    with contextlib.closing(ReleaseReader(url)) as reader:
        yield reader


@pytest.mark.long
def test_one_thread_writes_and_others_read(store):
    numbers, done, torn = range(60), threading.Event(), []

    def read():
        seen = 0
        while not done.is_set():
            answers, lines = store.answers(), store.ledger()
            store.latest()
            complete = len(answers) % 3 == 0 and len(answers) <= 3 * len(lines)
            if not complete or len(answers) < seen:
                torn.append((len(answers), len(lines), seen))
            seen = len(answers)
        return seen

    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for number in numbers:
                store.spend([window(number)])
                store.publish([answer_of(number, statistic=name) for name in "abc"])
        finally:
            done.set()
        assert all(reader.result() <= 3 * len(numbers) for reader in readers)
    assert torn == []
    assert len(store.answers()) == 3 * len(numbers)


FIRST_VERSION = [
    "CREATE TABLE panprivacy_schema (version INTEGER, probe TEXT)",
    "INSERT INTO panprivacy_schema VALUES (1, NULL)",
    "CREATE TABLE panprivacy_ledger (stream TEXT, number INTEGER, epsilon TEXT)",
    "INSERT INTO panprivacy_ledger VALUES ('shop', 1, '1/3')",
    "CREATE TABLE panprivacy_answers (stream TEXT, statistic TEXT, kind TEXT, state INTEGER)",
    "INSERT INTO panprivacy_answers VALUES ('shop', 'incidence', 'exactly', 3)",
]
"""The store of before, whose answers had a kind and a state, as far as it matters."""


@pytest.mark.parametrize("kind", [ReleaseStore, ReleaseReader])
def test_a_store_of_the_first_version_is_refused_with_what_to_do_and_left_alone(url, kind):
    """An empty store in its place would know of nothing that was spent in the current windows."""
    run_sql(url, *FIRST_VERSION)
    with pytest.raises(PlanError) as refused:
        kind(url)
    assert str(refused.value) == (
        "the tables of the store have version 1, this program needs 6: use the program that made "
        "them, or from the end of the current windows on another database"
    )
    assert run_sql(url, "SELECT * FROM panprivacy_ledger") == [("shop", 1, "1/3")]
    assert run_sql(url, "SELECT kind, state FROM panprivacy_answers") == [("exactly", 3)]


def test_a_reader_sees_what_the_store_commits(store, reader):
    assert reader.answers() == reader.ledger() == []
    store.spend([ENTRY])
    store.publish([ANSWER, LOST])
    for asked in (ReleaseReader.answers, ReleaseReader.latest, ReleaseReader.ledger):
        assert asked(reader) == asked(store) != []
    assert reader.released(ENTRY.stream, ENTRY.start) == 1


@pytest.mark.parametrize("rows", [1, 2, 3, 1_000])
def test_pages_are_the_answers_of_the_moment_at_which_they_began(store, reader, monkeypatch, rows):
    monkeypatch.setattr("panprivacy.service.outgoing.reader._PAGE_ROWS", rows)
    made = [
        replace(ANSWER, group=f"{number}", released=ANSWER.released + timedelta(hours=number // 3))
        for number in range(11)
    ]
    assert [*reader.pages()] == [Page([], is_last=True)]
    store.spend([ENTRY])
    store.publish(made)
    middle = made[6].released
    for asked in ({}, {"since": middle}, {"before": middle}, {"stream": "other"}):
        for limit in range(1, 13):
            pages = [*reader.pages(**asked, limit=limit)]
            found = [answer for page in pages for answer in page.answers]
            assert found == reader.answers(**asked, limit=limit)
            assert max(len(page.answers) for page in pages) <= rows
            assert [page.is_last for page in pages] == [False] * (len(pages) - 1) + [True]
    pages = reader.pages()
    first = next(pages)
    store.publish([replace(ANSWER, group="later", released=made[4].released)])
    rest = [answer for page in pages for answer in page.answers]
    assert [*first.answers, *rest] == made


def test_a_reader_does_not_see_what_is_not_committed(file_store, tmp_path):
    reader = ReleaseReader(f"sqlite:///{tmp_path}/releases.db")
    with file_store._transaction(writes=True) as connection:
        connection.execute(text("UPDATE panprivacy_schema SET version = 7"))
        assert reader.answers() == []
        connection.rollback()


def test_a_reader_cannot_write(store, reader):
    assert not hasattr(reader, "spend")
    assert not hasattr(reader, "publish")
    for statement in (
        "UPDATE panprivacy_schema SET version = 7",
        "DELETE FROM panprivacy_ledger",
        "CREATE TABLE panprivacy_other (x INTEGER)",
    ):
        with pytest.raises(StoreError, match=r"read-?only"), reader._transaction() as connection:
            connection.execute(text(statement))


def test_a_reader_makes_neither_file_nor_table(url, tmp_path):
    before = set(tmp_path.iterdir())
    with pytest.raises(PlanError, match="mend the URL"):
        ReleaseReader(url)
    assert set(tmp_path.iterdir()) == before
    run_sql(url, "CREATE TABLE other (x INTEGER)")
    with pytest.raises(PlanError, match="`panprivacy serve` makes them"):
        ReleaseReader(url)
    with pytest.raises(Exception, match="panprivacy_schema"):
        run_sql(url, "SELECT * FROM panprivacy_schema")


def test_a_reader_refuses_tables_of_another_version(store, url):
    run_sql(url, "UPDATE panprivacy_schema SET version = 7")
    with pytest.raises(PlanError, match="version 7"):
        ReleaseReader(url)


def test_a_reader_leaves_no_file_beside_a_store_at_rest(tmp_path):
    """One of its own could not be written by the service, which would fail."""
    url = make_url("sqlite://").set(database=f"{tmp_path}/100% o#dd.db").render_as_string()
    with contextlib.closing(ReleaseStore(url)) as store:
        store.spend([ENTRY])
        store.publish([ANSWER])
    (file,) = tmp_path.iterdir()
    with contextlib.closing(ReleaseReader(url)) as reader:
        assert reader.answers() == [ANSWER]
        assert list(tmp_path.iterdir()) == [file]
        with contextlib.closing(ReleaseStore(url)) as store:  # the service starts again
            store.publish([LOST])
            assert reader.answers() == [ANSWER, LOST]
        assert reader.answers() == [ANSWER, LOST]
    assert list(tmp_path.iterdir()) == [file]


@pytest.fixture
def shown_folder():
    """A folder that everybody can look into, unlike those of pytest, and only its owner change."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("runs", [True, False])
def test_a_reader_needs_the_right_to_read_alone(shown_folder, runs):
    url = f"sqlite:///{shown_folder}/releases.db"
    with contextlib.closing(ReleaseStore(url)) as store:
        (shown_folder / "releases.db").chmod(0o644)
    with contextlib.closing(ReleaseStore(url)) as store:
        store.spend([ENTRY])
        store.publish([ANSWER])
        if not runs:
            store.close()
        with as_nobody(), contextlib.closing(ReleaseReader(url)) as reader:
            assert reader.answers() == [ANSWER]


def test_a_reader_without_the_right_to_read_is_told(file_store, tmp_path):
    with as_nobody():
        if os.access(tmp_path / "releases.db", os.R_OK, effective_ids=True):
            pytest.skip("only root can take a right away from somebody else")
        with pytest.raises(
            PlanError, match=r": permission denied; let this user read the file"
        ) as e:
            ReleaseReader(f"sqlite:///{tmp_path}/releases.db")
        assert "start it first" not in str(e.value)


def test_a_reader_of_a_store_that_is_not_there_is_told_what_makes_it(tmp_path):
    with pytest.raises(PlanError, match=r"unable to open database file; .* so start it first"):
        ReleaseReader(f"sqlite:///{tmp_path}/releases.db")
    (tmp_path / "releases.db").mkdir()
    with pytest.raises(PlanError, match="cannot be opened") as error:
        ReleaseReader(f"sqlite:///{tmp_path}/releases.db")
    assert "start it first" not in str(error.value)
