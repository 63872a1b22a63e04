"""`panprivacy run` with counts of counts, deltas and deletions."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from panprivacy.options import Sizes, Statistics

import panprivacy as pp
from panprivacy._parse import parse_states
from panprivacy.cli.output import Answers, print_json
from panprivacy.errors import PlanError
from panprivacy.programs.counting import make_statistics
from panprivacy.programs.pictures import throw_away_counters
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


INCIDENCE = ("--user", "id", "--stat", "incidence", "--bound", "5", "--universe", str(USERS))


def assert_holds(interval, truth):
    """Within the interval, widened so far that one run in a million is outside."""
    assert interval["low"] <= interval["value"] <= interval["high"]
    reach = 3 * max(interval["high"] - interval["value"], interval["value"] - interval["low"])
    assert abs(interval["value"] - truth) < reach


def test_named_states_come_by_kind_and_state(folder):
    document = answer(
        folder / "visits.parquet", *INCIDENCE,
        "--exactly", "0:2,5", "--at-least", "2", "--cropped-sum", "2",
    )  # fmt: skip
    shown = document["statistics"]["incidence"]
    assert set(shown) == {"exactly", "at_least", "cropped_sum", "confidence", "epsilon"}
    assert list(shown["exactly"]) == ["0", "1", "2", "5"]
    for state in (0, 1, 2):
        assert_holds(shown["exactly"][str(state)], USERS / 4)
    assert_holds(shown["at_least"]["2"], USERS / 2)
    assert_holds(shown["cropped_sum"]["2"], USERS * 5 / 4)


def test_without_names_all_states_are_shown(folder):
    document = answer(folder / "visits.parquet", *INCIDENCE)
    shown = document["statistics"]["incidence"]["exactly"]
    assert list(shown) == ["0", "1", "2", "3", "4", "5"]
    assert_holds(shown["3"], USERS / 4)
    assert_holds(shown["4"], 0)


def test_text_ids_are_hashed(folder):
    document = answer(
        folder / "visits.parquet", "--user", "name", "--stat", "incidence", "--bound", "5",
        "--expected", "1000:15000", "--exactly", "1:3",
    )  # fmt: skip
    for interval in document["statistics"]["incidence"]["exactly"].values():
        assert_holds(interval, USERS / 4)


DELETIONS = ("--delta", "delta", "--deletions")


def test_users_who_leave_are_taken_out(folder):
    document = answer(folder / "moves.parquet", *INCIDENCE, *DELETIONS, "--exactly", "0,3")
    for interval in document["statistics"]["incidence"]["exactly"].values():
        assert_holds(interval, USERS / 4)


def test_a_distinct_count_with_deletions_counts_who_is_left(folder):
    document = answer(
        folder / "moves.parquet", "--user", "id", "--stat", "distinct", *DELETIONS,
        "--bound", "3", "--expected", "1000:100000",
    )  # fmt: skip
    assert_holds(document["statistics"]["distinct"], USERS * 3 / 4)


def test_statistics_share_epsilon(folder):
    document = answer(
        folder / "visits.parquet", *INCIDENCE, "--stat", "distinct", "--stat", "density",
        "--expected", "1000:100000",
    )  # fmt: skip
    assert set(document["statistics"]) == {"distinct", "density", "incidence"}
    assert document["epsilon"] == 4


def test_a_demonstration_knows_the_truth(folder):
    document = answer(
        folder / "moves.parquet", *INCIDENCE, *DELETIONS, "--stat", "distinct", "--demo",
        "--exactly", "0:4", "--at-least", "2", "--cropped-sum", "2", "--nulls", "skip",
    )  # fmt: skip
    assert document["demonstration"]["truth"] == {
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
    words = ("--exactly", "0:2", "--at-least", "2", "--cropped-sum", "2", "--demo")
    document = answer(
        path, "--user", "id", "--stat", "incidence", "--bound", "2", "--universe", "3000", *words
    )
    assert document["demonstration"]["truth"] == {
        "exactly 0": 99,
        "exactly 1": 2_900,
        "exactly 2": 0,
        "at least 2": 1,
        "cropped sum 2": 2_902,
    }


def test_states_may_be_below_0(folder, tmp_path):
    path, target = tmp_path / "signed.csv", tmp_path / "signed.png"
    path.write_text("id,delta\n" + "".join(f"{n},{n % 4 - 2}\n" for n in range(8_000)))
    document = answer(
        path, "--user", "id", "--stat", "incidence", "--bound", "2", "--signed", "--universe",
        "8000", *DELETIONS, "--exactly=-2:-1,1", "--demo", "--plot", target,
    )  # fmt: skip
    shown = document["statistics"]["incidence"]["exactly"]
    assert list(shown) == ["-2", "-1", "1"]
    assert document["demonstration"]["truth"] == {f"exactly {n}": 2_000 for n in (-2, -1, 1)}
    for interval in shown.values():
        assert_holds(interval, 2_000)
    assert target.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("bound", "width"), [(100, 1), (300, 2)])
def test_memory_limits_counters_of_the_width_that_the_law_needs(folder, bound, width):
    sizes = Sizes(memory=USERS // 2, bound=bound, universe=USERS)
    made = make_statistics([Statistics.incidence], sizes, 1, None, pp.Ledger(1))
    plan = made["incidence"].plan
    assert plan.table.dtype.itemsize == width
    assert plan.cells == USERS // 2 // width


def test_density_takes_deltas_and_counts_whoever_entered_last(tmp_path):
    path = tmp_path / "present.csv"
    path.write_text("id,delta\n" + "".join(f"{n},1\n" for n in range(6_000)) + "7,1\n7,-1\n")
    document = answer(
        path, "--user", "id", "--stat", "density", "--universe", "12000", *DELETIONS, "--demo"
    )
    assert document["demonstration"]["truth"] == {"density": 5_999 / 12_000}
    assert_holds(document["statistics"]["density"], 0.5)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_lost_release_leaves_the_other_answers(tmp_path, form):
    path = tmp_path / "many.csv"
    path.write_text("id\n" + "".join(f"{n}\n" for n in range(60_000)))
    result = run_command(
        "run", path, "--user", "id", "--stat", "distinct", "--stat", "incidence", "--bound", "30",
        "--expected", "5000", "--epsilon", "16", *form,
    )  # fmt: skip
    assert result.code == 1
    if form:
        found = json.loads(result.stdout)["statistics"]
        assert found["incidence"] is None
        assert found["distinct"]["value"] > 1_000
    else:
        assert re.search(r"^incidence +lost", result.stdout, re.MULTILINE)
        assert "plan for more with --expected" in result.stdout


def test_json_is_strict_without_an_upper_end(capsys):
    release = pp.Release(1.0, 0.0, float("inf"), 0.95, 1.0, (1,))
    print_json(Answers({"distinct": release}, pp.Guarantee(Fraction(1)), 1, 0.95))

    def refuse(constant):
        raise AssertionError(constant)

    document = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert document["statistics"]["distinct"]["high"] == "inf"


def test_text_output_shows_a_line_a_state_and_says_what_is_left_out(folder):
    words = ("run", folder / "visits.parquet", *INCIDENCE, "--epsilon", "4")
    lines = run_command(*words).stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:4]] == [["exactly", str(n)] for n in range(3)]
    many = run_command(*words[:6], "--bound", "40", *words[8:]).stdout
    assert "20 more states: --json shows them." in many


@pytest.mark.parametrize(
    "stat", [("distinct",), ("incidence",), ("incidence", "--cropped-sum", "3", "--demo")]
)
def test_a_picture_is_drawn(folder, tmp_path, stat):
    target = tmp_path / "picture.png"
    answer(
        folder / "moves.parquet", "--user", "id", *DELETIONS, "--bound", "3",
        "--expected", "15000", "--plot", target, "--stat", *stat,
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
    ordinary, private = throw_away_counters(statistic.plan, statistic.release(**asked))
    assert (ordinary != 0).mean() == pytest.approx(full, abs=0.1)
    assert ordinary.shape == private.shape
    assert (ordinary != private).mean() > 0.05


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--stat", "incidence", "--universe", "9"), "say --bound"),
        (("--stat", "incidence", "--bound", "5"), "--universe, or --expected"),
        (("--stat", "distinct", "--bound", "5"), "--bound is for --stat incidence, cropped-sum"),
        (("--stat", "distinct", "--signed"), "--signed is for --stat incidence, or distinct"),
        (("--stat", "distinct", "--exactly", "1"), "are for --stat incidence"),
        (("--stat", "distinct", "--deletions"), "--deletions needs --delta"),
        (("--stat", "distinct", *DELETIONS), "say --bound"),
        (
            (*INCIDENCE, "--exactly", "6"),
            "--exactly must lie within 0 to 5, the bound: raise the bound",
        ),
        ((*INCIDENCE, "--exactly", "-1"), "states below 0 need --signed"),
        ((*INCIDENCE, "--exactly", "x"), "--exactly must name states"),
        ((*INCIDENCE, "--exactly", "5:1"), "--exactly must name states"),
        ((*INCIDENCE, "--exactly", "0:99999999"), "at most 100,000 states"),
        ((*INCIDENCE, "--at-least", "0"), "--at-least must lie within 1 to 5"),
        ((*INCIDENCE, "--delta", "name"), "whole numbers"),
        ((*INCIDENCE, "--delta", "nothing"), "there is no column"),
        ((*INCIDENCE, "--bound", "99999999999"), "bound must be at most"),
        ((*INCIDENCE, "--memory", "1", "--bound", "300"), "too large for a --memory"),
        (("--stat", "incidence", "--bound", "5", "--expected", "10"), "cannot be read"),
        (("--stat", "distinct", "--universe", "9"), "--universe is for"),
        (("--stat", "distinct", "--expected", "9:5"), "from low to high"),
        (("--stat", "density", "--universe", "9", "--expected", "5"), "--expected is for"),
        ((*INCIDENCE, "--expected", "5"), "--expected is for"),
        ((*INCIDENCE, "--bound", "5.5"), "'5.5' is not a whole number"),
        (
            ("--stat", "incidence", "--bound", "5", "--expected", "9000", "--exactly", "0"),
            "without --universe",
        ),
    ],
)
def test_what_does_not_fit_is_refused(folder, arguments, reason):
    path = folder / "visits.parquet"
    assert reason in refused(path, "--user", "id", "--epsilon", "4", *arguments)


def test_a_negative_delta_needs_the_word(folder):
    message = refused(folder / "moves.parquet", *INCIDENCE, "--epsilon", "4", "--delta", "delta")
    assert "--deletions" in message
    assert f"row {3 * USERS + 1} " in message.replace(",", "")


def test_a_delta_beyond_the_bound_is_refused_by_row(folder, tmp_path):
    path = tmp_path / "far.csv"
    path.write_text("id,delta\n1,1\n2,-6\n")
    assert "row 2 " in refused(path, *INCIDENCE, *DELETIONS, "--epsilon", "4")
    path.write_text("id,delta\n1,1\n2,\n")
    assert "row 2 " in refused(path, *INCIDENCE, *DELETIONS, "--epsilon", "4")
    path.write_text("id,delta\n1,1\n2,0.5\n")
    assert "row 2 " in refused(path, *INCIDENCE, *DELETIONS, "--epsilon", "4")


@pytest.mark.parametrize("stat", [("incidence", "--bound", "5", *DELETIONS), ("density",)])
def test_skipped_rows_count_in_the_row_that_is_named(tmp_path, stat):
    path = tmp_path / "gaps.csv"
    path.write_text("id,delta\n,1\n1,1\n,1\n4711,-60\n")
    words = ("--user", "id", "--universe", "1000", "--epsilon", "4", "--nulls", "skip")
    assert "row 4 " in refused(path, *words, "--stat", *stat)


@pytest.mark.parametrize(
    ("text", "states"),
    [(None, ()), ("3", (3,)), ("0:2", (0, 1, 2)), ("-2:0,7", (-2, -1, 0, 7)), ("4:4", (4,))],
)
def test_states_are_read_as_lists_and_ranges(text, states):
    assert parse_states("--exactly", text) == states


@pytest.mark.parametrize("text", ["", ",", "1:", ":1", "1.5", "1:2:3", "2:1", "a"])
def test_other_texts_name_no_states(text):
    with pytest.raises(PlanError, match="--exactly must name states"):
        parse_states("--exactly", text)
