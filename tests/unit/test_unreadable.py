"""All rows before one that cannot be read count, whatever is wrong with it."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.errors import InputError
from panprivacy.intake.sources.columns import StartError
from panprivacy.intake.sources.unreadable import Skips, halves_of_batch, read_before, readable
from tests.commands import run_command
from tests.unit.reading import pipe

USERS = 300
LINE = '192.0.2.{} - - [21/Nov/2026:08:00:{:02} +0000] "GET / HTTP/1.1" 200 1 "-" "-"\n'
LOG = "".join(LINE.format(n % 200, n % 60) for n in range(USERS))
CSV = "user,x\n" + "".join(f"u{n},1\n" for n in range(USERS))
NDJSON = "".join(f'{{"user":"u{n}","x":1}}\n' for n in range(USERS))
DISTINCT = ("--stat", "distinct,expected=10:1000000")
USER = ("--user", "user")
ADDRESS = ("--user", "remote_addr")
GROUPS = ("--by", "x", "--groups", "1")

# What came, the format, what is counted of it, the reason, and how many users come before it.
CASES = {
    "a row of another width": (CSV + "a,1,2\n", "csv", (*USER, *DISTINCT), "this row 3", USERS),
    "a row within the block": (
        CSV + "a,1,2\n" + CSV * 3, "csv", (*USER, *DISTINCT), "this row 3", USERS
    ),
    "no user": (CSV + ",1\n", "csv", (*USER, *DISTINCT), "user id is null", USERS),
    "no user among those skipped": (
        CSV + ",1\nb,x\n", "csv",
        (*USER, "--nulls", "skip", "--delta", "x", *DISTINCT), "whole numbers", USERS,
    ),
    "a delta that is no number": (
        CSV + "a,b\n", "csv", (*USER, "--delta", "x", *DISTINCT), "whole numbers", USERS
    ),
    "a delta beyond the bound": (
        CSV + "a,99\n", "csv",
        (*USER, "--delta", "x", "--stat", "distinct,deletions,bound=3,expected=10:100000"),
        "delta must lie within", USERS,
    ),
    "another group": (CSV + "a,2\n", "csv", (*USER, *GROUPS, *DISTINCT), "not declared", USERS),
    "text that is no UTF-8": (
        CSV.encode() + b"\xff,1\n", "csv", (*USER, *DISTINCT), "not UTF-8", USERS
    ),
    "fields between quotes": (
        CSV.replace("u1", '"u\n1"') + "a,1,2\n", "csv", (*USER, *DISTINCT), "this row 3", USERS
    ),
    "tabs": (
        CSV.replace(",", "\t") + "a\n", "tsv", (*USER, *DISTINCT), "and this row 1", USERS
    ),
    "an object that is cut off": (
        NDJSON + '{"user": "a', "ndjson", (*USER, *DISTINCT), "one JSON object", USERS
    ),
    "a user that is null": (
        NDJSON + '{"user": null}\n', "ndjson", (*USER, *DISTINCT), "user id is null", USERS
    ),
    "half a line of a log": (
        LOG + "half a line", "combined", (*ADDRESS, *DISTINCT), "combined log format", 200
    ),
    "no address": (
        LOG + "x" + LINE.format(1, 1), "combined", (*ADDRESS, *DISTINCT), "not an IP address", 200
    ),
    "a line unlike the pattern": (
        "".join(f"u{n}\n" for n in range(USERS)) + "\n", "lines",
        ("--pattern", r"^(?P<user>\w+)", *USER, *DISTINCT), "match the pattern", USERS,
    ),
    "events": (
        CSV + "a,1,2\n", "csv", ("--stat", "running-count,horizon=9"), "this row 3", USERS
    ),
    "windows": (
        CSV + "a,1,2\n", "csv", (*USER, "--window", "1d", *DISTINCT), "this row 3", USERS
    ),
}  # fmt: skip


QUICK = ("a row within the block", "no address", "an object that is cut off")
MARKED = [one if one in QUICK else pytest.param(one, marks=pytest.mark.long) for one in CASES]


@pytest.mark.parametrize("case", MARKED)
def test_a_pipe_counts_all_rows_before_the_bad_one(case):
    data, kind, words, reason, users = CASES[case]
    with pipe(data if isinstance(data, bytes) else data.encode()) as path:
        result = run_command("run", path, "--format", kind, *words, "--epsilon", "20", "--json")
    document = json.loads(result.stdout.splitlines()[-1])
    (answer,) = document["answers"]
    assert answer["value"] == pytest.approx(users, abs=40)
    assert document["interrupted"] is True
    if "window" in document:
        assert document["window"]["complete"] is False
    assert result.code == 2
    assert reason in result.stderr
    assert "row " in result.stderr
    assert "all rows before it" in result.stderr


@pytest.mark.parametrize("case", MARKED)
@pytest.mark.parametrize("piped", [False, True])
def test_unreadable_rows_can_be_skipped_wherever_they_are(case, piped, tmp_path):
    """They come once among the good rows here; the answer is of all others."""
    data, kind, words, _, users = CASES[case]
    words = [*words, "--epsilon", "20", "--json", "--skip-unreadable"]
    if "--window" in words and not piped:
        pytest.skip("windows are for pipes")
    path = tmp_path / "input"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    if piped:
        with pipe(path.read_bytes()) as path:
            result = run_command("run", path, "--format", kind, *words)
    else:
        result = run_command("run", path, "--format", kind, *words)
    assert result.code == 0
    document = json.loads(result.stdout.splitlines()[-1])
    assert document["answers"][0]["value"] == pytest.approx(users, abs=40)
    assert "interrupted" not in document
    said = result.stderr.strip()
    assert said.startswith("panprivacy: skipped 1 row that cannot be read; the first: ")


def test_where_no_row_can_be_read_nothing_is_answered(tmp_path):
    path = tmp_path / "access.log"
    path.write_text("one\ntwo\n")
    words = ("--format", "combined", *ADDRESS, *DISTINCT, "--epsilon", "20", "--skip-unreadable")
    result = run_command("run", path, *words)
    assert (result.code, result.stdout) == (2, "")
    assert "no row can be read: skipped 2 rows" in result.stderr


def test_what_is_skipped_depends_on_no_other_row():
    """So that neighbouring streams, which differ in rows that can be read, skip the same."""
    bad = "bad\n"
    for good in ("", LOG, LOG * 3):
        text = (good + bad + good + bad).encode()
        with pipe(text + LINE.format(1, 1).encode()) as path:
            words = ("--format", "combined", *ADDRESS, *DISTINCT, "--epsilon", "20")
            said = run_command("run", path, *words, "--skip-unreadable").stderr
        assert said.startswith("panprivacy: skipped 2 rows")


def test_the_text_of_such_an_answer_says_that_it_is_incomplete():
    with pipe((CSV + "a,1,2\n").encode()) as path:
        result = run_command("run", path, "--format", "csv", *USER, *DISTINCT, "--epsilon", "20")
    assert result.stdout.startswith("Incomplete: ")


@pytest.mark.parametrize("data", ["user,x\na,1,2\n", "user,x\n,1\na,1\n"])
def test_where_the_first_row_is_bad_nothing_is_answered(data):
    with pipe(data.encode()) as path:
        result = run_command("run", path, "--format", "csv", *USER, *DISTINCT, "--epsilon", "20")
    assert (result.code, result.stdout) == (2, "")
    assert "row 1 " in result.stderr


def test_a_file_with_a_bad_row_has_no_answer(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text(CSV + "a,1,2\n")
    result = run_command("run", path, *USER, *DISTINCT, "--epsilon", "20")
    assert (result.code, result.stdout) == (2, "")
    assert f"row {USERS + 1} " in result.stderr


def parse(batch):
    """A batch in which no number is odd, or the first odd one."""
    for row, one in enumerate(batch["n"].to_pylist()):
        if one % 2:
            raise InputError("odd", row=row + 1)
    return batch


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_all_rows_that_can_be_read_are_and_the_others_are_counted(numbers):
    batch, skips = pa.record_batch({"n": numbers}), Skips()
    parts = list(readable(batch, halves_of_batch, parse, skips))
    assert [one for part in parts for one in part["n"].to_pylist()] == [
        one for one in numbers if one % 2 == 0
    ]
    assert skips.rows == sum(one % 2 for one in numbers)
    parts, wrong = read_before(batch, halves_of_batch, parse, None)
    odd = [row for row, one in enumerate(numbers) if one % 2]
    first = odd[0] if odd else len(numbers)
    assert [one for part in parts for one in part["n"].to_pylist()] == numbers[:first]
    assert [one.row for one in wrong] == [row + 1 for row in odd[:1]]
    assert not any(one.__traceback__ or one.__context__ for one in wrong), "frames hold rows"


def test_what_is_wrong_from_the_start_is_not_halved():
    calls = []

    def refuse(batch):
        calls.append(batch.num_rows)
        raise StartError("no such column")

    with pytest.raises(StartError, match="no such column"):
        list(readable(pa.record_batch({"n": [1, 2, 3]}), halves_of_batch, refuse, Skips()))
    assert calls == [3]


def test_skips_say_how_many_and_why_the_first():
    skips = Skips()
    assert str(skips) == "skipped 0 rows that cannot be read"
    skips.add(InputError("first reason", row=1))
    assert str(skips) == "skipped 1 row that cannot be read; the first: first reason"
    for _ in range(1_999):
        skips.add(InputError("another", row=1))
    assert str(skips) == "skipped 2,000 rows that cannot be read; the first: first reason"
