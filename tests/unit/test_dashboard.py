"""What the dashboard makes of a release store: lines, bars and budgets; and who may see them."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import math
import re
import shutil
import sqlite3
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import httpx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.image import imread

from panprivacy.dashboard import charts, history
from panprivacy.dashboard.board import Board
from panprivacy.dashboard.guard import COOKIE, Guard, Readers, token_of
from panprivacy.dashboard.history import History
from panprivacy.dashboard.promise import StreamPromise
from panprivacy.dashboard.seized import answers_of, pictures
from panprivacy.dashboard.series import POINT, Bar, Point, SeriesName, by_group, histograms, thinned
from panprivacy.errors import PlanError
from panprivacy.explain.sentences import explained
from panprivacy.service.config.loading import load
from panprivacy.service.config.tokens import Tokens, hash_of
from panprivacy.service.outgoing import databases
from panprivacy.service.outgoing.records import Announcement, Entry, Published, StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.stream import Stream
from tests.commands import run_command

START = datetime(2026, 11, 2, tzinfo=UTC)
DAY = timedelta(days=1)
ROW = Published(
    stream="shop",
    start=START,
    end=START + DAY,
    complete=True,
    number=1,
    statistic="visits",
    question="exactly",
    argument=1,
    arguments="state=1",
    group=None,
    value=10.0,
    low=8.0,
    high=12.5,
    confidence=0.95,
    epsilon=0.5,
    note=None,
    released=START + DAY,
)
CONFIG = """
[[tokens]]
name = "board"
may = ["read"]
sha256 = "{board}"
[[tokens]]
name = "shop"
may = ["read"]
sha256 = "{shop}"
streams = ["shop"]
[[tokens]]
name = "web"
may = ["ingest"]
sha256 = "{web}"
[streams.shop]
epsilon = 8
window = "1d"
releases = 2
intrusions = 1
ids = "integers"
[[streams.shop.stat]]
name = "distinct"
expected = "10:10000"
[[streams.shop.stat]]
name = "incidence"
bound = 3
expected = 20_000
exactly = "1:3"
as = "visits"
[streams.calls]
epsilon = 1
window = "1m"
[[streams.calls.stat]]
name = "running-count"
horizon = 1000
"""
TOKENS = {name: f"pp_{name}" for name in ("board", "shop", "web")}
HASHES = {name: hash_of(token) for name, token in TOKENS.items()}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "panprivacy.toml"
    path.write_text(CONFIG.format(**HASHES))
    return path


@pytest.fixture
def store(tmp_path):
    with contextlib.closing(ReleaseStore(f"sqlite:///{tmp_path}/releases.sqlite")) as made:
        yield made


def published(store, rows):
    """Have rows in the store, each release paid for."""
    lines = {(row.stream, row.start, row.number): row for row in rows}
    store.spend(
        [
            Entry(row.stream, row.start, row.end, number, Fraction(1, 4))
            for row in lines.values()
            for number in ([0, 1] if row.number == 1 else [row.number])
        ]
    )
    store.publish(rows)


def days(count, first=0):
    """A row for each of some days."""
    return [
        replace(ROW, start=START + day * DAY, end=START + (day + 1) * DAY,
                released=START + (day + 1) * DAY, value=float(day))
        for day in range(first, first + count)
    ]  # fmt: skip


# Series


def point(value, low=None, high=None, **more):
    return Point(0.0, value, value if low is None else low, value if high is None else high, **more)


def line(*points):
    """Points as they are kept."""
    return np.array(list(points), POINT)


def test_a_thinned_line_hides_nothing_that_stuck_out():
    points = [point(float(value), value - 1, value + 1) for value in range(100_000)]
    points[777] = point(5.0, -1e9, math.inf)
    points[50_000] = points[-1] = point(math.nan)
    points[333] = points[333]._replace(complete=False)
    shown = thinned(line(*points))
    assert len(shown) <= 600
    assert sum(one.of for one in shown) == 100_000
    assert min(one.low for one in shown) == -1e9
    assert max(one.high for one in shown) == math.inf
    assert shown[-1].value == 99_998
    assert sum(not one.complete for one in shown) == 1
    assert not any(one.is_lost for one in shown)
    assert thinned(line(*points[:600])) == points[:600]


def test_a_line_of_lost_answers_is_a_gap():
    (only,) = thinned(line(*[point(math.nan)] * 1_000), most=1)
    assert only.is_lost
    assert only.of == 1_000


def test_bars_stand_in_the_order_of_their_numbers():
    rows = [replace(ROW, argument=n, arguments=f"state={n}") for n in (10, 2, 1)]
    pairs = [replace(ROW, question="cropped_sum", argument=n, arguments=f"tau={n}") for n in (1, 2)]
    ((asked, bars),) = histograms([*rows, *pairs]).items()
    assert str(asked) == "visits: exactly"
    assert [bar.label for bar in bars] == ["1", "2", "10"]


def test_groups_stand_from_the_largest_to_what_is_lost():
    rows = [replace(ROW, group=name, value=value) for name, value in
            (("a", 1.0), ("b", None), ("c", 3.0))]  # fmt: skip
    ((_, bars),) = by_group(rows).items()
    assert [bar.label for bar in bars] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (ROW, "visits: exactly 1"),
        (replace(ROW, question="distinct", arguments="", statistic="distinct"), "distinct"),
        (replace(ROW, question="running_count", arguments="", statistic="running-count"),
         "running count"),
        (replace(ROW, question="cropped_moment", arguments="tau=10,power=2"),
         "visits: cropped moment 10**2"),
    ],
)  # fmt: skip
def test_a_question_is_told_in_words(row, words):
    assert str(SeriesName.of(row)) == words


# Charts

NUMBERS = st.floats() | st.just(math.inf) | st.just(-math.inf) | st.just(math.nan)
POINTS = st.builds(Point, st.floats(0, 4e9), NUMBERS, NUMBERS, NUMBERS, st.booleans(), st.just(1))


@settings(max_examples=15)
@given(st.lists(POINTS, max_size=8))
def test_whatever_ends_an_interval_has_it_is_drawn(points):
    bars = [Bar(f'<img src=x onerror="{n}">', one) for n, one in enumerate(points)]
    drawn = [
        charts.over_time(line(*points), "users", "Europe/Paris"),
        charts.by_number(bars, "users"),
        charts.by_label(bars, "users"),
    ]
    for options in drawn:
        json.dumps(options, allow_nan=False)
        for key, value in keys(options):
            assert "onerror" not in key
            if key.startswith(":"):  # a function that the browser runs
                assert "onerror" not in value


def keys(tree):
    """All keys of dictionaries, with their values."""
    for key, value in tree.items() if isinstance(tree, dict) else ():
        yield key, value
        yield from keys(value)
    for one in tree if isinstance(tree, list) else ():
        yield from keys(one)


def test_a_band_reaches_from_the_lower_end_to_the_upper_one():
    points = [point(10.0, 8.0, 13.0), point(4.0, 3.0, math.inf), point(math.nan)]
    low, width, answer, parts = charts.over_time(line(*points), "users", "UTC")["series"]
    assert [one for _, one in low["data"]] == [8.0, 3.0, None]
    first, second, third = (one for _, one in width["data"])
    assert first == 5.0
    assert second > 10  # an interval without an end goes beyond everything else
    assert third is None
    assert answer["data"][1][3] is None
    assert parts["data"] == []


def test_the_axis_shows_the_clock_of_the_zone():
    summer = datetime(2026, 7, 1, 22, tzinfo=UTC).timestamp()  # midnight in Paris
    series = charts.over_time(line(Point(summer, 1, 1, 1)), "users", "Europe/Paris")["series"]
    shown = datetime.fromtimestamp(series[2]["data"][0][0] / 1_000, UTC)
    assert shown == datetime(2026, 7, 2, tzinfo=UTC)


# History


def test_it_follows_what_is_published(store):
    followed = History(store, "shop")
    assert not followed.follow()
    published(store, days(2))
    assert followed.follow()
    assert not followed.follow()
    published(store, days(1, first=2))
    assert followed.follow()
    (points,) = followed.known.points.values()
    assert points["value"].tolist() == [0, 1, 2]
    assert followed.known.newest[0].value == 2


def test_what_is_old_comes_page_by_page(store, monkeypatch):
    monkeypatch.setattr(history, "_PAGE", 3)
    monkeypatch.setattr(history, "MOST_ANSWERS", 9)
    published(store, days(20))
    followed = History(store, "shop")
    counts = []
    for _ in range(4):
        followed.follow()
        counts.append(followed.known.answers)
    assert counts == [3, 6, 9, 9]
    (points,) = followed.known.points.values()
    assert points["value"].tolist() == list(range(11, 20))


def test_it_begins_anew_where_more_came_than_a_page(store, monkeypatch):
    monkeypatch.setattr(history, "_PAGE", 3)
    published(store, days(2))
    followed = History(store, "shop")
    followed.follow()
    published(store, days(8, first=2))
    followed.follow()
    (points,) = followed.known.points.values()
    assert points["value"].tolist() == [7, 8, 9]


def test_another_store_in_the_place_of_the_first_is_read_from_its_beginning(tmp_path, store):
    other = tmp_path / "other"
    other.mkdir()
    published(store, days(3))
    followed = History(store, "shop")
    followed.follow()
    with contextlib.closing(ReleaseStore(f"sqlite:///{other}/releases.sqlite")) as second:
        published(second, days(1, first=9))
        followed._reader = second
        assert followed.follow()
        (points,) = followed.known.points.values()
        assert points["value"].tolist() == [9]


# Promises


def test_a_window_has_spent_what_its_ledger_has(store, file):
    promise = StreamPromise("shop", load(file).streams["shop"])
    now = START + DAY / 2
    before = promise.spent(store, now, 0)
    current = promise._windowed.current
    assert before.epsilon == current.state_epsilon
    assert (before.releases.made, before.releases.planned) == (0, 2)
    published(store, [ROW, replace(ROW, number=2)])
    store.announce(Announcement("shop", START, 1, "0" * 64, now))
    spent = promise.spent(store, now, 2)
    assert spent.epsilon == current.state_epsilon + current.of_releases(2)
    assert spent.epsilon <= promise.guarantee.epsilon
    assert (spent.releases.made, spent.announced.made, spent.begun) == (2, 1, 1)
    assert spent.ends == START + DAY
    assert promise.spent(store, now + DAY, 2).releases.made == 0


def test_a_window_that_was_begun_twice_says_so(store, file):
    promise = StreamPromise("shop", load(file).streams["shop"])
    again = START + DAY / 4
    published(store, [replace(ROW, number=1), replace(ROW, start=again)])
    assert promise.spent(store, START + DAY / 2, 1).begun == 2


def test_a_year_costs_what_windows_cost(store, file):
    promise = StreamPromise("shop", load(file).streams["shop"])
    windowed = promise._windowed
    own = windowed.current.state_epsilon
    lines = [
        Entry("shop", START + day * DAY, START + (day + 1) * DAY, number, epsilon)
        for day in range(4)
        for number, epsilon in ((0, own), (1, Fraction(1, 8)))
    ]
    old = START - 400 * DAY
    store.spend([*lines, Entry("shop", old, old + DAY, 0, own)])
    assert promise.year(store, START + 3 * DAY).windows == 4
    year = promise.year(store, START + 4 * DAY)  # whose window is open, and not in the ledger yet
    assert (year.windows, year.all_windows) == (5, 365)
    assert year.loss == windowed.loss(5)
    for number in (1, 2):
        store.announce(Announcement("shop", START + DAY, number, f"{number:064}", START))
    seen = promise.year(store, START + 4 * DAY)
    assert seen.announced == 1
    assert seen.loss == windowed.loss(5, seen=2)  # that one, and one that nobody announced
    assert year.whole_loss == windowed.loss(365)
    silent = START - 7 * DAY  # without an answer
    store.announce(Announcement("shop", silent, 1, "f" * 64, START))
    assert promise.year(store, START + 4 * DAY).loss == windowed.loss(6, seen=3)
    other = START + 5 * DAY
    store.spend([Entry("shop", other, other + DAY, n, Fraction(1, 3)) for n in (0, 1, 2)])
    changed = promise.year(store, START + 6 * DAY)
    assert changed.windows == 7
    # of what was planned otherwise, all that the ledger has
    assert changed.loss == windowed.loss(6, seen=3) + 1


def test_what_goes_on_counts_the_answers_of_its_life(store, file):
    promise = StreamPromise("calls", load(file).streams["calls"])
    assert promise.lasting
    spent = promise.spent(store, START, 77)
    assert spent.releases.made == 77
    assert spent.epsilon == promise.guarantee.epsilon == 1


def test_the_explanation_is_that_of_a_state(file, tmp_path):
    config = load(file).streams["shop"]
    promise = StreamPromise("shop", config)
    states = promise.states(None)
    counting = config.make_counting()
    seized = tmp_path / "seized"
    seized.write_bytes(counting.state())
    said = run_command("explain", seized).stdout
    own = [
        row for section in explained(states, []) for part in section.parts for row in part.beliefs
    ]
    assert len(own) == 3 * 6  # of each statistic, and together
    for row in own:
        for cell in row:
            assert cell in said
    assert states[0].within[:2] == ("Stream", "Windowed")


# States


def test_throw_away_states_are_drawn_with_fresh_coins(file):
    plans = StreamPromise("shop", load(file).streams["shop"]).pictured
    rows = [
        replace(ROW, argument=n, arguments=f"state={n}", value=90.0, low=80.0) for n in (1, 2, 3)
    ]
    names = [str(name) for name in answers_of(rows, plans["visits"])]
    assert names == ["exactly 1", "exactly 2", "exactly 3"]
    one, other = (pictures(rows, plans["visits"])[1] for _ in range(2))
    assert one != other
    assert imread(io.BytesIO(one)).shape[0] > 300


def test_lost_answers_and_none_are_drawn_as_nobody(file):
    plan = StreamPromise("shop", load(file).streams["shop"]).pictured["distinct"]
    lost = replace(ROW, statistic="distinct", question="distinct", argument=None, arguments="",
                   value=None, low=None, high=None)  # fmt: skip
    assert all(pictures([lost], plan))
    assert all(pictures([], plan))


def test_what_has_steps_is_not_drawn(file):
    assert not StreamPromise("calls", load(file).streams["calls"]).pictured


# The board


def test_the_board_says_that_the_store_is_gone_and_goes_on_when_it_is_back(tmp_path, store, file):
    published(store, days(2))
    config = load(file)
    store.close()
    board = Board(config, file)
    board.follow()
    assert board.trouble is None
    kept = shutil.move(tmp_path / "releases.sqlite", tmp_path / "away")
    board.follow()
    assert "database" in board.trouble
    assert board.looks["shop"].history.known.answers == 2
    shutil.move(kept, tmp_path / "releases.sqlite")
    board.follow()
    assert board.trouble is None
    board.close()


@pytest.mark.parametrize("damage", ["answers SET released = 'never'", "ledger SET epsilon = '1/0'"])
def test_a_damaged_row_is_told_and_tokens_are_followed_on(tmp_path, store, file, damage):
    published(store, days(2))
    with contextlib.closing(sqlite3.connect(tmp_path / "releases.sqlite")) as raw, raw:
        raw.execute(f"UPDATE panprivacy_{damage}")
    board = Board(load(file), file)
    board.follow()
    assert "damaged" in board.trouble
    file.write_text(file.read_text().replace(HASHES["board"], hash_of("pp_another")))
    board.follow()
    assert not board.readers.streams(TOKENS["board"])
    board.close()


def test_a_locked_store_is_told_and_what_is_known_stays(tmp_path, store, file, monkeypatch):
    monkeypatch.setitem(databases._SQLITE_PATIENCE, "timeout", 0.05)
    published(store, days(2))
    board = Board(load(file), file)
    board.follow()
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "releases.sqlite")) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        board.follow()
    assert "locked" in board.trouble
    assert board.looks["shop"].history.known.answers == 2
    board.close()


def test_it_can_write_nothing(store, file):
    board = Board(load(file), file)
    with pytest.raises(StoreError, match="readonly"), board._reader._transaction() as connection:
        connection.exec_driver_sql("DELETE FROM panprivacy_answers")
    board.close()


def test_a_spoilt_configuration_changes_nothing(store, file):
    board = Board(load(file), file)
    board.follow()
    file.write_text("nonsense [")
    board.follow()
    assert board.trouble is None
    assert board.readers.streams(TOKENS["board"]) == ["shop", "calls"]
    board.close()


def test_hundred_thousand_answers_stay_quick(store, file):
    ticks = np.arange(100_000) * 1e6 + 1e15
    rows = [(tick, tick % 977) for tick in ticks.tolist()]
    with contextlib.closing(sqlite3.connect(store._engine.url.database)) as raw, raw:
        stamp = "strftime('%Y-%m-%d %H:%M:%f', ?1 / 1e6, 'unixepoch') || '000'"
        raw.executemany(
            f"INSERT INTO panprivacy_answers (stream, start, complete, number, statistic, question,"
            f" arguments, value, low, high, confidence, epsilon, released) VALUES ('shop', {stamp},"
            f" 1, 1, 'distinct', 'distinct', '', ?2, ?2 - 5, ?2 + 5, 0.95, 0.1, {stamp})",
            rows,
        )
    followed = History(store, "shop")
    seconds = [elapsed(followed.follow) for _ in range(3)]
    assert max(seconds) < 3  # a page, not all of them
    while followed.follow():
        pass
    assert followed.known.answers == 100_000
    (points,) = followed.known.points.values()
    assert elapsed(lambda: charts.over_time(points, "users", "UTC")) < 0.5
    assert elapsed(followed.follow) < 1
    assert len(json.dumps(charts.over_time(points, "users", "UTC"))) < 200_000


def elapsed(work):
    """Processor time of this thread."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


# The guard


async def reached(scope, receive, send):
    """What stands behind the guard in tests."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def ask(tokens, method, path, **given):
    """What the guard answers."""
    guard = Guard(reached, Readers(tokens, ["shop", "calls"]))

    async def asked():
        transport = httpx.ASGITransport(app=guard)
        async with httpx.AsyncClient(transport=transport, base_url="http://board") as client:
            return await client.request(method, path, **given)

    return asyncio.run(asked())


@pytest.fixture
def tokens(file):
    return Tokens(load(file).tokens)


def test_nobody_enters_without_a_token_that_may_read(tokens):
    assert ask(tokens, "GET", "/").status_code == 401
    for path in ("/streams/shop", "/_nicegui/client.js", "/_nicegui_ws/socket.io/"):
        assert ask(tokens, "GET", path).status_code == 401
    for token in ("pp_nobody", TOKENS["web"], "", 'x"; a=b', "é"):
        refused = ask(tokens, "POST", "/enter", data={"token": token})
        assert refused.status_code == 403
        assert "set-cookie" not in refused.headers
        assert ask(tokens, "GET", "/", headers=[(b"cookie", f"{COOKIE}={token}".encode())]
                   ).status_code == 401  # fmt: skip
    assert ask(tokens, "POST", "/enter", content=b"token=" + b"a" * 10_000).status_code == 403


def test_a_token_that_may_read_is_kept_where_no_script_and_no_other_site_sees_it(tokens):
    entered = ask(tokens, "POST", "/enter", data={"token": TOKENS["shop"]})
    cookie = entered.headers["set-cookie"]
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    inside = ask(tokens, "GET", "/", headers={"cookie": cookie.partition(";")[0]})
    assert inside.text == "inside"
    left = ask(tokens, "POST", "/leave")
    assert f'{COOKIE}=""' in left.headers["set-cookie"]


def test_a_browser_that_goes_away_is_no_error_and_all_else_is(tokens):
    async def raising(scope, receive, send):
        await receive()
        raise RuntimeError

    async def ask_once(message):
        async def receive():
            return {"type": message}

        cookie = f"{COOKIE}={TOKENS['board']}".encode()
        scope = {"type": "http", "path": "/", "method": "GET", "headers": [(b"cookie", cookie)]}
        await Guard(raising, Readers(tokens, ["shop"]))(scope, receive, None)

    asyncio.run(ask_once("http.disconnect"))
    with pytest.raises(RuntimeError):
        asyncio.run(ask_once("http.request"))


def test_every_answer_forbids_what_is_elsewhere(tokens):
    policy = ask(tokens, "GET", "/").headers["content-security-policy"]
    assert policy.startswith("default-src 'self'")
    assert "http" not in policy
    assert "frame-ancestors 'none'" in policy


def test_a_web_socket_without_a_token_is_closed(tokens):
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "websocket", "headers": [(b"cookie", b"a=b")]}
    asyncio.run(Guard(reached, Readers(tokens, ["shop"]))(scope, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_a_token_of_one_stream_reads_that_one(tokens):
    readers = Readers(tokens, ["shop", "calls"])
    assert readers.streams(TOKENS["shop"]) == ["shop"]
    assert readers.streams(TOKENS["board"]) == ["shop", "calls"]
    tokens.take_over([])
    assert readers.streams(TOKENS["board"]) == []


@pytest.mark.parametrize("cookies", ["", "a", f"{COOKIE}", "\x00=1", f"{COOKIE}=;;=="])
def test_other_cookies_are_no_token(cookies):
    assert token_of(cookies) == ""


# The command


def test_a_store_or_a_configuration_that_is_not_there_is_told_in_one_line(file):
    pytest.importorskip("nicegui")
    told = run_command("dashboard", file)
    assert (told.code, told.stdout) == (2, "")
    assert "cannot be opened: the database fails: unable to open database file" in told.stderr
    ReleaseStore(f"sqlite:///{file.parent}/releases.sqlite").close()
    taken = run_command("dashboard", file, "--listen", "nowhere")
    spoilt = run_command("dashboard", file.with_name("nothing.toml"))
    assert "listen must be 127.0.0.1" in taken.stderr
    assert "cannot read nothing.toml" in spoilt.stderr
    assert {one.stderr.count("\n") for one in (told, taken, spoilt)} == {1}


def test_a_server_without_the_extra_says_what_to_install(file, monkeypatch):
    for name in [one for one in sys.modules if one.startswith("panprivacy.dashboard.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nicegui", None)
    told = run_command("dashboard", file)
    assert told.code == 2
    install = r"panprivacy: the dashboard needs \w+: pip install 'panprivacy\[dashboard\]'\n"
    assert re.fullmatch(install, told.stderr)


# With a real stream


def test_what_a_stream_released_is_what_is_shown(store, file):
    clock = [START.timestamp()]
    config = load(file).streams["shop"]
    one = Stream("shop", config, store, clock=lambda: clock[0])
    for _ in range(3):
        one.take([pa.record_batch({"user": np.arange(500)})])
        clock[0] += DAY.total_seconds()
        one.advance()
    followed = History(store, "shop")
    followed.follow()
    known = followed.known
    assert len(known.points[SeriesName("distinct", "distinct", "", None)]) == 3
    ((_, bars),) = histograms(known.newest).items()
    assert [bar.label for bar in bars] == ["1", "2", "3"]
    promise = StreamPromise("shop", config)
    year = promise.year(store, datetime.fromtimestamp(clock[0], UTC))
    assert (year.windows, year.loss) == (4, promise._windowed.loss(4))
    with pytest.raises(PlanError):
        promise._windowed.loss(0)
