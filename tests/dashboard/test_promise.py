"""What the dashboard says of epsilon."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pyrage

from panprivacy.service.config.loading import load
from panprivacy.service.dashboard.promise import StreamPromise
from panprivacy.service.outgoing.records import Announcement, Entry, Promised
from panprivacy.statistics.explain.sentences import explained
from tests.commands import run_command
from tests.dashboard.rows import DAY, ROW, START, published


def test_a_window_has_spent_what_its_ledger_has(store, file):
    promise = StreamPromise("shop", load(file).streams["shop"])
    now = START + DAY / 2
    before = promise.spent(store, now, 0)
    current = promise._windowed.current
    assert before.loss.epsilon == current.internals.releasing.state_epsilon
    assert (before.releases.made, before.releases.planned) == (0, 2)
    published(store, [ROW, replace(ROW, number=2)])
    store.announce(Announcement("shop", START, 1, "0" * 64, now))
    spent = promise.spent(store, now, 2)
    assert (
        spent.loss.epsilon
        == current.internals.releasing.state_epsilon + current.internals.releasing.of_releases(2)
    )
    assert spent.loss.epsilon <= promise.guarantee.epsilon
    assert (spent.releases.made, spent.announced.made, spent.begun) == (2, 1, 1)
    assert spent.ends == START + DAY
    assert promise.spent(store, now + DAY, 2).releases.made == 0


def test_a_window_that_was_begun_twice_says_so(store, file):
    promise = StreamPromise("shop", load(file).streams["shop"])
    again = START + DAY / 4
    published(store, [replace(ROW, number=1), replace(ROW, start=again)])
    assert promise.spent(store, START + DAY / 2, 1).begun == 2


def lines(promise, days):
    """Windows in the ledger that were planned as they are now."""
    for day in days:
        start = START + day * DAY
        state = Entry(
            "shop",
            start,
            start + DAY,
            0,
            promise._windowed.current.internals.releasing.state_epsilon,
        )
        yield [state, replace(state, number=1)], Promised.of("shop", start, promise.guarantee)


def test_a_year_costs_what_windows_cost(store, file):
    promise = StreamPromise("shop", load(file).streams["shop"])
    guarantee = promise.guarantee
    for each in lines(promise, [-400, 0, 1, 2, 3]):
        store.spend(*each)
    assert promise.year(store, START + 3 * DAY).windows == 4
    year = promise.year(store, START + 4 * DAY)  # whose window is open, and not in the ledger yet
    assert (year.windows, year.all_windows) == (5, 365)
    assert year.loss == guarantee.over(5)
    for number in (1, 2):
        store.announce(Announcement("shop", START + DAY, number, f"{number:064}", START))
    seen = promise.year(store, START + 4 * DAY)
    assert seen.announced == 1
    assert seen.loss == guarantee.over(5, seen=2)  # that one, and one that nobody announced
    assert year.whole_loss == guarantee.over(365)
    silent = START - 7 * DAY  # without an answer
    store.announce(Announcement("shop", silent, 1, "f" * 64, START))
    assert promise.year(store, START + 4 * DAY).loss == guarantee.over(6, seen=3)


SHARING = {
    "threshold": 'releases = 2\n[[streams.shop.stat]]\nname = "threshold"\nthreshold = 10\n',
    "cropped sum": 'releases = 3\n[[streams.shop.stat]]\nname = "cropped-sum"\ntau = 10\n',
}
"""Streams whose answers move, and whose states have the same epsilon."""


def moving(kind, tmp_path):
    """The promise of a stream of a shop, which is planned as a kind is."""
    head = '[streams.shop]\nepsilon = 2\nwindow = "1d"\nevery = "1m"\nmoves = 50_000\n'
    text = head + f'ids = "integers"\n{SHARING[kind]}universe = 100_000\n'
    return stream(text, tmp_path)


def test_windows_that_were_planned_otherwise_cost_what_was_promised_then(store, tmp_path):
    """A threshold and a cropped sum whose states cost the same, and whose years do not."""
    one, other = (moving(kind, tmp_path) for kind in SHARING)
    state = one._windowed.current.internals.releasing.state_epsilon
    assert state == other._windowed.current.internals.releasing.state_epsilon == Fraction(979, 512)
    years = [each.guarantee.over(365) for each in (one, other)]
    assert [round(float(year.epsilon), 2) for year in years] == [380.06, 380.20]
    for day, planned in enumerate([one, other, other]):
        start = START + day * DAY
        entry = Entry("shop", start, start + DAY, 0, state)
        store.spend([entry], Promised.of("shop", start, planned.guarantee))
    for open_one in (one, other):
        year = open_one.year(store, START + 3 * DAY)
        assert year.windows == 4
        each = [one, other, other, open_one]
        lost = sum(planned.guarantee.unseen_loss.epsilon for planned in each)
        seen = max(planned.guarantee.unannounced for planned in each)
        assert (year.loss.epsilon, year.loss.delta) == (lost + seen, Fraction(4, 10**9))
        assert year.whole_loss == open_one.guarantee.over(365)


CONTRIBUTED = """
[streams.shop]
epsilon = 1
window = "1d"
contribute = "{key}"
ids = "integers"
[[streams.shop.stat]]
name = "density"
universe = 100
"""
MOVING = """
[streams.shop]
epsilon = 2
window = "1d"
releases = 3
every = "1m"
moves = 400
ids = "integers"
[[streams.shop.stat]]
name = "density"
universe = 1000
"""


def stream(text, tmp_path):
    file = tmp_path / "panprivacy.toml"
    file.write_text(text)
    return StreamPromise("shop", load(file).streams["shop"])


def test_a_year_of_contributions_is_looked_at_in_every_window(store, tmp_path):
    key = str(pyrage.x25519.Identity.generate().to_public())
    promise = stream(CONTRIBUTED.format(key=key), tmp_path)
    year = promise.year(store, START)
    assert year.whole_loss.epsilon == 365
    for each in lines(promise, range(3)):
        store.spend(*each)
    assert promise.year(store, START + 3 * DAY).loss.epsilon == 4


def test_a_year_of_answers_that_move_has_a_delta(store, tmp_path):
    promise = stream(MOVING, tmp_path)
    assert promise.year(store, START).whole_loss.delta == Fraction(365, 10**9)
    for each in lines(promise, range(3)):
        store.spend(*each)
    assert promise.year(store, START + 3 * DAY).loss.delta == Fraction(4, 10**9)


def test_what_goes_on_counts_the_answers_of_its_life(store, file):
    promise = StreamPromise("calls", load(file).streams["calls"])
    assert promise.lasting
    spent = promise.spent(store, START, 77)
    assert spent.releases.made == 77
    assert spent.loss.epsilon == promise.guarantee.epsilon == 1


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


def test_what_has_steps_is_not_drawn(file):
    assert not StreamPromise("calls", load(file).streams["calls"]).pictured
