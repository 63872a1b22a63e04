"""What the dashboard says of epsilon."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from panprivacy.dashboard.promise import StreamPromise
from panprivacy.explain.sentences import explained
from panprivacy.service.config.loading import load
from panprivacy.service.outgoing.records import Announcement, Entry
from tests.commands import run_command
from tests.dashboard.rows import DAY, ROW, START, published


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


def test_what_has_steps_is_not_drawn(file):
    assert not StreamPromise("calls", load(file).streams["calls"]).pictured
