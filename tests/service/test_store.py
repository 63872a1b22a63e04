"""The store: what was spent is never forgotten, and nothing is published without it."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from functools import partial

import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

import panprivacy as pp
from panprivacy.errors import BudgetError, InputError, PanPrivacyError, PlanError
from panprivacy.service.outgoing.reader import ReleaseReader
from panprivacy.service.outgoing.records import (
    Announcement,
    Begun,
    Entry,
    Promised,
    Published,
    SketchRow,
    StoreError,
)
from panprivacy.service.outgoing.store import ReleaseStore

START = datetime(2026, 1, 5, 7, 30, 0, 123_456, tzinfo=UTC)
HOUR = timedelta(hours=1)
ENTRY = Entry("shop", START, START + HOUR, 1, Fraction(1, 3))
ANSWER = Published(
    stream="shop",
    start=START,
    end=START + HOUR,
    complete=True,
    number=1,
    statistic="visitors",
    question="distinct",
    argument=None,
    arguments="",
    group=None,
    value=1234.5,
    low=1_000.1,
    high=math.inf,
    estimate=1234.5,
    standard_error=120.25,
    bias=0.5,
    confidence=0.95,
    epsilon=0.1,
    note="more noise than signal",
    released=START + HOUR,
)
LOST = replace(
    ANSWER,
    statistic="viewers",
    value=None,
    low=None,
    high=None,
    estimate=None,
    standard_error=None,
    bias=None,
)
INCIDENCE = replace(
    ANSWER, group="ü", question="at_least", argument=3, arguments="state=3", high=2_000.0, end=None
)


@pytest.fixture
def store(url):
    with contextlib.closing(ReleaseStore(url)) as store:
        yield store


def run_sql(url, *statements):
    """Run statements beside the store; the rows of the last one."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        for statement in statements:
            result = connection.execute(text(statement))
        return result.all() if result.returns_rows else []


def window(number, entry=ENTRY):
    """The entry of a later window."""
    return replace(entry, start=START + number * HOUR, end=START + (number + 1) * HOUR)


def answer_of(number, **changes):
    """The answer of a later window, published when it ends."""
    start = START + number * HOUR
    window = {"start": start, "end": start + HOUR, "released": start + HOUR}
    return replace(ANSWER, value=float(number), **{**window, **changes})


def sketch_of(number, **changes):
    """A published table of a later window."""
    start = START + number * HOUR
    told = {"stream": "shop", "complete": True, "number": 1, "statistic": "overlap", "group": None}
    ends = {"start": start, "end": start + HOUR, "released": start + HOUR}
    return SketchRow(**{**told, **ends, "size": 3, "sketch": b"abc", **changes})


def fill(store, numbers, **changes):
    store.spend([window(number) for number in numbers])
    for number in numbers:
        store.publish([answer_of(number, **changes)])


def values(answers):
    return [answer.value for answer in answers]


# What comes back


def test_the_ledger_comes_back_exactly(store):
    tiny = replace(ENTRY, number=2, epsilon=Fraction(1, 3**80), end=None)
    other = replace(ENTRY, stream="app", number=0)
    store.spend([tiny, ENTRY, other])
    assert store.ledger() == [other, ENTRY, tiny]
    assert store.ledger("shop") == [ENTRY, tiny]
    assert store.ledger()[0].start.tzinfo is UTC


def promised(hour, unseen, delta=0):
    return Promised("shop", START + hour * HOUR, Fraction(1), Fraction(delta), Fraction(unseen))


def test_windows_are_counted_by_what_was_promised_to_their_users(store):
    """Two plans whose states cost the same may lose different amounts where nobody sees them."""
    both = promised(0, "1/9"), promised(1, "1/9")
    for promise in *both, promised(2, "1/4"), promised(3, 1, "0.1"):
        store.spend([replace(window(0), start=promise.start, number=0)], promise)
    store.announce(Announcement("shop", START + HOUR, 1, "0" * 64, START))
    store.spend([replace(window(4), number=n, epsilon=Fraction(1, 7)) for n in (0, 1, 2)])
    store.spend([replace(ENTRY, stream="app", number=0)])

    def of(unseen, delta=0):
        return pp.Guarantee(Fraction(1), delta=Fraction(delta), unseen=Fraction(unseen))

    found = store.begun("shop", START)
    assert sorted(found, key=lambda one: one.promise.unseen_loss.epsilon) == [
        Begun(2, 1, of("1/9")),
        Begun(1, 0, of("1/4")),
        Begun(1, 0, pp.Guarantee(Fraction(3, 7))),
        Begun(1, 0, of(1, "0.1")),
    ]
    assert store.begun("shop", START + HOUR)[0].windows == 1
    assert store.begun("shop", START + 9 * HOUR) == []
    assert len(store.ledger("shop", since=START + 3 * HOUR)) == 4


def test_a_promise_is_written_with_the_first_line_or_not_at_all(store):
    first = replace(window(0), number=0)
    store.spend([first], promised(0, "1/9"))
    with pytest.raises(pp.BudgetError):
        store.spend([first], promised(1, "1/9"))
    assert [one.windows for one in store.begun("shop", START)] == [1]


def test_windows_of_which_a_look_was_announced_are_found(store):
    lines = [Announcement("shop", START + hour * HOUR, number, f"{hour}{number}", START)
             for hour, number in ((0, 1), (0, 2), (3, 1))]  # fmt: skip
    for line in (*lines, replace(lines[0], stream="app")):
        store.announce(line)
    assert store.seen_since("shop", START) == {START, START + 3 * HOUR}
    assert store.seen_since("shop", START + HOUR) == {START + 3 * HOUR}
    assert store.seen_since("none", START) == set()


def test_answers_come_back_exactly(store):
    store.spend([ENTRY])
    store.publish([ANSWER, LOST, INCIDENCE])
    assert store.answers() == [ANSWER, LOST, INCIDENCE]
    assert store.latest() == [ANSWER, LOST, INCIDENCE]


def test_everything_is_there_when_the_store_is_opened_again(store, url):
    store.spend([ENTRY])
    store.publish([ANSWER])
    with contextlib.closing(ReleaseStore(url)) as again:
        assert (again.ledger(), again.answers()) == ([ENTRY], [ANSWER])


def test_times_are_the_same_moment_in_any_zone(store):
    east = START.astimezone(timezone(timedelta(hours=5)))
    store.spend([replace(ENTRY, start=east)])
    store.publish([ANSWER])
    assert store.ledger()[0].start == START
    assert (store.released("shop", START), store.released("shop", east)) == (1, 1)
    assert store.answers(since=east) == [ANSWER]


@pytest.fixture
def zone_of_the_program(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone_of_the_program")
def test_the_zone_of_the_program_does_not_matter(store):
    store.spend([ENTRY])
    assert store.ledger() == [ENTRY]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_the_zone_of_a_server_does_not_matter(postgres, zone):
    url = postgres.database()
    postgres.execute(f"ALTER DATABASE {make_url(url).database} SET timezone = '{zone}'")
    with contextlib.closing(ReleaseStore(url)) as store:
        store.spend([ENTRY])
        assert store.ledger() == [ENTRY]
        assert store.ledger()[0].start.tzinfo is UTC


def test_released_is_the_highest_number_of_that_window(store):
    assert store.released("shop", START) == 0
    store.spend([replace(ENTRY, number=number) for number in (0, 1, 2, 3)])
    assert store.released("shop", START) == 3
    assert store.released("app", START) == 0
    assert store.released("shop", START + timedelta(microseconds=1)) == 0


def test_times_without_a_zone_are_refused(store):
    naive = datetime(2026, 1, 5)  # noqa: DTZ001
    later = replace(ENTRY, number=2, start=naive)
    for act in (partial(store.spend, [ENTRY, later]), partial(store.answers, since=naive)):
        with pytest.raises(InputError, match="time zone"):
            act()
    assert store.ledger() == []


# The rule


def test_a_line_is_spent_once_and_with_it_all_or_none(store):
    store.spend([ENTRY])
    with pytest.raises(BudgetError, match="nothing was spent"):
        store.spend([replace(ENTRY, number=2), replace(ENTRY, epsilon=Fraction(1, 9))])
    assert store.ledger() == [ENTRY]


def test_a_line_is_not_spent_twice_in_one_call(store):
    with pytest.raises(BudgetError):
        store.spend([ENTRY, ENTRY])
    assert store.ledger() == []


@pytest.mark.parametrize(
    "unpaid",
    [{"stream": "app"}, {"start": START + timedelta(microseconds=1)}, {"number": 2}],
    ids=str,
)
def test_no_answer_without_its_line(store, unpaid):
    store.spend([ENTRY])
    with pytest.raises(PanPrivacyError, match="after it was spent; nothing was published"):
        store.publish([ANSWER, replace(ANSWER, **unpaid)])
    assert store.answers() == []


def test_the_line_of_the_state_pays_for_no_answer(store):
    store.spend([replace(ENTRY, number=0)])
    with pytest.raises(PanPrivacyError, match="nothing was published"):
        store.publish([replace(ANSWER, number=0)])


@pytest.mark.parametrize("answer", [ANSWER, LOST, INCIDENCE])
def test_an_answer_is_published_once(store, answer):
    store.spend([ENTRY])
    store.publish([answer])
    with pytest.raises(PanPrivacyError, match="published once"):
        store.publish([replace(answer, value=1.0)])
    assert store.answers() == [answer]


def test_nothing_is_spent_and_published_for_nothing(store):
    store.spend([])
    store.publish([])
    assert (store.ledger(), store.answers(), store.latest()) == ([], [], [])


def test_nobody_takes_a_line_back_that_was_published(store, url):
    """The rule is the database's own, not that of this program alone."""
    store.spend([ENTRY])
    store.publish([ANSWER])
    with pytest.raises(Exception, match=r"(?i)foreign key"):
        run_sql(
            url,
            "PRAGMA foreign_keys=ON" if url.startswith("sqlite") else "SELECT 1",
            "DELETE FROM panprivacy_ledger",
        )


# Reading


def test_answers_are_the_newest_oldest_first(store):
    fill(store, range(5))
    assert values(store.answers()) == [0, 1, 2, 3, 4]
    assert values(store.answers(limit=2)) == [3, 4]


def test_answers_are_found_by_stream_and_time(store):
    fill(store, range(5))
    store.spend([replace(ENTRY, stream="app")])
    store.publish([replace(ANSWER, stream="app", value=9.0)])
    ends = [START + number * HOUR for number in range(6)]
    assert values(store.answers(stream="app")) == [9]
    assert values(store.answers(stream="shop", limit=1)) == [4]
    assert values(store.answers(stream="nobody")) == []
    assert values(store.answers(stream="shop", since=ends[2], before=ends[4])) == [1, 2]


def test_pages_have_everything_once(store):
    numbers = range(7)
    store.spend([window(number) for number in numbers])
    for number in numbers:
        store.publish([answer_of(number, statistic=name) for name in "abc"])
    pages, before = [], None
    while page := store.answers(before=before, limit=4):
        pages.append(page)
        before = page[0].released
    assert [len(page) for page in pages] == [6, 6, 6, 3]
    assert [one for page in reversed(pages) for one in page] == store.answers()
    assert [one.statistic for one in store.answers()] == list("abc" * 7)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_is_positive(store, limit):
    with pytest.raises(InputError, match="limit"):
        store.answers(limit=limit)


def test_the_latest_is_one_answer_to_each_question(store):
    fill(store, range(3))
    asked = [{"question": "exactly", "argument": n, "arguments": f"state={n}"} for n in (1, 2)]
    fill_in = [{"group": "a"}, *asked]
    store.publish([answer_of(1, **changes) for changes in fill_in])
    store.publish([answer_of(2, **changes) for changes in fill_in[:2]])
    found = [(one.group, one.question, one.argument, one.value) for one in store.latest()]
    assert found == [
        (None, "distinct", None, 2),
        (None, "exactly", 2, 1),
        ("a", "distinct", None, 2),
        (None, "exactly", 1, 2),
    ]


# Crashes

CHILD = """
import os, signal, sys, time
from dataclasses import replace
from panprivacy.service.outgoing.store import ReleaseStore
from tests.service.test_store import ENTRY, answer_of, window

def tell(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

store = ReleaseStore(sys.argv[1])
"""
SPEND_AND_DIE = "store.spend([window(0), window(1)]); os.kill(os.getpid(), signal.SIGKILL)"
PUBLISH_ON = """
for number in range(100_000):
    store.spend([window(number)])
    tell("spent", number)
    store.publish([answer_of(number, statistic=name) for name in "abc"])
    tell("published", number)
"""


def child(url, program):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD + program, url],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.long
def test_what_was_spent_outlives_a_kill(url):
    with child(url, SPEND_AND_DIE) as killed:
        assert killed.wait(60) == -signal.SIGKILL
    with contextlib.closing(ReleaseStore(url)) as store:
        assert store.ledger() == [window(0), window(1)]
        with pytest.raises(BudgetError):
            store.spend([window(1)])


@pytest.mark.long
@pytest.mark.parametrize(
    "milliseconds", [0, 40, *(pytest.param(more, marks=pytest.mark.slow) for more in (7, 150))]
)
def test_a_kill_at_any_moment_loses_nothing_that_was_told(url, milliseconds):
    with child(url, PUBLISH_ON) as killed:
        told = [killed.stdout.readline()]
        time.sleep(milliseconds / 1_000)
        killed.kill()
        told += killed.stdout.readlines()
    told = [line.split() for line in told]
    with contextlib.closing(ReleaseStore(url)) as store:
        spent = [entry.start for entry in store.ledger()]
        published = [answer.start for answer in store.answers(limit=1_000_000)]
        store.spend([window(200_000)])
    windows = len(published) // 3
    assert len(spent) - windows in {0, 1}
    assert published == [start for start in spent[:windows] for _ in "abc"]
    for word, there in (("spent", len(spent)), ("published", windows)):
        assert there - sum(line[0] == word.encode() for line in told) in {0, 1}


def test_a_commit_of_sqlite_is_on_the_disk(file_store):
    """That an fsync reaches the disk cannot be tested by a kill, so this tests the setting."""
    with file_store._transaction(writes=True) as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


# A release and its line


PAID = replace(ENTRY, payer="this one")
RIVAL = replace(ENTRY, payer="another")


def test_a_release_and_its_line_are_written_together_and_once(store):
    state = replace(PAID, number=0)
    for value in (1.0, 2.0):  # a second attempt changes nothing
        assert store.settle([state, PAID], [replace(ANSWER, value=value)])
        assert store.ledger() == [state, PAID]
        assert values(store.answers()) == [1.0]
    assert store.has_answers("shop", START, 1)


def test_answers_may_follow_their_line_and_a_line_that_was_spent_before(store):
    store.spend([PAID])
    for answers in ([], [ANSWER], []):
        assert store.settle([PAID], answers)
        assert store.has_answers("shop", START, 1) == (store.answers() != [])
    assert store.answers() == [ANSWER]
    assert not store.has_answers("shop", START, 2)


def test_where_another_has_the_line_nothing_is_written(store):
    store.settle([RIVAL], [])
    later = replace(PAID, number=2)
    assert not store.settle([later, PAID], [ANSWER])
    assert store.ledger() == [RIVAL]
    assert store.answers() == []


def test_a_promise_is_written_with_the_first_line(store):
    store.settle([replace(PAID, number=0), PAID], [ANSWER], promised(0, "1/9"))
    (found,) = store.begun("shop", START)
    assert found.promise.unseen_loss.epsilon == Fraction(1, 9)


def test_answers_that_the_store_refuses_take_their_line_with_them(store):
    for answers in ([ANSWER, ANSWER], [answer_of(5)]):
        with pytest.raises(PanPrivacyError, match="nothing was written"):
            store.settle([PAID], answers)
    assert store.ledger() == []
    assert store.settle([PAID], [ANSWER])


def test_of_several_that_settle_one_line_at_once_one_has_it_and_all_know(store):
    start = threading.Barrier(4)

    def settle(line):
        start.wait()
        return store.settle([line], [replace(ANSWER, start=line.start)])

    with ThreadPoolExecutor(4) as pool:
        for number in range(10):
            rivals = [replace(window(number), payer=f"{rival}") for rival in range(2)]
            outcomes = list(pool.map(settle, [*rivals, *rivals]))
            assert outcomes[:2] == outcomes[2:]
            assert sum(outcomes) == 2
    assert len(store.ledger()) == len(store.answers()) == 10


# Threads


def test_threads_do_not_spend_the_same_line(store):
    start = threading.Barrier(4)

    def spend(number):
        start.wait()
        try:
            store.spend([window(number)])
        except BudgetError:
            return 0
        return 1

    with ThreadPoolExecutor(4) as pool:
        for number in range(10):
            assert sum(pool.map(spend, [number] * 4)) == 1
    assert len(store.ledger()) == 10


def open_at_once(url):
    start = threading.Barrier(4)

    def open_one(_):
        start.wait()
        with contextlib.closing(ReleaseStore(url)) as store:
            return store.ledger()

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(open_one, range(4)))


def test_programs_may_open_a_new_store_at_once(url):
    assert open_at_once(url) == [[]] * 4


# Databases that cannot be used


def test_a_store_of_another_version_is_refused_by_name(store, url):
    store.spend([ENTRY])
    run_sql(url, "UPDATE panprivacy_schema SET version = 7")
    with pytest.raises(PlanError, match=r"version 7, this program needs 6: .*another database"):
        ReleaseStore(url)
    run_sql(url, "UPDATE panprivacy_schema SET version = 6")
    with contextlib.closing(ReleaseStore(url)) as again:
        assert again.ledger() == [ENTRY]


def test_a_store_without_estimates_gets_the_columns_and_keeps_its_answers(store, url):
    store.spend([ENTRY])
    store.publish([ANSWER])
    store.close()
    for name in ("estimate", "standard_error", "bias"):
        run_sql(url, f"ALTER TABLE panprivacy_answers DROP COLUMN {name}")
    run_sql(url, "DROP TABLE panprivacy_sketches", "UPDATE panprivacy_schema SET version = 4")
    with pytest.raises(PlanError, match=r"version 4, this program needs 6: [^\n]*$"):
        ReleaseReader(url)
    later = replace(ANSWER, number=2)
    with contextlib.closing(ReleaseStore(url)) as again:
        assert not again.is_new
        again.spend([replace(ENTRY, number=2)])
        again.publish([later])
    with contextlib.closing(ReleaseReader(url)) as reader:
        old = replace(ANSWER, estimate=None, standard_error=None, bias=None)
        assert reader.answers() == [old, later]


def test_a_store_without_published_tables_gets_a_place_for_them(store, url):
    store.spend([ENTRY])
    store.publish([ANSWER])
    store.close()
    run_sql(url, "DROP TABLE panprivacy_sketches", "UPDATE panprivacy_schema SET version = 5")
    with pytest.raises(PlanError, match="version 5, this program needs 6"):
        ReleaseReader(url)
    with contextlib.closing(ReleaseStore(url)) as again:
        assert not again.is_new
        assert again.settle([window(1)], [answer_of(1)], sketches=[sketch_of(1)])
        assert again.answers() == [ANSWER, answer_of(1)]
        assert [one.size for one in again.sketches()] == [3]


def test_a_release_has_its_tables_once_with_its_answers(store):
    entry, sketches = window(1), [sketch_of(1), sketch_of(1, group="b")]
    for _ in range(2):
        assert store.settle([entry], [answer_of(1)], sketches=sketches)
    assert not store.settle(
        [replace(entry, payer="another")], [answer_of(1)], sketches=[sketch_of(1, group="c")]
    )
    found = store.sketches(stream="shop")
    assert [one.group for one in found] == [None, "b"]
    assert [store.sketch(one.stream, one.id) for one in found] == [b"abc", b"abc"]
    twice = [sketch_of(2), sketch_of(2)]
    with pytest.raises(PanPrivacyError, match="nothing was written"):
        store.settle([window(2)], [answer_of(2)], sketches=twice)
    assert [one.start for one in store.sketches()] == [START + HOUR] * 2
    assert store.ledger() == [entry]


def test_tables_are_listed_by_time_and_the_old_ones_deleted(store):
    for number in range(5):
        store.settle([window(number)], [answer_of(number)], sketches=[sketch_of(number)])
    every = store.sketches()
    assert [one.start for one in every] == [START + number * HOUR for number in range(5)]
    assert store.sketches(limit=2) == every[-2:]
    assert store.sketches(since=every[3].released) == every[3:]
    assert store.sketches(before=every[3].released) == every[:3]
    assert store.sketches(stream="app") == []
    store.discard_sketches("app", START + 9 * HOUR)
    assert store.sketches() == every
    store.discard_sketches("shop", every[2].end)
    assert store.sketches() == every[2:]
    assert store.sketch("shop", every[0].id) is None
    store.discard_sketches("shop", START + 9 * HOUR)
    store.settle([window(9)], [answer_of(9)], sketches=[sketch_of(9)])
    (newest,) = store.sketches()
    assert newest.id > every[-1].id, "the number of a table means one table for ever"
    assert len(store.answers()) == 6, "answers are kept"


def test_a_store_of_another_version_is_left_as_it_was(url):
    run_sql(
        url,
        "CREATE TABLE panprivacy_schema (version INTEGER)",
        "INSERT INTO panprivacy_schema VALUES (7)",
    )
    with pytest.raises(PlanError, match="version 7"):
        ReleaseStore(url)
    with pytest.raises(Exception, match="panprivacy_ledger"):
        run_sql(url, "SELECT * FROM panprivacy_ledger")


def test_answers_of_one_question_that_differ_in_any_argument_are_told_apart(store):
    """Two moments of one tau, and one statistic under two names."""
    store.spend([ENTRY])
    moments = [
        replace(ANSWER, question="cropped_moment", argument=10, arguments=f"tau=10,power={power}")
        for power in (1, 2)
    ]
    labelled = [replace(ANSWER, statistic=name) for name in ("early", "late")]
    store.publish([*moments, *labelled])
    assert store.answers() == store.latest() == [*moments, *labelled]
    with pytest.raises(PanPrivacyError, match="published once"):
        store.publish([moments[1]])


def test_a_database_that_is_not_there_is_named(postgres):
    url = make_url(postgres.database()).set(database="nothing")
    with pytest.raises(PlanError, match=r'///nothing cannot be opened: .*"nothing" does not exist'):
        ReleaseStore(url.render_as_string())


def test_a_new_file_is_its_owners_alone(tmp_path):
    before = os.umask(0)
    try:
        with contextlib.closing(ReleaseStore(f"sqlite:///{tmp_path}/releases.db")) as store:
            store.spend([ENTRY])
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    names = ["releases.db", "releases.db-shm", "releases.db-wal"]
    assert modes == dict.fromkeys(names, 0o600)


# Databases that are gone


def moved(path):
    path.rename(path.with_name("moved"))
    return lambda: path.with_name("moved").replace(path)


def replaced(path):
    path.with_name("copy").write_bytes(path.read_bytes())
    path.rename(path.with_name("moved"))
    path.with_name("copy").replace(path)
    return lambda: path.with_name("moved").replace(path)


def cut(path):
    whole = path.read_bytes()
    os.truncate(path, len(whole) - 1)

    def mend():
        with path.open("r+b") as file:
            file.write(whole)

    return mend


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("releases.db", moved),
        ("releases.db", replaced),
        ("releases.db", cut),
        ("releases.db-wal", moved),
        ("releases.db-wal", replaced),
    ],
)
def test_a_file_that_is_gone_is_noticed_and_works_when_it_is_back(file_store, tmp_path, name, harm):
    """SQLite itself goes on writing to what it has open, which nobody finds again."""
    file_store.spend([ENTRY])
    mend = harm(tmp_path / name)
    following = window(2)
    for work in (
        lambda: file_store.spend([following]),
        lambda: file_store.publish([ANSWER]),
        lambda: file_store.released("shop", START),
        file_store.check,
        *([file_store.check_file] if name == "releases.db" else []),
    ):
        with pytest.raises(StoreError, match=r"deleted, cut short or replaced .*: put it back"):
            work()
    mend()
    file_store.check_file()
    file_store.spend([following])
    assert file_store.ledger() == [ENTRY, following]


def test_another_store_in_the_place_of_the_one_that_was_opened_is_not_paid_from(store, url):
    """As when a server of PostgreSQL is set up anew while the service runs."""
    store.spend([ENTRY])
    run_sql(url, "UPDATE panprivacy_schema SET identity = 'another'")
    for work in (lambda: store.spend([window(2)]), lambda: store.publish([ANSWER])):
        with pytest.raises(StoreError, match=r"another release store .*: put it back"):
            work()
    assert store.ledger() == [ENTRY]
    assert store.answers() == []


def test_a_store_has_a_number_of_its_own_for_as_long_as_it_lives(store, url, tmp_path):
    assert store.is_new
    with contextlib.closing(ReleaseStore(url)) as again:
        assert not again.is_new
        assert again.identity == store.identity
    with contextlib.closing(ReleaseStore(f"sqlite:///{tmp_path}/other.db")) as other:
        assert other.identity != store.identity
    assert len(store.identity) == 16


# Databases that fail


def test_a_healthy_store_is_left_as_it_was(store, url):
    store.spend([ENTRY])
    store.publish([ANSWER])
    for _ in range(3):
        store.check()
    assert (store.ledger(), store.answers()) == ([ENTRY], [ANSWER])
    assert run_sql(url, "SELECT version, probe FROM panprivacy_schema") == [(6, None)]


def test_a_full_disk_spends_nothing_and_is_noticed(file_store):
    wide = [replace(window(number), stream="s" * 500) for number in range(100)]
    file_store.spend([ENTRY])
    limit = {"pages": 1}

    @event.listens_for(file_store._engine, "checkout")
    def fill_the_disk(connection, *_):
        connection.execute(f"PRAGMA max_page_count={limit['pages']}").close()

    for act in (lambda: file_store.spend(wide), file_store.check):
        with pytest.raises(StoreError, match=r"^the database fails: database or disk is full$"):
            act()
    assert file_store.ledger() == [ENTRY]
    limit["pages"] = 1_000_000
    file_store.check()
    file_store.spend(wide)
    assert len(file_store.ledger()) == 101


def test_a_file_that_becomes_unreadable_is_noticed(file_store, tmp_path):
    file_store.spend([ENTRY])
    file_store.close()
    (tmp_path / "releases.db").write_bytes(b"damaged " * 1_000)
    for act in (file_store.check, file_store.ledger, file_store.latest, file_store.answers):
        with pytest.raises(StoreError, match="file is not a database"):
            act()


@pytest.mark.long
def test_a_server_that_stops_is_noticed_and_found_again(postgres):
    with contextlib.closing(ReleaseStore(postgres.url())) as store:
        store.spend([ENTRY])
        postgres.stop()
        try:
            later = [window(1)]
            for act in (lambda: store.spend(later), store.check, store.ledger, store.latest):
                with pytest.raises(StoreError, match=r"^the database fails: .*No such file"):
                    act()
        finally:
            postgres.start()
        store.check()
        assert store.ledger() == [ENTRY]
        store.spend(later)
        assert store.ledger() == [ENTRY, *later]


def test_a_connection_that_breaks_is_replaced(postgres):
    url = postgres.database()
    name = make_url(url).database
    end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    with contextlib.closing(ReleaseStore(url)) as store:
        breaks = [end]

        @event.listens_for(store._engine, "begin")
        def break_one(_connection):
            while breaks:
                postgres.execute(breaks.pop())

        with pytest.raises(StoreError, match=r"^the database fails: "):
            store.spend([ENTRY])
        store.spend([ENTRY])
        postgres.execute(end)
        assert store.ledger() == [ENTRY]


def test_a_failure_does_not_show_the_statement_or_what_was_in_it(store, url):
    names = ("sketches", "answers", "ledger")
    run_sql(url, *(f"DROP TABLE panprivacy_{name}" for name in names))
    with pytest.raises(StoreError) as failed:
        store.spend([replace(ENTRY, stream="hunter2")])
    (line,) = str(failed.value).splitlines()
    assert "panprivacy_ledger" in line
    assert "hunter2" not in line
    assert "INSERT" not in line


# Readers beside the service


@pytest.fixture
def reader(store, url):
    with contextlib.closing(ReleaseReader(url)) as reader:
        yield reader


def test_a_role_that_may_only_select_can_read(postgres):
    url = postgres.url()
    schema = make_url(url).query["options"].rpartition("=")[2]
    with contextlib.closing(ReleaseStore(url)) as store:
        store.spend([ENTRY])
    role = f"{schema}_reader"
    postgres.execute(f"CREATE ROLE {role} LOGIN", f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    theirs = make_url(url).set(username=role).render_as_string()
    with pytest.raises(PlanError, match=r"permission denied for table panprivacy_schema; .*mend"):
        ReleaseReader(theirs)
    postgres.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
    with contextlib.closing(ReleaseReader(theirs)) as reader:
        assert reader.ledger() == [ENTRY]
