"""`panprivacy run` with cropped sums, soft thresholds and heavy hitters."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import panprivacy as pp
from panprivacy.intake.programs.pictures import throw_away_cells
from panprivacy.statistics.release import Answers
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
    epsilon = () if "--epsilon" in arguments else ("--epsilon", "8")
    result = run_command("run", path, *epsilon, "--json", *arguments)
    assert result.code == 0, result.stderr
    return json.loads(result.stdout)


def refused(*arguments):
    result = run_command("run", *arguments)
    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert "patient" not in result.stderr
    return result.stderr


ID = ("--user", "id", "--stat")
CROPPED, BUSY = "cropped-sum,tau=3", "threshold,threshold=5"
HOLDERS = ("--user", "name", "--delta", "amount", "--stat")
HEAVY = f"heavy-hitters,k=1000,total={TOTAL}"
ALL = f",universe={USERS}"


def assert_holds(interval, truth):
    """Within the interval, widened so far that one run in a million is outside."""
    assert interval["low"] <= interval["value"] <= interval["high"]
    reach = 3 * max(interval["high"] - interval["value"], interval["value"] - interval["low"])
    assert abs(interval["value"] - truth) < reach


@pytest.mark.parametrize("users", [ALL, ",expected=6000", f"{ALL},bound=6"])
def test_a_cropped_sum_is_counted_and_known_in_a_demonstration(folder, users):
    document = answer(folder / "visits.parquet", *ID, CROPPED + users, "--demo")
    truth = float(np.minimum(OFTEN, 3).sum())
    (row,) = document["answers"]
    assert row["truth"] == truth
    assert (row["question"], row["arguments"]) == ("cropped_sum", "tau=3")
    facts = document["demonstration"]
    assert (facts["beyond"], facts["besides"]) == (0, [])
    assert_holds(row, truth)


@pytest.mark.parametrize("users", [ALL, f"{ALL},bound=6"])
def test_a_soft_threshold_is_counted_and_known_in_a_demonstration(folder, users):
    """Blocks of 5 // 2: who comes 4 times or more counts in full, who comes 3 times by half."""
    document = answer(folder / "visits.parquet", *ID, BUSY + users, "--demo")
    truth = float((OFTEN >= 4).sum() + (OFTEN == 3).sum() / 2)
    (row,), facts = document["answers"], document["demonstration"]
    assert (row["truth"], facts["beyond"]) == (truth, 0)
    full = int((OFTEN >= 5).sum())
    assert any(f"{full:,} users are at the threshold" in fact for fact in facts["besides"])
    assert_holds(row, truth)


def test_heavy_hitters_are_counted_and_known_in_a_demonstration(folder):
    """1/1000 of the total is 6; who holds that counts in full, who holds 1 does not."""
    assert TOTAL == 6_000
    document = answer(folder / "held.parquet", *HOLDERS, HEAVY, "--demo")
    (row,), facts = document["answers"], document["demonstration"]["besides"]
    assert row["truth"] == HEAVY_USERS
    assert facts == [
        f"{HEAVY_USERS} users hold 1/k of the total or more", f"all deltas add up to {TOTAL:,}",
    ]  # fmt: skip
    assert_holds(row, HEAVY_USERS)


def test_the_truth_of_users_between_the_thresholds_is_a_share(tmp_path):
    path = tmp_path / "held.csv"
    path.write_text("name,amount\na,3\nb,4\nc,5\nd,6\ne,5982\n")
    result = run_command(
        "run", path, *HOLDERS, "heavy-hitters,k=1000,total=6000", "--epsilon", "8", "--demo"
    )
    assert "2 users hold 1/k of the total or more; all deltas add up to 6,000" in result.stdout
    assert result.stdout.splitlines()[1].split()[-1] == "3"  # 0 + 1/3 + 2/3 + 1 + 1


def test_the_truth_of_users_below_and_beyond_a_soft_threshold(tmp_path):
    path = tmp_path / "often.csv"
    path.write_text("id,n\n1,5\n2,6\n3,9\n4,10\n" + "5,40\n" * 50 + "6,-7\n")
    words = ("--user", "id", "--delta", "n", "--epsilon", "8", "--demo")
    stat = "threshold,threshold=10,universe=900,bound=40"
    result = run_command("run", path, *words, "--stat", stat)
    assert "2 users are at the threshold or above" in result.stdout
    assert "2 users went beyond the bound" in result.stdout  # 2,000 above, and -7 below 0
    assert result.stdout.splitlines()[1].split()[-1] == "3"  # 0 + 1/5 + 4/5 + 1 + 1


@pytest.mark.parametrize(
    ("stat", "noted"),
    [
        ("threshold,threshold=10,universe=900", True),
        ("threshold,threshold=10,universe=900,below=0", False),
        ("incidence,bound=40,universe=900,at_least=2", True),
        ("incidence,bound=40,universe=900,signed,at_least=2", False),
    ],
)
def test_a_note_speaks_of_users_below_0_only_where_deltas_are_read(tmp_path, stat, noted):
    """Without them no user can be there."""
    path = tmp_path / "often.csv"
    path.write_text("id,n\n" + "".join(f"{user},12\n" for user in range(800)))
    words = "run", path, "--user", "id", "--stat", stat, "--epsilon", "4"
    deltas = run_command(*words, "--delta", "n")
    assert ("users with a sum of deltas below 0 count" in deltas.stdout) is noted
    assert "below 0 count" not in run_command(*words).stdout


@pytest.mark.long
def test_all_share_epsilon_with_the_others(folder):
    document = answer(
        folder / "visits.parquet", *ID, CROPPED + ALL,
        "--stat", f"heavy-hitters,k=1000,total={OFTEN.sum()}", "--stat", "distinct",
        "--stat", f"incidence,bound=6,cropped_sum=2{ALL}",
        "--stat", f"threshold,threshold=4{ALL}", "--epsilon", "32", "--demo",
    )  # fmt: skip
    names = ["cropped-sum", "heavy-hitters", "distinct", "incidence", "threshold"]
    assert len(document["demonstration"]["besides"]) == 3
    assert [row["statistic"] for row in document["answers"]] == names
    assert document["epsilon"] == 32


def test_each_group_has_a_sum_of_its_own(folder, tmp_path):
    path = tmp_path / "pages.csv"
    rows = [f"{user},{'ab'[user % 2]}\n" for user in range(4_000) for _ in range(3)]
    path.write_text("id,page\n" + "".join(rows))
    words = (f"{CROPPED},universe=4000", "--by", "page", "--groups", "a,b")
    rows = answer(path, *ID, *words)["answers"]
    assert [row["group"] for row in rows] == ["a", "b"]
    for row in rows:
        assert_holds(row, 6_000)


def test_the_same_statistic_may_be_asked_twice_under_names_of_its_own(folder):
    stats = ("cropped-sum,tau=1,as=once" + ALL, "--stat", CROPPED + ALL)
    rows = answer(folder / "visits.parquet", *ID, *stats, "--demo")["answers"]
    assert [(row["statistic"], row["argument"]) for row in rows] == [
        ("once", 1), ("cropped-sum", 3),
    ]  # fmt: skip
    assert [row["truth"] for row in rows] == [np.minimum(OFTEN, tau).sum() for tau in (1, 3)]


def test_memory_limits_the_counters(folder):
    for stat in (CROPPED + ALL, f"{CROPPED},expected=6000", BUSY + ALL):
        document = answer(folder / "visits.parquet", *ID, f"{stat},memory=30000")
        assert document["state_bytes"] < 31_000


def test_users_beyond_the_bound_are_told_in_a_demonstration(tmp_path):
    path = tmp_path / "often.csv"
    path.write_text("id\n" + "5\n" * 400 + "".join(f"{user}\n" for user in range(2_000)))
    document = answer(path, *ID, f"{CROPPED},universe=3000,bound=4", "--demo")
    assert document["demonstration"]["beyond"] == 1
    assert document["answers"][0]["truth"] == 2_002


@pytest.mark.long
@pytest.mark.parametrize("stat", ["cropped", "hashed", "threshold", "heavy"])
def test_a_picture_is_drawn(folder, tmp_path, stat):
    target = tmp_path / "picture.png"
    path, *words = {
        "cropped": (folder / "visits.parquet", *ID, CROPPED + ALL),
        "hashed": (folder / "visits.parquet", *ID, f"{CROPPED},expected=6000"),
        "threshold": (folder / "visits.parquet", *ID, BUSY + ALL, "--demo"),
        "heavy": (folder / "held.parquet", *HOLDERS, HEAVY, "--demo"),
    }[stat]
    answer(path, *words, "--plot", target)
    assert target.read_bytes().startswith(b"\x89PNG")


def throw_away(plan, value):
    """The cells of a picture of this answer."""
    return throw_away_cells(plan, Answers([pp.Release(value, value, value, 0.95, 1.0, ())]))


@pytest.mark.long
def test_made_up_users_are_as_many_as_the_answer_says():
    plan = pp.CroppedSum(tau=3, universe=USERS, epsilon=4).plan
    exact, noisy = throw_away(plan, 1.5 * USERS)
    assert set(exact.ravel()) == {0, 3}
    assert (exact != 0).mean() == pytest.approx(0.5, abs=0.1)
    assert (exact != noisy).mean() > 0.05
    busy = pp.ThresholdCount(threshold=5, universe=USERS, epsilon=4).plan
    exact, _ = throw_away(busy, USERS / 4)
    assert set(exact.ravel()) == {0, 4}
    assert (exact != 0).mean() == pytest.approx(0.25, abs=0.1)
    heavy = pp.HeavyHitterCount(k=1_000, total=20_000, epsilon=8, cells=4_000).plan
    exact, _ = throw_away(heavy, 1_000)
    assert {0, heavy.high} <= set(exact.ravel())


@pytest.mark.parametrize(
    ("stat", "reason"),
    [
        ("cropped-sum" + ALL, "cropped-sum needs tau=: the most that a user counts for"),
        ("distinct,tau=3", "distinct has no tau="),
        (CROPPED, "say either universe= (how many users there could be)"),
        (f"{CROPPED}{ALL},bound=2", "tau (3) exceeds the bound (2): no state"),
        (f"cropped-sum,tau=0{ALL}", "tau must be a whole number of at least 1"),
        (f"cropped-sum,tau=few{ALL}", "cropped-sum, tau=: 'few' is not a whole number"),
        (f"{CROPPED}{ALL},signed", "cropped-sum has no signed="),
        (f"{CROPPED}{ALL},signed=true", "cropped-sum has no signed="),
        (f"{CROPPED}{ALL},expected=9", "universe="),
        (f"{CROPPED},expected=6000,memory=9", "memory must be at least "),
        (f"{CROPPED},expected=20", "times the largest sum, tau times all users: the answer would"),
        ("threshold" + ALL, "threshold needs threshold=: the state from which on"),
        (BUSY, "threshold needs universe=: how many users there could be"),
        (f"{BUSY},expected=9", "threshold has no expected="),
        ("distinct,threshold=3", "distinct has no threshold="),
        (f"incidence,bound=9,threshold=3{ALL}", "incidence has no threshold="),
        (f"incidence,bound=9,tau=3{ALL}", "incidence has no tau="),
        (f"{BUSY}{ALL},at_least=3", "threshold has no at_least="),
        (f"{BUSY}{ALL},tau=3", "threshold has no tau="),
        (f"threshold,threshold=1{ALL}", "threshold must be at least 2; for who came at all"),
        (f"threshold,threshold=few{ALL}", "'few' is not a whole number"),
        (f"{BUSY}{ALL},bound=4", "threshold (5) exceeds the bound (4): nobody would count"),
        (f"{BUSY},universe=60", "the answer would be noise; epsilon "),
        ("heavy-hitters,k=9", "heavy-hitters needs total="),
        ("heavy-hitters,total=9", "heavy-hitters needs k="),
        ("distinct,k=9,total=99", "distinct has no k="),
        ("heavy-hitters,k=9,total=9", "total (9) must be at least 2 k"),
        ("heavy-hitters,k=0,total=9", "k must be a whole number"),
        ("heavy-hitters,k=99999,total=9", "k must be at most 32,768"),
        (f"{HEAVY},expected=9", "heavy-hitters has no expected="),
        (f"{HEAVY}{ALL}", "heavy-hitters has no universe="),
        (f"{HEAVY},bound=9", "heavy-hitters has no bound="),
        pytest.param(
            "heavy-hitters,k=50,total=900", "times k: the answer would", marks=pytest.mark.long
        ),
    ],
)
def test_what_does_not_fit_is_refused(folder, stat, reason):
    words = ("--epsilon", "1", *ID, stat)
    assert reason in refused(folder / "visits.parquet", *words)


def test_a_delta_beyond_the_total_is_refused_by_row(tmp_path):
    path = tmp_path / "held.csv"
    path.write_text("name,amount\na,6000\nb,6001\n")
    assert "row 2 " in refused(path, *HOLDERS, HEAVY, "--epsilon", "8")
