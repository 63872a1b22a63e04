"""`panprivacy run` with cropped sums, soft thresholds and heavy hitters."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import panprivacy as pp
from panprivacy.programs.pictures import throw_away_blocks
from tests.commands import run_command

USERS = 6_000
OFTEN = np.arange(USERS) % 7
"""How often each user comes; a seventh of them never."""

HEAVY_USERS, HELD, LIGHT_USERS = 600, 3, 2_400
"""Of those who are heavy, each holds `HELD` times 1/1000 of 3,000 rows and more; others 1 row."""

TOTAL = HEAVY_USERS * HELD * 2 + LIGHT_USERS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`visits`: a row a visit. `held`: a row a user, and how much each holds."""
    path = tmp_path_factory.mktemp("blocks")
    visits = np.repeat(np.arange(USERS), OFTEN)
    table = pa.table({"id": visits, "name": [f"patient-{user}" for user in visits]})
    pq.write_table(table, path / "visits.parquet")
    amounts = np.r_[np.full(HEAVY_USERS, 2 * HELD), np.ones(LIGHT_USERS, np.int64)]
    names = [f"patient-{user}" for user in range(len(amounts))]
    pq.write_table(pa.table({"name": names, "amount": amounts}), path / "held.parquet")
    return path


def answer(path, *arguments):
    result = run_command("run", path, "--epsilon", "8", "--json", *arguments)
    assert result.code == 0, result.stderr
    return json.loads(result.stdout)


def refused(*arguments):
    result = run_command("run", *arguments)
    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert "patient" not in result.stderr
    return result.stderr


CROPPED = ("--user", "id", "--stat", "cropped-sum", "--tau", "3")
BUSY = ("--user", "id", "--stat", "threshold", "--least", "5")
HEAVY = ("--user", "name", "--delta", "amount", "--stat", "heavy-hitters")
THRESHOLD = ("--k", "1000", "--total", str(TOTAL))
ALL = ("--universe", str(USERS))


def assert_holds(interval, truth):
    """Within the interval, widened so far that one run in a million is outside."""
    assert interval["low"] <= interval["value"] <= interval["high"]
    reach = 3 * max(interval["high"] - interval["value"], interval["value"] - interval["low"])
    assert abs(interval["value"] - truth) < reach


@pytest.mark.parametrize("users", [ALL, ("--expected", "6000"), (*ALL, "--bound", "6")])
def test_a_cropped_sum_is_counted_and_known_in_a_demonstration(folder, users):
    document = answer(folder / "visits.parquet", *CROPPED, *users, "--demo")
    truth = float(np.minimum(OFTEN, 3).sum())
    assert document["demonstration"]["truth"] == {"cropped-sum": truth}
    assert document["demonstration"]["beyond"] == 0
    assert "heavy" not in document["demonstration"]
    assert set(document["statistics"]["cropped-sum"]) == {
        *("value", "low", "high", "confidence", "epsilon")
    }
    assert_holds(document["statistics"]["cropped-sum"], truth)


@pytest.mark.parametrize("users", [ALL, (*ALL, "--bound", "6")])
def test_a_soft_threshold_is_counted_and_known_in_a_demonstration(folder, users):
    """Blocks of 5 // 2: who comes 4 times or more counts in full, who comes 3 times by half."""
    document = answer(folder / "visits.parquet", *BUSY, *users, "--demo")
    truth = float((OFTEN >= 4).sum() + (OFTEN == 3).sum() / 2)
    facts = document["demonstration"]
    assert facts["truth"] == {"threshold": truth}
    assert (facts["beyond"], facts["full"]) == (0, int((OFTEN >= 5).sum()))
    assert set(document["statistics"]["threshold"]) == {
        *("value", "low", "high", "confidence", "epsilon")
    }
    assert_holds(document["statistics"]["threshold"], truth)


def test_heavy_hitters_are_counted_and_known_in_a_demonstration(folder):
    """1/1000 of the total is 6; who holds that counts in full, who holds 1 does not."""
    assert TOTAL == 6_000
    document = answer(folder / "held.parquet", *HEAVY, *THRESHOLD, "--demo")
    facts = document["demonstration"]
    assert facts["truth"] == {"heavy-hitters": HEAVY_USERS}
    assert (facts["heavy"], facts["deltas"]) == (HEAVY_USERS, TOTAL)
    assert_holds(document["statistics"]["heavy-hitters"], HEAVY_USERS)


def test_the_truth_of_users_between_the_thresholds_is_a_share(tmp_path):
    path = tmp_path / "held.csv"
    path.write_text("name,amount\na,3\nb,4\nc,5\nd,6\ne,5982\n")
    result = run_command(
        "run", path, *HEAVY, "--k", "1000", "--total", "6000", "--epsilon", "8", "--demo"
    )
    assert "2 users hold 1/k of the total or more; all deltas add up to 6,000" in result.stdout
    assert result.stdout.splitlines()[1].split()[-1] == "3"  # 0 + 1/3 + 2/3 + 1 + 1


def test_the_truth_of_users_below_and_beyond_a_soft_threshold(tmp_path):
    path = tmp_path / "often.csv"
    path.write_text("id,n\n1,5\n2,6\n3,9\n4,10\n5,30\n5,20\n6,-7\n")
    words = ("--user", "id", "--delta", "n", "--stat", "threshold", "--least", "10")
    sizes = ("--universe", "900", "--bound", "40", "--epsilon", "8", "--deletions")
    result = run_command("run", path, *words, *sizes, "--demo")
    assert "2 users are at the threshold or above" in result.stdout
    assert "2 users went beyond the bound" in result.stdout  # 50 above, and -7 below 0
    assert result.stdout.splitlines()[1].split()[-1] == "3"  # 0 + 1/5 + 4/5 + 1 + 1


def test_all_share_epsilon_with_the_others(folder):
    document = answer(
        folder / "visits.parquet", *CROPPED, *ALL, "--stat", "heavy-hitters", "--k", "1000",
        "--total", str(OFTEN.sum()), "--stat", "distinct", "--stat", "incidence", "--bound", "6",
        "--cropped-sum", "2", "--stat", "threshold", "--least", "4", "--epsilon", "32", "--demo",
    )  # fmt: skip
    names = ["cropped-sum", "heavy-hitters", "distinct", "incidence", "threshold"]
    assert {"full", "heavy", "deltas"} < set(document["demonstration"])
    assert list(document["statistics"]) == names
    assert document["epsilon"] == 32


def test_each_group_has_a_sum_of_its_own(folder, tmp_path):
    path = tmp_path / "pages.csv"
    rows = [f"{user},{'ab'[user % 2]}\n" for user in range(4_000) for _ in range(3)]
    path.write_text("id,page\n" + "".join(rows))
    words = ("--universe", "4000", "--by", "page", "--groups", "a,b")
    groups = answer(path, *CROPPED, *words)["statistics"]["cropped-sum"]["groups"]
    for interval in groups.values():
        assert_holds(interval, 6_000)


def test_memory_limits_the_counters(folder):
    for words in ((*CROPPED, *ALL), (*CROPPED, "--expected", "6000"), (*BUSY, *ALL)):
        document = answer(folder / "visits.parquet", *words, "--memory", "30000")
        assert document["state_bytes"] < 31_000


def test_users_beyond_the_bound_are_told_in_a_demonstration(tmp_path):
    path = tmp_path / "often.csv"
    path.write_text("id\n" + "5\n" * 40 + "".join(f"{user}\n" for user in range(2_000)))
    document = answer(path, *CROPPED, "--universe", "3000", "--bound", "4", "--demo")
    assert document["demonstration"]["beyond"] == 1
    assert document["demonstration"]["truth"] == {"cropped-sum": 2_002}


@pytest.mark.parametrize("stat", ["cropped", "hashed", "threshold", "heavy"])
def test_a_picture_is_drawn(folder, tmp_path, stat):
    target = tmp_path / "picture.png"
    path, *words = {
        "cropped": (folder / "visits.parquet", *CROPPED, *ALL),
        "hashed": (folder / "visits.parquet", *CROPPED, "--expected", "6000"),
        "threshold": (folder / "visits.parquet", *BUSY, *ALL, "--demo"),
        "heavy": (folder / "held.parquet", *HEAVY, *THRESHOLD, "--demo"),
    }[stat]
    answer(path, *words, "--plot", target)
    assert target.read_bytes().startswith(b"\x89PNG")


def test_made_up_users_are_as_many_as_the_answer_says():
    plan = pp.CroppedSum(tau=3, universe=USERS, epsilon=4).plan
    exact, noisy = throw_away_blocks(plan, 1.5 * USERS)
    assert set(exact.ravel()) == {0, 3}
    assert (exact != 0).mean() == pytest.approx(0.5, abs=0.1)
    assert (exact != noisy).mean() > 0.05
    busy = pp.ThresholdCount(least=5, universe=USERS, epsilon=4).plan
    exact, _ = throw_away_blocks(busy, USERS / 4)
    assert set(exact.ravel()) == {0, 4}
    assert (exact != 0).mean() == pytest.approx(0.25, abs=0.1)
    heavy = pp.HeavyHitterCount(k=1_000, total=20_000, epsilon=8, cells=4_000).plan
    exact, _ = throw_away_blocks(heavy, 1_000)
    assert {0, heavy.high} <= set(exact.ravel())


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--stat", "cropped-sum", *ALL), "--stat cropped-sum needs --tau: the most that"),
        (("--stat", "distinct", "--tau", "3"), "--tau is for --stat cropped-sum"),
        (CROPPED[2:], "--stat cropped-sum needs --universe, or --expected: how many"),
        ((*CROPPED, *ALL, "--bound", "2"), "tau (3) exceeds the bound (2): no state"),
        ((*CROPPED, *ALL, "--tau", "0"), "--tau must be a whole number of at least 1"),
        ((*CROPPED, *ALL, "--tau", "few"), "'few' is not a whole number"),
        ((*CROPPED, *ALL, "--signed"), "--signed is for --stat incidence, or distinct with"),
        ((*CROPPED, *ALL, "--cropped-sum", "3"), "cropped-sum takes --tau"),
        ((*CROPPED, *ALL, "--expected", "9"), "--expected is for open-ended ids"),
        ((*CROPPED, "--expected", "6000", "--memory", "9"), "--memory must be at least "),
        ((*CROPPED, "--expected", "20"), "times the largest sum, 60: the answer would be noise"),
        ((*BUSY[2:4], *ALL), "--stat threshold needs --least: the state from which on"),
        (BUSY[2:], "--stat threshold needs --universe: how many users there could be"),
        ((*BUSY[2:], "--expected", "9"), "--expected is for open-ended ids: --universe says"),
        (("--stat", "distinct", "--least", "3"), "--least is for --stat threshold\n"),
        (
            ("--stat", "incidence", *ALL, "--bound", "9", "--least", "3"),
            "incidence takes --at-least",
        ),
        (
            ("--stat", "incidence", *ALL, "--bound", "9", "--tau", "3"),
            "incidence takes --cropped-sum",
        ),
        ((*BUSY, *ALL, "--at-least", "3"), "incidence; threshold takes --least\n"),
        ((*BUSY, *ALL, "--tau", "3"), "--tau is for --stat cropped-sum\n"),
        ((*BUSY, *ALL, "--signed"), "--signed is for --stat incidence, or distinct with"),
        ((*BUSY, *ALL, "--least", "1"), "--least must be at least 2; for who came at all"),
        ((*BUSY, *ALL, "--least", "few"), "'few' is not a whole number"),
        ((*BUSY, *ALL, "--bound", "4"), "least (5) exceeds the bound (4): nobody would count"),
        ((*BUSY, "--universe", "60"), "universes: the answer would be noise; epsilon "),
        (("--stat", "heavy-hitters", "--k", "9"), "heavy-hitters needs --k and --total"),
        (("--stat", "heavy-hitters", "--total", "9"), "heavy-hitters needs --k and --total"),
        (("--stat", "distinct", "--k", "9", "--total", "99"), "--k and --total are for --stat"),
        (("--stat", "heavy-hitters", "--k", "9", "--total", "9"), "total (9) must be at least 2 k"),
        (("--stat", "heavy-hitters", "--k", "0", "--total", "9"), "--k must be a whole number"),
        (("--stat", "heavy-hitters", "--k", "99999", "--total", "9"), "--k must be at most 32,768"),
        (("--stat", "heavy-hitters", *THRESHOLD, "--expected", "9"), "any number of users"),
        (("--stat", "heavy-hitters", *THRESHOLD, *ALL), "--universe is for --stat density,"),
        (("--stat", "heavy-hitters", *THRESHOLD, "--bound", "9"), "--bound is for"),
        (("--stat", "heavy-hitters", "--k", "50", "--total", "900"), "times k: the answer would"),
    ],
)
def test_what_does_not_fit_is_refused(folder, arguments, reason):
    words = ("--user", "id", "--epsilon", "1", *arguments)
    assert reason in refused(folder / "visits.parquet", *words)


def test_a_delta_beyond_the_total_is_refused_by_row(tmp_path):
    path = tmp_path / "held.csv"
    path.write_text("name,amount\na,6000\nb,6001\n")
    assert "row 2 " in refused(path, *HEAVY, *THRESHOLD, "--epsilon", "8")
