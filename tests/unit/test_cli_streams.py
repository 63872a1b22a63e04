"""The command line on log lines, by group, and by clock window."""

from __future__ import annotations

import itertools
import json
import re
import time
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import panprivacy as pp
from panprivacy.cli.options import zones_like
from panprivacy.cli.publishing import InWindows, Schedule
from panprivacy.intake.programs.counting import make_counting
from panprivacy.statistics.specification import Specification
from tests import refusals
from tests.commands import run_command
from tests.service.running import shared
from tests.unit.reading import pipe, stream_bytes

TIGHT = ("--epsilon", "30")
DISTINCT = "distinct,expected=10:1000000"
LINE = '{} - - [21/Nov/2026:08:00:00 +0000] "GET /{} HTTP/1.1" 200 5 "-" "curl/8"\n'


def answer(*arguments):
    result = run_command("run", *arguments, "--json")
    assert result.code == 0, result.stderr
    return json.loads(result.stdout)


def refused(*arguments):
    result = run_command("run", *arguments)
    assert result.code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line.removeprefix("panprivacy: ")


def distinct(document):
    (row,) = document["answers"]
    return row["value"]


@pytest.fixture
def log(tmp_path):
    """600 IPv4 clients of 3 networks, the same as mapped IPv6 addresses, and 400 others."""
    path = tmp_path / "access.log"
    hosts = [f"10.0.{i % 3}.{i // 3}" for i in range(600)]
    hosts += [f"::ffff:10.0.{i % 3}.{i // 3}" for i in range(600)]
    hosts += [f"2001:db8:{i:x}::{i:x}" for i in range(400)]
    path.write_text("".join(LINE.format(host, i % 7) for i, host in enumerate(hosts)))
    return path


class TestLogs:
    STAT = ("--stat", DISTINCT, *TIGHT)

    def test_addresses_are_read_as_numbers(self, log):
        found = answer(log, "--format", "combined", "--user", "remote_addr", *self.STAT)
        assert distinct(found) == pytest.approx(1_000, abs=30)

    def test_addresses_may_be_taken_as_texts(self, log):
        words = ("--format", "combined", "--user", "remote_addr", "--no-ip", *self.STAT)
        assert distinct(answer(log, *words)) == pytest.approx(1_600, abs=40)

    def test_prefixes(self, log):
        words = ("--format", "combined", "--user", "remote_addr", "--prefix", "24:32", *self.STAT)
        assert distinct(answer(log, *words)) == pytest.approx(4, abs=3)

    def test_any_field(self, log):
        found = answer(log, "--format", "combined", "--user", "request", *self.STAT)
        assert distinct(found) == pytest.approx(7, abs=3)

    def test_a_pattern(self, log):
        words = ("--format", "lines", "--pattern", r"^(?P<who>\S+)", "--user", "who", "--ip")
        assert distinct(answer(log, *words, *self.STAT)) == pytest.approx(1_000, abs=30)

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (("--user", "remote_addr"), "the extension does not tell the format"),
            (("--format", "combined", "--user", "nobody"), "remote_addr"),
            (("--format", "combined", "--user", "request", "--ip"), "this is not an IP address"),
            (("--format", "lines", "--user", "who"), "needs a pattern"),
            (("--format", "lines", "--user", "who", "--pattern", "(?P<who"), "RE2"),
            (("--format", "combined", "--user", "request", "--pattern", "x"), "a pattern is for"),
            (("--format", "combined", "--user", "request", "--prefix", "24"), "24:56"),
            (("--format", "combined", "--user", "request", "--prefix", "40:1"), "24:56"),
            (("--format", "combined", "--user", "x", "--prefix", "8:8", "--no-ip"), "--no-ip"),
        ],
    )
    def test_what_cannot_be_read(self, log, words, says):
        assert says in refused(log, *words, *self.STAT)


def test_a_batch_that_one_statistic_refuses_is_counted_by_none():
    counting = make_counting(
        [Specification.from_text(one) for one in ("distinct,expected=1e3", "density,universe=1e3")],
        epsilon=Fraction(8),
    )
    before = [one.state() for one in counting.statistics.values()]
    with pytest.raises(pp.InputError):
        counting.update([3, 1_100])
    assert [one.state() for one in counting.statistics.values()] == before


ROWS = pa.table({"id": ["a", "b"], "page": ["p", "p"], "delta": [1, 1]})
PIPED = {
    "csv": b"id,page,delta\na,p,1\nb,p,1\n",
    "tsv": b"id\tpage\tdelta\na\tp\t1\n",
    "ndjson": b'{"id": "a", "page": "p", "delta": 1}\n' * 2,
    "arrow": stream_bytes(ROWS),
    "combined": LINE.format("10.0.0.1", "p").encode(),
}


class TestColumnsOfAPipe:
    """They are checked before anything is counted: an answer would be of nothing."""

    STAT = ("--stat", "incidence,bound=3,expected=100", *TIGHT)
    GROUPS = ("--groups", "p", "--ignore-others")

    @pytest.mark.parametrize(
        "words",
        [
            ("--user", "idd"),
            ("--user", "id", "--delta", "detla"),
            ("--user", "id", "--by", "pgae", *GROUPS),
        ],
    )
    @pytest.mark.parametrize("kind", PIPED)
    def test_a_misspelt_one_has_no_answer(self, kind, words):
        if kind == "combined":
            words = [{"id": "remote_addr"}.get(word, word) for word in words]
        with pipe(PIPED[kind]) as path:
            said = refused(path, "--format", kind, *words, *self.STAT)
        assert re.match("there is no (column|field) '(idd|detla|pgae)'", said)

    @pytest.mark.parametrize(
        ("kind", "data"),
        [("csv", b""), ("csv", b"\x1f\x8b\x08"), ("csv", b'{"id": 1}\n'), ("arrow", b"ARROW1")],
    )
    def test_what_cannot_be_read_at_all_has_none(self, kind, data):
        with pipe(data) as path:
            refused(path, "--format", kind, "--user", "id", *self.STAT)

    @pytest.mark.parametrize("words", [("--delta", "delta"), ("--by", "page", "--groups", "p")])
    def test_a_field_that_is_missing_later_is_an_error_of_its_row(self, blocks, words):
        blocks(len(PIPED["ndjson"]) // 2)
        with pipe(PIPED["ndjson"] + b'{"id": "c"}\n') as path:
            result = run_command(
                "run", path, "--format", "ndjson", "--user", "id", *words, *self.STAT
            )
        assert result.code == 2
        assert "panprivacy: row 1 (counting from 1): " in result.stderr
        assert "Guarantee" in result.stdout  # of what came before it


@pytest.fixture
def pages(tmp_path):
    """300 users of page 1, 200 of page 2, each in one."""
    path = tmp_path / "pages.csv"
    rows = [f"u{i},{1 if i < 300 else 2},p{1 if i < 300 else 2}\n" for i in range(500)]
    path.write_text("id,number,page\n" + "".join(rows))
    return path


class TestGroups:
    STAT = ("--user", "id", "--stat", f"{DISTINCT},memory=8192", *TIGHT)

    def values(self, document):
        return {one["group"]: one["value"] for one in document["answers"]}

    def test_each_group_is_counted(self, pages):
        found = answer(pages, *self.STAT, "--by", "page", "--groups", "p1, p2,p3")
        assert self.values(found) == pytest.approx({"p1": 300, "p2": 200, "p3": 0}, abs=20)
        assert found["per_user"] == 1
        assert found["epsilon"] == 30

    def test_groups_that_are_numbers(self, pages, tmp_path):
        table = pa.table({"id": [f"u{i}" for i in range(500)], "page": [1] * 300 + [2] * 200})
        pq.write_table(table, tmp_path / "pages.parquet")
        found = answer(tmp_path / "pages.parquet", *self.STAT, "--by", "page", "--groups", "1,2")
        assert self.values(found) == pytest.approx({"1": 300, "2": 200}, abs=20)

    def test_the_text_has_a_column_of_groups(self, pages):
        words = ("--by", "page", "--groups", "p1,p2", "--per-user", "2")
        result = run_command("run", pages, *self.STAT, *words)
        assert result.stdout.splitlines()[0].split()[:2] == ["statistic", "group"]
        assert "for a user in at most 2 groups" in result.stdout

    def test_every_statistic_can_be_grouped(self, tmp_path):
        path = tmp_path / "moves.csv"
        rows = "".join(f"{i},a,1\n{i},b,1\n{i},b,-1\n" for i in range(90))
        path.write_text("id,page,delta\n" + rows)
        found = answer(
            path, "--user", "id", "--stat", "density,universe=100",
            "--stat", "incidence,universe=100,bound=1,exactly=0:1",
            "--by", "page", "--groups", "a,b", "--per-user", "2", "--delta", "delta",
            "--epsilon", "60",
        )["answers"]  # fmt: skip
        values = {(row["question"], row["argument"], row["group"]): row["value"] for row in found}
        assert len(values) == len(found) == 6
        assert values["density", None, "a"] == pytest.approx(0.9, abs=0.05)
        assert values["density", None, "b"] == pytest.approx(0, abs=0.05)
        assert values["exactly", 0, "b"] == pytest.approx(100, abs=9)

    def test_undeclared_groups_name_their_row_or_are_left_out(self, pages):
        words = (*self.STAT, "--by", "page", "--groups", "p1")
        said = refused(pages, *words)
        assert "row 301" in said
        assert "p2" not in said
        assert self.values(answer(pages, *words, "--ignore-others"))["p1"] == pytest.approx(
            300, abs=20
        )

    def test_rows_are_named_beside_skipped_ones(self, tmp_path):
        path = tmp_path / "nulls.csv"
        path.write_text("id,page\na,p1\n,p1\n,p9\nb,p9\n")
        words = ("--by", "page", "--groups", "p1", "--nulls", "skip")
        assert "row 4" in refused(path, *self.STAT, *words)

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (("--by", "page"), "--by COL and --groups"),
            (("--groups", "a"), "--by COL and --groups"),
            (("--per-user", "2"), "--per-user and --ignore-others are for --by"),
            (("--by", "page", "--groups", "a,a"), "different labels"),
            (("--by", "page", "--groups", "a,,b"), "an empty name"),
            (("--windows", "9"), "--windows is for --window"),
            (("--zone", "Europe/Paris"), "--zone is for --window"),
            (
                ("--by", "page", "--groups", "a,b", "--per-user", "3"),
                "must be at most 2",
            ),
            (("--by", "page", "--groups", "p1,p2", "--demo"), "leave out --window and --by"),
            (("--by", "page", "--groups", "p1,p2", "--plot", "x.png"), "leave out --window"),
            (("--by", "nothing", "--groups", "p1,p2"), "there is no column"),
            (("--by", "id", "--groups", "p1,p2"), "asked for twice"),
        ],
    )
    def test_wrong_arguments(self, pages, words, says):
        assert says in refused(pages, *self.STAT, *words)


def until_idle(lines):
    """What is printed up to the first window in which nothing came, once something has come."""
    printed, came = [], 0
    while came < 350 or distinct(printed[-1]) > 9:
        printed.append(json.loads(lines.readline()))
        came += distinct(printed[-1])
    return printed


class TestWindows:
    COMMAND = (
        "run", "-", "--format", "csv", "--user", "id",
        "--stat", DISTINCT, *TIGHT, "--window", "1s",
    )  # fmt: skip

    @staticmethod
    def printed(*words):
        """What it prints of one user."""
        with shared().piped(words) as run:
            printed, _ = run.communicate(b"id\na\n")
        assert run.returncode == 0
        return printed.decode()

    @pytest.mark.long
    def test_each_window_answers_for_itself_and_idle_ones_too(self):
        with shared().piped([*self.COMMAND, "--json", "--windows", "7"]) as run:
            first = json.loads(run.stdout.readline())  # of a window in which nothing came
            run.stdin.write(b"id\n" + b"".join(b"%d\n" % i for i in range(400)))
            run.stdin.flush()
            found = [first, *until_idle(run.stdout)]
            rest, _ = run.communicate(b"".join(b"%d\n" % i for i in range(200)))
        idle = len(found)
        found += map(json.loads, rest.splitlines())
        values = [distinct(one) for one in found]
        assert values[0] == pytest.approx(0, abs=9)
        assert sum(values[1:idle]) == pytest.approx(400, abs=40)  # rows may fall in two windows
        assert values[idle - 1] == pytest.approx(0, abs=9)
        assert sum(values[idle:]) == pytest.approx(200, abs=40)
        spans = [one["window"] for one in found]
        assert all(one["end"] == other["start"] for one, other in itertools.pairwise(spans))
        assert found[0]["loss"]["windows"] == 7
        unseen = pp.DistinctCount(
            epsilon=30, expected=(10, 10**6), memory=65_536
        ).guarantee.unseen_loss.epsilon
        assert found[0]["loss"]["epsilon"] == pytest.approx(float(30 + 6 * unseen))

    @pytest.mark.long
    def test_a_bad_row_does_not_take_along_what_came_through_a_pipe(self):
        command = [*self.COMMAND[:-2], "--every", "1", "--releases", "60", "--json"]
        with shared().piped(command) as run:
            run.stdin.write(b"id,x\n" + b"".join(b"%d,1\n" % i for i in range(4_000)))
            run.stdin.flush()
            while distinct(json.loads(run.stdout.readline())) < 2_000:
                pass
            printed, said = run.communicate(b",1\n")
        assert run.returncode == 2
        assert b"user id is null" in said
        last = json.loads(printed.splitlines()[-1])
        assert distinct(last) == pytest.approx(4_000, abs=1_500)

    @pytest.mark.long
    def test_a_window_that_learns_is_planned_anew(self):
        """The second whole window is planned for what the first one released: nobody."""
        stat = "distinct,memory=1024,expected=learn:10:1e6"
        words = [
            "run", "-", "--format", "csv", "--user", "id", "--stat", stat,
            "--epsilon", "10", "--window", "1s", "--json",
        ]  # fmt: skip
        with shared().piped(words) as run:
            run.stdin.write(b"id\n")
            run.stdin.flush()
            found = [json.loads(run.stdout.readline()) for _ in range(5)]
            run.communicate()
        assert all(distinct(one) < 9 for one in found)
        assert found[-1]["state_bytes"] < found[0]["state_bytes"]
        assert len({one["loss"]["epsilon"] for one in found}) == 1

    @pytest.mark.long
    def test_the_text_says_that_the_size_follows_answers_where_windows_learn(self):
        stat = "distinct,expected=learn:10:1e6"
        learns = self.printed(*(stat if word == DISTINCT else word for word in self.COMMAND))
        assert " bytes, as earlier answers have it." in learns

    @pytest.mark.long
    def test_the_text_says_when_and_what_several_windows_cost(self):
        printed = self.printed(*self.COMMAND)
        assert " bytes, whatever the stream." in printed
        assert printed.splitlines()[0].endswith("UTC (partial)")
        assert "over 31,536,000 windows, one of them seen, epsilon" in printed

    @pytest.mark.long
    def test_days_of_a_zone_are_told_as_its_clock_shows_them(self):
        command = [*self.COMMAND[:-1], "1d", "--zone", "Asia/Kolkata"]
        text, document = (self.printed(*command, *more) for more in ([], ["--json"]))
        moment = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+05:30"
        assert re.fullmatch(f"{moment} to {moment} Asia/Kolkata .partial.", text.splitlines()[0])
        assert json.loads(document)["window"]["end"].endswith("+00:00")

    def test_days_of_a_zone_end_at_its_midnight(self):
        each = partial(make_counting, [Specification.from_text("distinct")], epsilon=Fraction(1))
        daily = InWindows(each, Schedule(1, None, 86_400, zone="Asia/Kolkata"), 0.95)
        ends = datetime.now(UTC) + timedelta(seconds=daily.deadline() - time.monotonic())
        shown = (ends + timedelta(seconds=30)).astimezone(ZoneInfo("Asia/Kolkata"))
        assert (shown.hour, shown.minute) == (0, 0)

    @pytest.mark.parametrize(("typed", "offered"), [("Europe/Par", ["Europe/Paris"]), ("?", [])])
    def test_the_shell_completes_zones(self, typed, offered):
        assert zones_like(typed) == offered

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (("--window", "1d"), "--window is for a pipe"),
            (("--window", "1d", "--every", "5", "--releases", "3"), "leave out --every"),
            (("--window", "1d", "--releases", "3"), "leave out --every and --releases"),
            (("--window", "1d", "--demo"), "leave out --window and --by"),
            (("--window", "1d", "--windows", "0"), "--windows must be"),
            (("--stat", "distinct,as=more,expected=learn"), "expected=learn is for --window"),
            (("--window", "1d", "--zone", "Europe/Pari"), "did you mean Europe/Paris?"),
            (("--window", "day"), "'day' is not a length of time"),
            (("--window", "0d"), "'0d' is not a length of time"),
            (("--window", "9999999d"), "--window must be"),
        ],
    )
    def test_wrong_arguments(self, pages, words, says):
        assert says in refused(pages, "--user", "id", "--stat", DISTINCT, *TIGHT, *words)


def test_a_count_that_is_forgotten_cannot_go_on():
    count = pp.DistinctCount(epsilon=1, expected=100)
    count.forget()
    with refusals.wiped():
        count.update(["a"])


def test_the_epsilon_that_would_do_is_that_of_the_option(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("id,page\n1,a\n")
    words = (
        "--user", "id", "--stat", "density,universe=100", "--by", "page",
        "--groups", "a,b,c,d", "--per-user", "4",
    )  # fmt: skip
    said = refused(path, *words, "--epsilon", "1")
    epsilon = re.search(r"epsilon ([\d.]+) would do", said)[1]
    assert float(epsilon) > 2
    assert run_command("run", path, *words, "--epsilon", epsilon).code == 0
