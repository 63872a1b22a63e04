"""`panprivacy run` with counts of counts, deltas and deletions."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure

import panprivacy as pp
from panprivacy.intake.programs.counting import make_counting
from panprivacy.intake.programs.pictures import draw_states, throw_away_cells
from panprivacy.statistics.release import Answers
from panprivacy.statistics.specification import Specification
from tests.commands import run_command

USERS = 20_000
STATES = np.arange(USERS) % 4
"""How often each user comes: a quarter of them never."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`visits`: a row a visit. `moves`: everybody comes three times, some leave again."""
    path = tmp_path_factory.mktemp("incidence")
    visits = np.repeat(np.arange(USERS), STATES)
    table = pa.table({"id": visits, "name": [f"patient-{user}" for user in visits]})
    pq.write_table(table, path / "visits.parquet")
    came, left = np.repeat(np.arange(USERS), 3), np.repeat(np.arange(USERS), 3 - STATES)
    deltas = [*[1] * len(came), *[-1] * len(left)]
    table = pa.table({"id": [*came, *left], "delta": pa.array(deltas, pa.int8())})
    pq.write_table(table, path / "moves.parquet")
    return path


def answer(path, *arguments):
    words = ("run", path, "--epsilon", "4", "--json", *arguments)
    result = run_command(*words)
    assert result.code == 0, result.stderr
    return json.loads(result.stdout)


def refused(*arguments):
    result = run_command("run", *arguments)
    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert "patient" not in result.stderr
    return result.stderr


COUNTED = f"incidence,bound=5,universe={USERS}"


def incidence(asked=""):
    """The words that count visits, and ask this."""
    return ("--user", "id", "--stat", COUNTED + asked)


def named(document):
    """Each answer by what it is called."""
    rows = document["answers"]
    found = {}
    for row in rows:
        number = "" if row["argument"] is None else f" {row['argument']}"
        found[row["question"].replace("_", " ") + number] = row
    assert len(found) == len(rows)
    return found


def truths(document):
    return {name: row["truth"] for name, row in named(document).items()}


def assert_holds(interval, truth):
    """Within the interval, widened so far that one run in a million is outside."""
    assert interval["low"] <= interval["value"] <= interval["high"]
    reach = 3 * max(interval["high"] - interval["value"], interval["value"] - interval["low"])
    assert abs(interval["value"] - truth) < reach


def test_named_states_come_by_kind_and_state(folder):
    asked = incidence(",exactly=0:2,5,at_least=2,cropped_sum=2")
    shown = named(answer(folder / "visits.parquet", *asked))
    states = [f"exactly {state}" for state in (0, 1, 2, 5)]
    assert list(shown) == [*states, "at least 2", "cropped sum 2"]
    assert {row["statistic"] for row in shown.values()} == {"incidence"}
    for state in (0, 1, 2):
        assert_holds(shown[f"exactly {state}"], USERS / 4)
    assert_holds(shown["at least 2"], USERS / 2)
    assert_holds(shown["cropped sum 2"], USERS * 5 / 4)


def test_without_names_all_states_are_shown(folder):
    shown = named(answer(folder / "visits.parquet", *incidence()))
    assert list(shown) == [f"exactly {state}" for state in range(6)]
    assert_holds(shown["exactly 3"], USERS / 4)
    assert_holds(shown["exactly 4"], 0)


def test_text_ids_are_hashed(folder):
    document = answer(
        folder / "visits.parquet", "--user", "name", "--stat",
        "incidence,bound=5,expected=1000:15000,exactly=1:3",
    )  # fmt: skip
    assert len(document["answers"]) == 3
    for interval in document["answers"]:
        assert_holds(interval, USERS / 4)


DELTA = ("--delta", "delta")


def test_users_who_leave_are_taken_out(folder):
    document = answer(folder / "moves.parquet", *incidence(",exactly=0,3"), *DELTA)
    assert len(document["answers"]) == 2
    for interval in document["answers"]:
        assert_holds(interval, USERS / 4)


@pytest.mark.long
def test_a_distinct_count_with_deletions_counts_who_is_left(folder):
    document = answer(
        folder / "moves.parquet", "--user", "id", *DELTA,
        "--stat", "distinct,deletions,bound=3,expected=1000:100000",
    )  # fmt: skip
    assert_holds(*document["answers"], USERS * 3 / 4)


@pytest.mark.long
def test_a_distinct_count_of_a_strict_stream_counts_who_is_in(tmp_path):
    """As many enter and leave as stay; the other name is that of counters for the same stream."""
    ids = [*range(2 * USERS), *range(USERS)]
    deltas = [1] * (2 * USERS) + [-1] * USERS
    pq.write_table(pa.table({"id": ids, "change": deltas}), tmp_path / "strict.parquet")
    document = answer(
        tmp_path / "strict.parquet", "--user", "id", "--delta", "change", "--demo",
        "--stat", "distinct,deletions=strict,expected=1000:100000",
        "--stat", "distinct,deletions,bound=1,expected=1000:100000,as=counters",
    )  # fmt: skip
    assert [row["truth"] for row in document["answers"]] == [USERS, USERS]
    for interval in document["answers"]:
        assert_holds(interval, USERS)


def test_statistics_share_epsilon(folder):
    document = answer(
        folder / "visits.parquet", *incidence(), "--stat", "distinct,expected=1000:100000",
        "--stat", f"density,universe={USERS}",
    )  # fmt: skip
    statistics = {row["statistic"] for row in document["answers"]}
    assert statistics == {"distinct", "density", "incidence"}
    assert document["epsilon"] == 4


@pytest.mark.long
def test_a_demonstration_knows_the_truth(folder):
    document = answer(
        folder / "moves.parquet", *incidence(",exactly=0:4,at_least=2,cropped_sum=2"), *DELTA,
        "--stat", "distinct,deletions,bound=5", "--demo", "--nulls", "skip",
    )  # fmt: skip
    assert truths(document) == {
        **{f"exactly {state}": USERS / 4 for state in range(4)},
        "exactly 4": 0,
        "at least 2": USERS / 2,
        "cropped sum 2": USERS * 5 / 4,
        "distinct": USERS * 3 / 4,
    }


def test_the_truth_is_that_of_users_beyond_the_bound_too(folder, tmp_path):
    """The table takes a state beyond the bound for another one; the truth does not."""
    path = tmp_path / "often.csv"
    path.write_text("id\n" + "5\n" * 40 + "".join(f"{user}\n" for user in range(100, 3_000)))
    stat = "incidence,bound=2,universe=3000,exactly=0:2,at_least=2,cropped_sum=2"
    document = answer(path, "--user", "id", "--stat", stat, "--demo")
    assert truths(document) == {
        "exactly 0": 99,
        "exactly 1": 2_900,
        "exactly 2": 0,
        "at least 2": 1,
        "cropped sum 2": 2_902,
    }


@pytest.mark.long
def test_states_may_be_below_0(folder, tmp_path):
    path, target = tmp_path / "signed.csv", tmp_path / "signed.png"
    path.write_text("id,delta\n" + "".join(f"{n},{n % 4 - 2}\n" for n in range(8_000)))
    document = answer(
        path, "--user", "id", "--stat",
        "incidence,bound=2,signed,universe=8000,exactly=-2:-1,1", *DELTA, "--demo",
        "--plot", target,
    )  # fmt: skip
    assert truths(document) == {f"exactly {n}": 2_000 for n in (-2, -1, 1)}
    for interval in document["answers"]:
        assert_holds(interval, 2_000)
    assert target.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("bound", "width"), [(100, 1), (300, 2)])
def test_memory_limits_counters_of_the_width_that_the_law_needs(folder, bound, width):
    text = f"incidence,memory={USERS // 2},bound={bound},universe={USERS}"
    made = make_counting([Specification.from_text(text)], epsilon=Fraction(1))
    plan = made.members["incidence"].plan
    assert plan.table.dtype.itemsize == width
    assert plan.cells == USERS // 2 // width


def test_density_takes_deltas_and_counts_whoever_entered_last(tmp_path):
    path = tmp_path / "present.csv"
    path.write_text("id,delta\n" + "".join(f"{n},1\n" for n in range(6_000)) + "7,1\n7,-1\n")
    words = ("--user", "id", "--stat", "density,universe=12000", *DELTA, "--demo")
    document = answer(path, *words)
    assert truths(document) == {"density": 5_999 / 12_000}
    assert_holds(*document["answers"], 0.5)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_lost_release_leaves_the_other_answers(tmp_path, form):
    path = tmp_path / "many.csv"
    path.write_text("id\n" + "".join(f"{n}\n" for n in range(60_000)))
    result = run_command(
        "run", path, "--user", "id", "--stat", "distinct,expected=5000",
        "--stat", "incidence,bound=30,expected=5000,exactly=1,distinct", "--epsilon", "16", *form,
    )  # fmt: skip
    assert result.code == 1
    if form:
        kept, *lost = json.loads(result.stdout)["answers"]
        assert kept["value"] > 1_000
        assert [row["question"] for row in lost] == ["exactly", "distinct"]
        for row in lost:
            assert row["statistic"] == "incidence"
            numbers = {row[name] for name in ("value", "low", "high", "confidence", "epsilon")}
            assert numbers == {None}
    else:
        assert re.search(r"^exactly 1 +lost", result.stdout, re.MULTILINE)
        assert "plan for more with expected=" in result.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    "stat",
    [
        ("distinct,deletions",),
        ("incidence",),
        ("incidence,cropped_sum=3", "--demo"),
        ("incidence", "--stat", "distinct,deletions"),
    ],
)
def test_a_picture_is_drawn(folder, tmp_path, stat):
    target = tmp_path / "picture.png"
    words = [f"{one},bound=3,expected=15000" if one[0] != "-" else one for one in stat]
    answer(
        folder / "moves.parquet", "--user", "id", *DELTA, "--plot", target, "--stat", *words,
    )  # fmt: skip
    assert target.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("asked", "full"),
    [
        ({}, 0.75),
        ({"exactly": [0]}, 0.75),
        ({"at_least": [1, 2]}, 0.75),
        ({"exactly": [1], "at_least": [2]}, 0.75),
        ({"cropped_sum": [1]}, 0.75),
        ({"distinct": True}, 0.75),
        ({"exactly": [5]}, 0),
    ],
)
def test_made_up_users_are_as_many_as_the_answer_says(folder, asked, full):
    statistic = pp.Incidence(universe=USERS, bound=5, epsilon=4)
    statistic.update(pq.read_table(folder / "visits.parquet")["id"])
    ordinary, private = throw_away_cells(statistic.plan, Answers([statistic.release(**asked)]))
    assert (ordinary != 0).mean() == pytest.approx(full, abs=0.1)
    assert ordinary.shape == private.shape
    assert (ordinary != private).mean() > 0.05


@pytest.mark.parametrize(
    ("statistic", "value"),
    [
        (pp.CroppedSum(tau=10, universe=USERS, epsilon=1), 40_000.0),
        (pp.CroppedSum(tau=10, expected=(1_000, USERS), epsilon=4), 40_000.0),
        (pp.ThresholdCount(threshold=20, universe=50_000, epsilon=1), 5_000.0),
    ],
)
def test_counters_of_users_that_came_stand_beside_those_of_others(statistic, value):
    """The table of an ordinary program has a scale of its own, in which both halves differ."""
    figure = Figure()
    ordinary, private = figure.subplots(1, 2)
    one = pp.Release(value, value, value, 0.95, 1.0, ())
    draw_states(ordinary, private, statistic.plan, Answers([one]))
    for axes in (ordinary, private):
        assert [label.get_text() for label in axes.get_xticklabels()] == ["came", "did not come"]
    cells, noisy = (np.asarray(axes.images[0].get_array()) for axes in (ordinary, private))
    half = cells.shape[1] // 2
    assert cells[:, :half].min() > 0
    assert not cells[:, half:].any()
    assert ordinary.images[0].get_clim() == (0, cells.max())
    assert private.images[0].get_clim() == (0, noisy.max())


def test_cells_that_add_up_users_have_no_halves():
    ordinary, private = Figure().subplots(1, 2)
    plan = pp.InnerProduct(bound=20, epsilon=1).plan
    one = pp.Release(1e6, 1e6, 1e6, 0.95, 1.0, ())
    draw_states(ordinary, private, plan, Answers([one]))
    assert "adds up many users" in ordinary.get_title()
    assert ordinary.get_xticks().size == 0
    assert (np.asarray(ordinary.images[0].get_array())[-1] != 0).any()  # one stream, not a blank


@pytest.mark.parametrize("epsilon", ["0.3", "0.8", "1", "2", "30"])
def test_a_picture_says_no_smaller_odds_than_the_plan(epsilon):
    statistic = pp.Density(universe=500, epsilon=epsilon)
    ordinary, private = Figure().subplots(1, 2)
    draw_states(ordinary, private, statistic.plan, Answers([statistic.release()]))
    told = re.search(r"odds (\S+) times at most", private.get_title())[1]
    said = float(told.replace(",", ""))
    assert 0 <= math.log(said) - float(statistic.plan.split.budget.state) < 0.01


@pytest.mark.parametrize(
    ("stat", "reason"),
    [
        ("incidence,universe=9", "incidence needs bound=: the largest sum"),
        ("incidence,bound=5", "universe="),
        ("distinct,bound=5", "bound= and signed= are for deletions"),
        ("distinct,signed", "bound= and signed= are for deletions"),
        ("distinct,exactly=1", "distinct has no exactly=: its sizes are expected, memory"),
        ("distinct,deletions,bound=5", "distinct needs --delta: the column that says who"),
        ("distinct,deletions", "deletions needs bound="),
        (f"{COUNTED},exactly=6", "exactly must lie within 0 to 5, the bound: raise the bound"),
        (f"{COUNTED},exactly=-1", "states below 0 need below= or signed"),
        (f"{COUNTED},exactly=x", "exactly must name states"),
        (f"{COUNTED},exactly=5:1", "exactly must name states"),
        (f"{COUNTED},exactly=0:99999999", "at most 100,000 states"),
        (f"{COUNTED},at_least=0", "at_least must lie within 1 to 5"),
        ("incidence,bound=99999999999,universe=9", "bound must be at most"),
        (f"incidence,bound=300,universe={USERS},memory=1", "too large for a memory"),
        ("incidence,bound=5,expected=10", "cannot be read"),
        ("distinct,universe=9", "distinct has no universe="),
        ("distinct,expected=9:5", "from low to high"),
        ("density,universe=9,expected=5", "density has no expected="),
        (f"{COUNTED},expected=5", "expected= is for open-ended ids"),
        (f"incidence,bound=5.5,universe={USERS}", "'5.5' is not a whole number"),
        ("incidence,bound=5,expected=9000,exactly=0", "without universe="),
    ],
)
def test_what_does_not_fit_is_refused(folder, stat, reason):
    words = ("--user", "id", "--epsilon", "4", "--stat", stat)
    assert reason in refused(folder / "visits.parquet", *words)


@pytest.mark.parametrize(
    ("column", "reason"), [("name", "whole numbers"), ("nothing", "there is no column")]
)
def test_a_column_of_deltas_that_is_none_is_refused(folder, column, reason):
    words = (*incidence(), "--epsilon", "4", "--delta", column)
    assert reason in refused(folder / "visits.parquet", *words)


def test_a_delta_beyond_the_bound_is_refused_by_row(folder, tmp_path):
    path = tmp_path / "far.csv"
    path.write_text("id,delta\n1,1\n2,-6\n")
    assert "row 2 " in refused(path, *incidence(), *DELTA, "--epsilon", "4")
    path.write_text("id,delta\n1,1\n2,\n")
    assert "row 2 " in refused(path, *incidence(), *DELTA, "--epsilon", "4")
    path.write_text("id,delta\n1,1\n2,0.5\n")
    assert "row 2 " in refused(path, *incidence(), *DELTA, "--epsilon", "4")


@pytest.mark.parametrize(
    "words",
    [
        ("--stat", "incidence,bound=5,universe=1000", *DELTA),
        ("--stat", "density,universe=1000"),
    ],
)
def test_skipped_rows_count_in_the_row_that_is_named(tmp_path, words):
    path = tmp_path / "gaps.csv"
    path.write_text("id,delta\n,1\n1,1\n,1\n4711,-60\n")
    assert "row 4 " in refused(path, "--user", "id", "--epsilon", "4", "--nulls", "skip", *words)


def test_text_output_shows_a_line_a_state_and_says_what_is_left_out(folder):
    words = ("run", folder / "visits.parquet", "--epsilon", "4", "--user", "id", "--stat")
    lines = run_command(*words, COUNTED).stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:4]] == [["exactly", str(n)] for n in range(3)]
    many = run_command(*words, COUNTED.replace("=5", "=40")).stdout
    assert "20 more states: --json shows them." in many
