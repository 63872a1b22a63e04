"""The store of a collector: one answer, whichever process is asked, and no other store for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
import threading
from fractions import Fraction
from pathlib import Path

import httpx
import pytest
from sqlalchemy import event, text
from sqlalchemy.engine.default import DefaultDialect

from panprivacy import SystemCoins
from panprivacy.audit.ideal import IdealEncryption
from panprivacy.devices.collector.app import CollectorApi, application
from panprivacy.devices.collector.store import ReportStore
from panprivacy.devices.federated.collector import ReplayError
from panprivacy.devices.federated.messages import Report
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.task import CountNonZero, Task
from panprivacy.errors import InputError, PanPrivacyError, PlanError
from panprivacy.service.config.tokens import Role, Token, Tokens, hash_of
from panprivacy.service.outgoing.records import StoreError

ONE = Promise(epsilon=Fraction(1))
TASK = Task.new(CountNonZero.planned(ONE), ONE, horizon=1, key=bytes(33))
TOKENS = Tokens(
    Token(name=role, may=(Role(role),), sha256=hash_of(f"pp_{role}"))
    for role in ("ingest", "release")
)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/reports.db"
    return request.getfixturevalue("postgres").url()


@pytest.fixture
def opened(tmp_path):
    """Opens stores, each with the mark of a name, and closes them."""
    with contextlib.ExitStack() as stack:

        def store(url, mark="mark", **given):
            made = ReportStore(url, TASK, tmp_path / mark, **given)
            stack.callback(made.end)
            return made

        yield store


def report(name=None, row=None):
    coins = SystemCoins()
    return Report(name or coins.key(16), row or coins.key(66))


def joined(reports):
    """An answer that says which reports it is made of."""
    return b"".join(sorted(reports))


def never(_):
    raise AssertionError("there is an answer already")


def kinds(outcomes):
    return [type(one) for one in outcomes]


# One answer


def test_an_answer_is_made_once_and_given_to_whoever_asks(url, opened):
    store, other = opened(url), opened(url, "other")
    first, second, late = report(), report(), report()
    assert store.add([first]) == [None]
    assert other.add([second]) == [None]
    answer = store.answer(joined)
    assert answer == joined([first.to_bytes(TASK), second.to_bytes(TASK)])
    assert other.closed
    for each in (other, store, opened(url), opened(url, "other")):
        assert each.answer(never) == answer
        assert kinds(each.add([late, first])) == [PanPrivacyError, ReplayError]
    store.end()


def test_an_answer_that_cannot_be_made_closes_nothing(url, opened):
    store = opened(url)

    def refuses(_):
        raise PanPrivacyError("wait for more")

    with pytest.raises(PanPrivacyError, match="wait for more"):
        store.answer(refuses)
    assert not store.closed
    assert store.add([report()]) == [None]


def test_a_report_counts_once_in_a_batch_and_over_processes(url, opened):
    store, other = opened(url), opened(url, "other")
    first, second = report(), report()
    assert kinds(store.add([first, first, second])) == [type(None), ReplayError, type(None)]
    stolen, renamed = report(first.name), report(row=first.row)
    assert kinds(other.add([first, stolen, renamed])) == [ReplayError, InputError, InputError]
    assert other.answer(joined) == joined([one.to_bytes(TASK) for one in (first, second)])


def test_processes_that_take_the_same_reports_at_once_take_each_once(url, opened):
    """Each waits for the other: none is told that the database fails."""
    reports = [report() for _ in range(30)]
    new, failed = [], []

    def take(store):
        try:
            for one in reports:
                new.extend(outcome is None for outcome in store.add([one]))
        except PanPrivacyError as error:
            failed.append(error)

    threads = [threading.Thread(target=take, args=[opened(url, str(i))]) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failed, sum(new), len(new)) == ([], 30, 90)


# Another store in its place


def removed(path):
    path.unlink()


def emptied(path):
    os.truncate(path, 0)


def replaced(path):
    path.unlink()
    other = ReportStore(f"sqlite:///{path}", TASK, path.with_name("of the other"))
    other.add([report()])
    other.end()


def older(path):
    shutil.copy(path.with_name("copy"), path)


@pytest.mark.parametrize("harm", [removed, emptied, replaced, older])
def test_a_collector_whose_store_is_gone_or_another_one_does_not_begin(tmp_path, opened, harm):
    path = tmp_path / "reports.db"
    url = f"sqlite:///{path}"
    store = opened(url)
    store.add([report()])
    store.end()
    shutil.copy(path, tmp_path / "copy")
    again = opened(url)
    answer = again.answer(joined)
    again.end()
    shutil.copy(path, tmp_path / "good")
    harm(path)
    found = path.read_bytes() if path.exists() else None
    mark = (tmp_path / "mark").read_bytes()
    with pytest.raises(PlanError, match=r"store .*: put it back .*--fresh") as refused:
        opened(url)
    assert "\n" not in str(refused.value)
    assert (path.read_bytes() if path.exists() else None) == found
    assert (tmp_path / "mark").read_bytes() == mark
    fresh = opened(url, fresh=True)
    assert not fresh.closed
    fresh.end()
    shutil.copy(tmp_path / "good", path)
    if harm is not older:  # which has the number of the good one
        with pytest.raises(PlanError, match="another one"):
            opened(url)
    assert opened(url, fresh=True).answer(never) == answer


@pytest.mark.parametrize("share", [0.2, 0.5, 0.99])
def test_a_store_that_was_cut_short_is_refused(tmp_path, opened, share):
    path = tmp_path / "reports.db"
    store = opened(f"sqlite:///{path}")
    store.add([report() for _ in range(100)])
    store.end()
    os.truncate(path, int(share * path.stat().st_size))
    with pytest.raises(PanPrivacyError, match=r"the database fails: |damaged or cut short: put it"):
        opened(f"sqlite:///{path}")


def test_a_server_without_the_tables_is_no_store_any_more(postgres, opened):
    url = postgres.url()
    opened(url)
    with pytest.raises(PlanError, match="not there any more: put it back"):
        opened(postgres.url())
    opened(url)


def test_a_damaged_mark_is_refused_in_one_line_and_kept(tmp_path, opened):
    url = f"sqlite:///{tmp_path}/reports.db"
    opened(url)
    (tmp_path / "mark").write_bytes(b'{"store": 7}')
    with pytest.raises(PlanError, match=r"mark is damaged.*--fresh"):
        opened(url)
    assert (tmp_path / "mark").read_bytes() == b'{"store": 7}'
    opened(url, fresh=True)
    opened(url)


def test_a_store_that_was_made_before_a_kill_is_taken_without_a_mark(tmp_path, opened):
    """Nothing had been taken then. A mark that is gone is made again."""
    url = f"sqlite:///{tmp_path}/reports.db"
    opened(url).add([report()])
    mark = (tmp_path / "mark").read_bytes()
    (tmp_path / "mark").unlink()
    opened(url)
    assert (tmp_path / "mark").read_bytes() == mark


HARMS = {
    "another store": "UPDATE panprivacy_task SET identity = digest",
    "no store": "DELETE FROM panprivacy_task",
    "an older copy": "UPDATE panprivacy_task SET answer = NULL",
}


@pytest.mark.parametrize("harm", HARMS)
def test_what_is_put_in_the_place_of_an_open_store_is_not_used(url, opened, harm):
    store = opened(url)
    store.add([report()])
    store.answer(joined)
    with store._engine.begin() as connection:
        connection.execute(text(HARMS[harm]))
    for work in (lambda: store.add([report()]), lambda: store.answer(never)):
        with pytest.raises(StoreError, match=r"in the place of the one .*: put it back"):
            work()


def test_a_file_that_is_deleted_while_it_is_open_is_noticed(tmp_path, opened):
    path = tmp_path / "reports.db"
    store = opened(f"sqlite:///{path}")
    store.add([report()])
    path.rename(tmp_path / "moved")
    for work in (lambda: store.add([report()]), lambda: store.answer(joined), lambda: store.closed):
        with pytest.raises(StoreError, match="deleted, cut short or replaced"):
            work()
    (tmp_path / "moved").rename(path)
    assert store.add([report()]) == [None]


def test_an_answer_does_not_leave_before_it_is_noted(tmp_path, opened, monkeypatch):
    """Else an older copy of the store could answer again, and nothing would tell."""
    store = opened(f"sqlite:///{tmp_path}/reports.db")
    store.add([report()])
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(StoreError, match="mark beside the task cannot be written: full"):
            store.answer(joined)
    assert store.closed
    assert store.answer(never)
    assert b"null" not in (tmp_path / "mark").read_bytes()


# Over HTTP


class Request:
    """A collector that answers in this process."""

    def __init__(self, store):
        self.key = IdealEncryption()
        self.task = TASK
        self.api = CollectorApi(b"", TASK, self.key, store, TOKENS)
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(application(self.api)), base_url="http://collector"
        )

    def report(self):
        row = self.key.encrypt([1], SystemCoins())
        return Report(SystemCoins().key(16), row).to_bytes(TASK)

    async def post(self, path, role, content=b""):
        headers = {"Authorization": f"Bearer pp_{role}"}
        return await self.client.post(path, headers=headers, content=content)


def test_reports_that_come_together_are_committed_together(url, opened):
    store = opened(url)
    asked, commits = Request(store), []
    event.listen(store._engine, "commit", commits.append)
    bodies = [asked.report() for _ in range(40)]

    async def send():
        sent = [asked.post("/v1/reports", "ingest", each) for each in [*bodies, *bodies, b"x"]]
        return [answer.status_code for answer in await asyncio.gather(*sent)]

    statuses = asyncio.run(send())
    assert statuses == [201] * 40 + [200] * 40 + [400]
    assert len(commits) <= 3


def test_what_the_database_says_reaches_no_client(tmp_path, opened, caplog):
    store = opened(f"sqlite:///{tmp_path}/reports.db")
    asked = Request(store)
    with contextlib.closing(sqlite3.connect(tmp_path / "reports.db")) as other:
        other.execute("DROP TABLE panprivacy_reports")

    async def ask():
        yield await asked.post("/v1/reports", "ingest", asked.report())
        yield await asked.post("/v1/release", "release")
        yield await asked.client.get("/healthz")

    async def all_of_them():
        return [answer async for answer in ask()]

    answers = asyncio.run(all_of_them())
    assert answers.pop().json()["status"] == "troubled"
    for answer in answers:
        assert answer.status_code == 503
        assert "panprivacy_reports" not in answer.text
        assert "the journal says why" in answer.json()["detail"]
    assert caplog.text.count("no such table: panprivacy_reports") == 2


def test_health_says_that_a_store_works_again_although_nobody_sends(tmp_path, opened):
    path = tmp_path / "reports.db"
    asked = Request(opened(f"sqlite:///{path}"))

    async def health():
        asked.api._status._task = None  # what is said may be a second old
        answer = await asked.client.get("/healthz")
        return answer.status_code, answer.json()["status"]

    async def lost_and_found():
        path.rename(tmp_path / "moved")
        sent = await asked.post("/v1/reports", "ingest", asked.report())
        assert sent.status_code == 503
        yield await health()
        (tmp_path / "moved").rename(path)
        yield await health()

    async def found():
        return [one async for one in lost_and_found()]

    assert asyncio.run(found()) == [(503, "troubled"), (200, "open")]


def test_a_store_that_takes_no_report_does_not_work_again(tmp_path, opened):
    store = opened(f"sqlite:///{tmp_path}/reports.db")
    store.check_writes()
    with contextlib.closing(sqlite3.connect(tmp_path / "reports.db")) as other:
        assert other.execute("SELECT count(*) FROM panprivacy_reports").fetchone() == (0,)
        # as on a disk that has room for less than a report
        full = "BEFORE INSERT ON panprivacy_reports BEGIN SELECT RAISE(FAIL, 'full'); END"
        other.execute(f"CREATE TRIGGER full {full}")
    with pytest.raises(StoreError, match="full"):
        store.check_writes()


def test_health_says_whether_the_store_works(tmp_path, opened):
    path = tmp_path / "reports.db"
    store = opened(f"sqlite:///{path}")

    def health():
        asked = Request(store)  # what is said may be a second old
        answer = asyncio.run(asked.client.get("/healthz"))
        return answer.status_code, answer.json()["status"]

    assert health() == (200, "open")
    path.rename(tmp_path / "moved")
    assert health() == (503, "troubled")
    (tmp_path / "moved").rename(path)
    store.add([report()])
    store.answer(joined)
    assert health() == (200, "closed")


def test_a_damaged_report_in_the_store_is_not_counted(tmp_path, opened):
    store = opened(f"sqlite:///{tmp_path}/reports.db")
    asked = Request(store)
    store.add([report()])  # its row is no ciphertext of this key
    answer = asyncio.run(asked.post("/v1/release", "release"))
    assert answer.status_code == 503
    assert "put the store back" in answer.json()["detail"]
    assert not store.closed


# A process that dies between two steps


class Died(BaseException):
    """The process ends here."""


@contextlib.contextmanager
def dying(monkeypatch, step, after):
    """Die at the first commit, fsync of the mark or replacement of it."""

    def at(real):
        def die(*given):
            if after:
                real(*given)
            raise Died

        return die

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", lambda *_, **__: None)  # a dead process tidies nothing
        if step == "commit":
            patched.setattr(DefaultDialect, "do_commit", at(DefaultDialect.do_commit))
        elif step == "fsync":
            patched.setattr(os, "fsync", at(os.fsync))
        else:
            patched.setattr(Path, "replace", at(Path.replace))
        with pytest.raises(Died):
            yield


STEPS = pytest.mark.parametrize("step", ["commit", "fsync", "replace"])
AFTER = pytest.mark.parametrize("after", [False, True])


@STEPS
@AFTER
def test_a_collector_that_dies_as_it_begins_begins_again(url, opened, monkeypatch, step, after):
    with dying(monkeypatch, step, after):
        opened(url)
    store = opened(url)
    assert store.add([report()]) == [None]
    assert opened(url).answer(joined) == store.answer(never)


@STEPS
@AFTER
def test_one_that_dies_as_it_answers_gives_the_answer_that_is_kept(
    url, opened, monkeypatch, step, after
):
    store = opened(url)
    store.add([report()])
    with dying(monkeypatch, step, after):
        store.answer(joined)
    store.end()
    again = opened(url)
    assert again.closed is (step != "commit" or after)
    late = report()
    taken = again.add([late]) == [None]
    assert taken is not again.closed
    answer = again.answer(never if again.closed else joined)
    assert (late.to_bytes(TASK) in answer) is taken
    assert opened(url).answer(never) == answer


@AFTER
def test_one_that_dies_as_it_takes_reports_has_all_or_none(url, opened, monkeypatch, after):
    store = opened(url)
    some = [report(), report()]
    with dying(monkeypatch, "commit", after):
        store.add(some)
    store.end()
    again = opened(url)
    assert kinds(again.add(some)) == [ReplayError if after else type(None)] * 2


def test_a_full_disk_takes_nothing_and_goes_on_when_there_is_room(tmp_path, opened):
    store = opened(f"sqlite:///{tmp_path}/reports.db")
    first, second = report(), [report() for _ in range(300)]
    store.add([first])
    with store._engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()

    def limit(most):
        with store._engine.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA max_page_count={most}")

    limit(pages)
    with pytest.raises(StoreError, match="full"):
        store.add(second)
    assert kinds(store.add([first])) == [ReplayError]
    limit(1 << 20)
    assert store.add(second) == [None] * 300
