"""What an answer says of itself where it is not as good as planned."""

from __future__ import annotations

import inspect
import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

import panprivacy as pp
from panprivacy.intake.programs.pictures import plot_answers
from panprivacy.statistics.notes import note_on
from panprivacy.testing import SeededCoins
from tests.commands import run_command

RANGE = 1_000.0, 10_000.0


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0, 5_000, "more noise than signal"),
        (0, 1_000, "more noise than signal"),
        (0, math.inf, "more noise than signal"),
        (0, 645, "more noise than signal"),
        (0, 499, "below the planned range of 1,000 to 10,000"),
        (100, 499, "below the planned range of 1,000 to 10,000"),
        (20_001, 30_000, "beyond the planned range of 1,000 to 10,000"),
        (5_000, math.inf, "beyond the planned range of 1,000 to 10,000"),
        (400, 500, None),
        (900, 9_000, None),
        (20_000, 30_000, None),
    ],
)
def test_a_note_follows_from_the_interval_and_the_planned_range(low, high, said):
    note = note_on(low, high, RANGE)
    assert note is None if said is None else note.startswith(said)


def test_a_single_planned_number_is_told_once():
    assert note_on(1, 40, (3_000, 3_000)).startswith("below the planned number of 3,000: ")
    assert note_on(9_000, 9_900, (3_000, 3_000)).startswith("beyond the planned number of 3,000: ")


def test_without_a_planned_range_only_noise_is_noted():
    assert note_on(1, 5) is note_on(1e9, math.inf) is None
    assert note_on(0, 5) == "more noise than signal: the interval reaches down to 0"
    assert note_on(-5, 2) == "more noise than signal: the interval reaches up to 0"
    assert note_on(0, 0) is note_on(7, 7, value=7) is None


@given(st.tuples(*[st.floats(-1e9, 1e9)] * 3), st.tuples(*[st.floats(0, 1e9)] * 2))
def test_what_reaches_0_or_is_wider_than_the_answer_has_the_note(ends, planned):
    low, value, high = sorted(ends)
    note = note_on(low, high, tuple(sorted(planned)), value=value) or ""
    noise = low < high and (low <= 0 <= high or high - low > abs(value))
    assert ("more noise than signal" in note) == noise


def test_an_interval_without_an_end_is_noise_too():
    assert note_on(10, math.inf, value=20) == "more noise than signal: the interval has no end"
    assert note_on(10, 40, value=20).endswith("the interval is wider than the answer")
    assert note_on(10, 30, value=20) is None


@pytest.mark.parametrize("users", [0, 100, 700])
def test_every_answer_of_few_users_that_reaches_0_says_so(users):
    answers = []
    for seed in range(20):
        count = pp.DistinctCount(expected=(1_000, 1_000_000), epsilon=1, coins=SeededCoins(seed))
        count.update(np.arange(users))
        answers.append(count.release())
    noisy = [one for one in answers if not one.low or one.high - one.low > one.value]
    assert noisy
    assert all("more noise than signal" in one.note for one in noisy)


def test_what_all_answers_of_a_plan_say_stands_behind_what_the_interval_says():
    assert note_on(1, 5, caveat="beware") == "beware"
    assert note_on(0, 5, caveat="beware").endswith("reaches down to 0; beware")


def test_a_share_is_noted_with_its_digits():
    assert "0.5000 to 1.0000" in note_on(0.1, 0.2, (0.5, 1.0), "share of the universe")


def test_a_note_costs_nothing_for_it_is_told_the_interval_and_the_plan_alone():
    assert list(inspect.signature(note_on).parameters) == [
        "low",
        "high",
        "planned",
        "unit",
        "caveat",
        "value",
    ]


DISTINCT = {"expected": (1_000, 10_000), "memory": 1_024}
LEVELS = {"expected": (1_000, 10_000), "tau": 5, "memory": 1 << 14}


@pytest.mark.parametrize(
    ("users", "said"), [(100, "below"), (1_000, None), (10_000, None), (100_000, "beyond")]
)
@pytest.mark.parametrize("deletions", [False, True])
def test_a_count_of_users_says_where_it_was_not_planned_for(users, said, deletions):
    sizes = {**DISTINCT, **({"deletions": True, "bound": 3} if deletions else {})}
    count = pp.DistinctCount(**sizes, epsilon=8, coins=SeededCoins(1))
    count.update(np.arange(users))
    note = count.release().note
    assert (note and note.split()[0]) == said


@pytest.mark.parametrize(("users", "said"), [(100, "below"), (3_000, None), (400_000, "beyond")])
def test_a_cropped_sum_says_where_it_was_not_planned_for(users, said):
    total = pp.CroppedSum(**LEVELS, epsilon=12, coins=SeededCoins(1))
    total.update(np.arange(users), np.full(users, 5))
    answer = total.release()
    assert (answer.note and answer.note.split()[0]) == said, answer


@pytest.mark.parametrize(
    "made",
    [
        lambda coins: pp.Density(universe=50, epsilon=0.05, coins=coins),
        lambda coins: pp.ThresholdCount(threshold=4, universe=50, epsilon=0.5, coins=coins),
        lambda coins: pp.HeavyHitterCount(k=10, total=100, epsilon=0.5, coins=coins),
        lambda coins: pp.CroppedSum(tau=4, universe=50, epsilon=0.1, coins=coins),
    ],
    ids=["density", "threshold", "heavy-hitters", "cropped-sum"],
)
def test_an_answer_that_is_noise_says_so(made):
    answer = made(SeededCoins(2)).release()
    assert answer.note.startswith("more noise than signal")
    assert str(answer).endswith(f"95 %; {answer.note})")
    assert answer.to_arrow()["note"].to_pylist() == [answer.note]
    assert f"<td>{answer.note}</td>" in answer._repr_html_()


@pytest.fixture(scope="module")
def histogram():
    visits = pp.Incidence(bound=5, universe=100_000, epsilon=2, coins=SeededCoins(3))
    visits.update(np.repeat(np.arange(60_000), 2))
    return visits.release()


def test_states_that_cannot_be_told_from_empty_ones_say_so(histogram):
    assert histogram.exactly(2).note is None
    notes = [one.note for one in histogram.values()]
    assert [note is None for note in notes] == [one.low > 0 for one in histogram.values()]
    assert 0 < notes.count(None) < len(notes)


def test_a_constrained_histogram_has_the_notes_of_its_own_intervals(histogram):
    table = histogram.to_arrow(constrained=True)
    low, notes = table["low"].to_pylist(), table["note"].to_pylist()
    assert [note is None for note in notes] == [end > 0 for end in low]


def test_a_quantile_is_a_state_and_no_noise():
    visits = pp.Incidence(bound=3, universe=1_000, signed=True, epsilon=2)
    visits.update(np.arange(900), np.full(900, -1))
    assert visits.release().quantile(0.5).note is None


def test_notes_go_where_answers_go():
    pages = pp.Grouped(
        lambda epsilon: pp.DistinctCount(**DISTINCT, epsilon=epsilon, coins=SeededCoins(4)),
        ["home", "help"],
        epsilon=8,
    )
    pages.update(np.arange(2_000), ["home"] * 2_000)
    answers = pages.release()
    home, help_ = answers.to_arrow()["note"].to_pylist()
    assert home is None
    assert help_.startswith("below the planned range")


@pytest.fixture
def few(tmp_path):
    """A file of a hundred users, where thousands are planned for."""
    path = tmp_path / "users.csv"
    path.write_text("user\n" + "".join(f"u{number}\n" for number in range(100)))
    return path


WORDS = "--epsilon", "8", "--user", "user", "--stat", "distinct,expected=10_000:100_000"


def test_run_says_notes_below_the_table_and_in_json(few):
    text = run_command("run", few, *WORDS).stdout
    assert "Note on distinct: below the planned range of 10,000 to 100,000: the" in text
    (row,) = json.loads(run_command("run", few, *WORDS, "--json").stdout)["answers"]
    assert row["note"].startswith("below the planned range")


def test_many_answers_with_one_note_share_a_line(few):
    stat = "incidence,bound=20,expected=500,as=visits"
    words = "--epsilon", "4", "--user", "user", "--stat", stat
    lines = run_command("run", few, *words).stdout.splitlines()
    line = max((one for one in lines if one.startswith("Note on")), key=len)
    assert line.count("exactly") == 5
    assert " more: more noise than signal" in line


def test_a_picture_shows_the_note(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, _: drawn.append(figure))
    visitors = pp.DistinctCount(**DISTINCT, epsilon=8)
    answers = pp.Answers([visitors.release()])
    plot_answers(tmp_path / "picture.png", {"distinct": visitors}, answers)
    (text,) = drawn[0].axes[0].texts
    assert text.get_text().startswith("below the planned range")


@pytest.mark.long
@pytest.mark.parametrize("command", ["run", "plan"])
def test_an_epsilon_that_protects_nobody_is_one_line_on_standard_error(few, command):
    words = {"run": (few, "--user", "user", "--stat", "distinct"), "plan": ("distinct",)}[command]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        weak = run_command(command, *words, "--epsilon", "21")
        fine = run_command(command, *words, "--epsilon", "20")
    assert weak.stderr.startswith("panprivacy: epsilon 21 protects nobody: ")
    assert weak.stderr.count("\n") == 1
    assert (weak.code, fine.code, fine.stderr) == (0, 0, "")
