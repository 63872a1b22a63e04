"""`panprivacy run` with counts of counts, deltas and deletions."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from panprivacy.cli.options import parse_states
from panprivacy.errors import PlanError
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


def test_text_output_shows_a_line_a_state_and_says_what_is_left_out(folder):
    words = ("run", folder / "visits.parquet", *INCIDENCE, "--epsilon", "4")
    lines = run_command(*words).stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:4]] == [["exactly", str(n)] for n in range(3)]
    many = run_command(*words[:6], "--bound", "40", *words[8:]).stdout
    assert "20 more states: --json shows them." in many


@pytest.mark.parametrize("stat", ["incidence", "distinct"])
def test_a_picture_is_drawn(folder, tmp_path, stat):
    target = tmp_path / "picture.png"
    answer(
        folder / "moves.parquet", "--user", "id", "--stat", stat, *DELETIONS, "--bound", "3",
        "--expected", "15000", "--plot", target,
    )  # fmt: skip
    assert target.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--stat", "incidence", "--universe", "9"), "say --bound"),
        (("--stat", "incidence", "--bound", "5"), "--universe, or --expected"),
        (("--stat", "distinct", "--bound", "5"), "--bound and --signed are for"),
        (("--stat", "distinct", "--signed"), "--bound and --signed are for"),
        (("--stat", "distinct", "--exactly", "1"), "are for --stat incidence"),
        (("--stat", "distinct", "--deletions"), "--deletions needs --delta"),
        (("--stat", "distinct", *DELETIONS), "say --bound"),
        ((*INCIDENCE, "--exactly", "6"), "exactly must be at most 5"),
        ((*INCIDENCE, "--exactly", "-1"), "exactly must be"),
        ((*INCIDENCE, "--exactly", "x"), "--exactly must name states"),
        ((*INCIDENCE, "--exactly", "5:1"), "--exactly must name states"),
        ((*INCIDENCE, "--exactly", "0:99999999"), "names more than"),
        ((*INCIDENCE, "--at-least", "0"), "at_least must be"),
        ((*INCIDENCE, "--delta", "name"), "whole numbers"),
        ((*INCIDENCE, "--delta", "nothing"), "there is no column"),
        ((*INCIDENCE, "--bound", "99999999999"), "bound must be at most"),
        ((*INCIDENCE, "--memory", "1", "--bound", "100"), "too large for a --memory"),
        (("--stat", "incidence", "--bound", "5", "--expected", "10"), "cannot be read"),
        (
            ("--stat", "incidence", "--bound", "5", "--expected", "9000", "--exactly", "0"),
            "without universe=",
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
