"""`panprivacy run --contribute` and `panprivacy merge`: several machines, one answer, once."""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path
from unittest import mock

import numpy as np
import pyrage
import pytest

import panprivacy as pp
from panprivacy.cli.merge import merge as merge_files
from panprivacy.errors import PlanError
from panprivacy.ground.sealing import seal
from panprivacy.statistics.merging import Merger
from tests.commands import run_command

SECRET = 4_711
STAT = "cropped-sum,tau=2,universe=5_000"


def contribute(shard, keys, *arguments, stat=STAT, epsilon=4):
    part = shard.with_suffix(".part")
    words = shard, "--user", "who", "--epsilon", epsilon, "--stat", stat
    result = run_command("run", *words, "--contribute", part, "--recipient", keys[1], *arguments)
    assert result.code == 0, result.stderr
    return part, result


def parts_of(shards, keys, *arguments, **given):
    return [contribute(shard, keys, *arguments, **given)[0] for shard in shards]


def merge(parts, keys, *arguments):
    return run_command("merge", *parts, "--identity", keys[0], *arguments)


def numbers_in(listed):
    """The random numbers of contributions in a list."""
    return re.findall("(?<![^ \n])[0-9a-f]{4,}(?![^ \n])", listed.read_text())


def refused(result):
    assert result.code == 2, result.stdout
    assert result.stdout == ""
    line = result.stderr.splitlines()[-1]
    assert line.startswith("panprivacy: ")
    assert str(SECRET) not in result.stderr
    return line


def test_an_answer_that_is_lost_is_told_by_how_it_ends(tmp_path, keys):
    def shard(users):
        ledger = pp.Ledger(8)
        full = pp.Incidence(expected=1_000, bound=2, epsilon=4, ledger=ledger)
        count = pp.DistinctCount(expected=(100, 10**6), epsilon=4, ledger=ledger)
        several = pp.Together({"full": full, "open": count}, {"full": {"exactly": (1,)}})
        several.update(np.arange(users))
        part = tmp_path / f"{users}.part"
        part.write_bytes(seal(several.contribute(), keys[1]))
        return part

    result = merge([shard(100), shard(60_000)], keys)
    assert result.code == 1, result.stderr
    assert "open" in result.stdout


def test_two_commands_and_one_answer(shards, keys):
    part, said = contribute(shards[0], keys)
    assert f"Contributed to {part}" in said.stdout
    assert "who opens the contribution has had that look" in said.stdout
    assert part.read_bytes().startswith(b"age-encryption.org/v1")
    assert part.stat().st_mode & 0o777 == 0o600
    result = merge([part, *parts_of(shards[1:], keys)], keys)
    assert result.code == 0, result.stderr
    assert "cropped-sum: 3 tables of different users err about 1.5 times" in result.stderr
    assert "each further one costs 4" in result.stdout
    answer = int(result.stdout.splitlines()[1].split()[3].replace(",", ""))
    assert abs(answer - 6_000) < 900  # seven deviations


@pytest.mark.long
def test_json_and_a_picture(shards, keys, tmp_path):
    picture = tmp_path / "merged.png"
    parts = parts_of(shards, keys, stat="incidence,bound=4,universe=5_000,exactly=0:2", epsilon=60)
    result = merge(parts, keys, "--json", "--plot", picture, "--confidence", 0.8)
    document = json.loads(result.stdout)
    values = [round(row["value"], -2) for row in document["answers"]]
    assert values == [2_000, 0, 3_000]
    assert {row["confidence"] for row in document["answers"]} == {0.8}
    assert document["epsilon"] == 60
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_groups_and_several_statistics(shards, keys):
    grouped = "--by", "group", "--groups", "a,b", "--per-user", 2
    parts = parts_of(shards, keys, *grouped, "--stat", "density,universe=5000", epsilon=100)
    result = merge(parts, keys, "--json")
    document = json.loads(result.stdout)
    assert document["per_user"] == 2
    found = {(row["statistic"], row["group"]): row["value"] for row in document["answers"]}
    assert found["density", "a"] == pytest.approx(0.3, abs=0.02)
    assert found["cropped-sum", "b"] == pytest.approx(3_000, abs=100)


def test_cells_of_shards_with_one_key(shards, keys, tmp_path):
    key = tmp_path / "shared.key"
    key.write_bytes(bytes(range(32)))
    stat = "incidence,bound=8,universe=5_000,exactly=4"
    shards = [shards[0], shards[0].with_name("again.csv")]
    shards[1].write_text(shards[0].read_text())  # the same users come to both
    result = merge(parts_of(shards, keys, "--key", key, stat=stat, epsilon=40), keys, "--json")
    assert "added up cell by cell" in result.stderr
    (row,) = json.loads(result.stdout)["answers"]
    assert row["low"] - 50 <= 1_000 <= row["high"] + 50


def test_explaining_spends_nothing(shards, keys):
    parts = parts_of(shards, keys)
    before = [part.read_bytes() for part in parts]
    result = merge(parts, keys, "--explain")
    assert result.code == 0
    assert "Guarantee: epsilon 4 for" in result.stdout
    assert [part.read_bytes() for part in parts] == before


def test_contributions_are_merged_once(shards, keys):
    parts = parts_of(shards, keys)
    assert merge(parts, keys).code == 0
    for part in parts:
        assert part.read_bytes().startswith(b"panprivacy has merged")
    assert "was merged already" in refused(merge(parts, keys))
    assert "was merged already" in refused(merge(parts[1:], keys))


def test_a_crash_while_the_answer_is_made_spends_nothing(shards, keys):
    parts = parts_of(shards, keys)
    before = [part.read_bytes() for part in parts]
    with (
        mock.patch.object(Merger, "answers", side_effect=RuntimeError),
        pytest.raises(RuntimeError),
    ):
        merge(parts, keys)
    assert [part.read_bytes() for part in parts] == before
    assert merge(parts, keys).code == 0


def test_an_answer_that_was_not_printed_is_in_the_files_and_in_the_list(shards, keys):
    parts = parts_of(shards, keys)
    copies = [part.read_bytes() for part in parts]
    with (
        mock.patch("panprivacy.cli.merge.print_text", side_effect=RuntimeError),
        pytest.raises(RuntimeError),
    ):
        merge(parts, keys)
    noted = [part.read_text().splitlines()[-1] for part in parts]
    (line,) = keys[0].with_name("identity.txt.merged").read_text().splitlines()
    assert [line[line.index("{") :]] * 3 == noted
    (row,) = json.loads(noted[0])["answers"]
    assert abs(row["value"] - 6_000) < 900  # seven deviations
    assert refused(merge(parts, keys)).endswith("the answer is in that file")
    for part, copy in zip(parts, copies, strict=True):
        part.write_bytes(copy)
    assert refused(merge(parts, keys)).endswith("its answer is in identity.txt.merged")


def test_a_disk_that_is_full_releases_nothing_and_spends_nothing(shards, keys):
    parts = parts_of(shards, keys)
    before = [part.read_bytes() for part in parts]
    full = [None, OSError(28, "No space left on device")]
    with mock.patch("panprivacy.ground.files.os.fsync", side_effect=full):
        assert "No space left" in refused(merge(parts, keys))
    assert [part.read_bytes() for part in parts] == before
    assert not list(parts[0].parent.glob("*.new"))
    assert merge(parts, keys).code == 0


def test_two_merges_at_once_answer_once(shards, keys):
    parts, others = parts_of(shards, keys), []

    def meanwhile(*_):
        others.append(merge(parts, keys))

    with mock.patch("panprivacy.cli.merge.compile_kernels", meanwhile):
        assert merge(parts, keys).code == 0
    assert "is open in another merge" in refused(others[0])


def test_a_file_that_is_replaced_while_it_is_opened_is_refused(shards, keys):
    parts = parts_of(shards, keys)
    done = []

    def late(*_):  # another program merges between the opening and the lock
        if not done:
            done.append(True)
            done.append(merge(parts, keys).code)

    with mock.patch("panprivacy.cli.merge.fcntl.flock", late):
        assert "was replaced while it was opened" in refused(merge(parts, keys))
    assert done == [True, 0]


def test_what_a_link_leads_to_is_spent(shards, keys, tmp_path):
    parts = parts_of(shards, keys)
    links = [tmp_path / f"link{number}" for number in range(3)]
    for link, part in zip(links, parts, strict=True):
        link.symlink_to(part)
    assert merge(links, keys).code == 0
    assert "was merged already" in refused(merge(parts, keys))


def test_nothing_is_spent_for_nobody(shards, keys):
    parts = parts_of(shards, keys)
    with mock.patch("panprivacy.cli.options.sys.stdout", None), pytest.raises(PlanError) as error:
        merge_files(parts, keys[0])
    assert "standard output is closed" in str(error.value)
    assert parts[0].read_bytes().startswith(b"age-encryption")


def test_a_copy_under_another_name_is_known_in_later_merges(shards, keys, tmp_path):
    """By the numbers in the list beside the identity; others are merged as before."""
    parts = parts_of(shards, keys)
    copy = tmp_path / "copy.part"
    copy.write_bytes(parts[0].read_bytes())
    again = [copy.with_name(f"again{number}.part") for number in (0, 1)]
    for path, shard in zip(again, shards, strict=False):
        path.write_bytes(contribute(shard.rename(path.with_suffix(".csv")), keys)[0].read_bytes())
    before = copy.read_bytes()
    assert merge(parts, keys).code == 0
    listed = keys[0].with_name("identity.txt.merged")
    assert listed.stat().st_mode & 0o777 == 0o600
    numbers = numbers_in(listed)
    assert len(set(numbers)) == 3
    message = refused(merge([again[0], copy], keys))
    assert message.endswith(
        f"{copy} is a copy of a contribution that was merged already: once more would be another "
        "release of its users; its answer is in identity.txt.merged"
    )
    assert copy.read_bytes() == before
    assert again[0].read_bytes().startswith(b"age-encryption")
    assert merge(again, keys).code == 0
    assert numbers_in(listed)[:3] == numbers
    assert len(numbers_in(listed)) == 5


def test_the_list_is_locked_and_on_the_disk_before_an_answer_is_shown(shards, keys):
    """It has a number for each statistic of each contribution."""
    parts = parts_of(shards, keys, "--stat", "density,universe=5000", epsilon=9)
    done, flock, fsync = [], fcntl.flock, os.fsync

    def noted(what, call):
        def noting(file, *rest):
            number = file if isinstance(file, int) else file.fileno()
            done.append((what, Path(f"/proc/self/fd/{number}").readlink().name))
            return call(file, *rest)

        return noting

    def shown(_):
        done.append("answer")

    with (
        mock.patch("panprivacy.cli.merge.fcntl.flock", noted("lock", flock)),
        mock.patch("panprivacy.cli.merge.os.fsync", noted("disk", fsync)),
        mock.patch("panprivacy.cli.merge.print_text", shown),
    ):
        assert merge(parts, keys).code == 0
    listed = keys[0].with_name("identity.txt.merged")
    places = [done.index(("lock", listed.name)), done.index(("disk", listed.name))]
    assert places == sorted(places)
    assert ("disk", listed.parent.name) in done[: places[1]]  # a new list has its name there
    assert done[-1] == "answer"
    assert len(set(numbers_in(listed))) == 6


def test_where_no_list_can_be_kept_that_is_said(shards, keys):
    parts = parts_of(shards, keys)
    opened = os.open

    def fails(path, *rest):
        if str(path).endswith(".merged"):
            raise OSError(30, "Read-only file system")
        return opened(path, *rest)

    with mock.patch("panprivacy.cli.merge.os.open", fails):
        result = merge(parts, keys)
    assert result.code == 0
    (said,) = [line for line in result.stderr.splitlines() if "cannot keep" in line]
    assert "remove copies of these files" in said


def test_a_list_that_is_there_is_never_passed_over(shards, keys, tmp_path):
    """A copy of what stands in it would be merged once more."""
    parts = parts_of(shards, keys)
    copies = [tmp_path / f"copy{number}.part" for number in range(len(parts))]
    for copy, part in zip(copies, parts, strict=True):
        copy.write_bytes(part.read_bytes())
    assert merge(parts, keys).code == 0
    listed = keys[0].with_name("identity.txt.merged")
    moved = listed.rename(tmp_path / "elsewhere")
    listed.symlink_to(moved)
    before = [copy.read_bytes() for copy in copies]
    assert "the list of what was merged, cannot be written" in refused(merge(copies, keys))
    assert [copy.read_bytes() for copy in copies] == before


def test_a_last_line_that_a_crash_has_cut_spent_nothing(shards, keys):
    """What it names is still there, and is merged; what it was cut to is replaced."""
    parts = parts_of(shards, keys)
    copies = [part.read_bytes() for part in parts]
    listed = keys[0].with_name("identity.txt.merged")
    assert merge(parts, keys).code == 0
    whole = listed.read_text()
    listed.write_text(f"0123\n{whole[: len(whole) // 2]}")
    for part, copy in zip(parts, copies, strict=True):
        part.write_bytes(copy)
    assert merge(parts, keys).code == 0
    first, line = listed.read_text().splitlines()
    assert first == "0123"
    assert line.split("{")[0] == whole.split("{")[0]
    for part, copy in zip(parts, copies, strict=True):
        part.write_bytes(copy)
    assert "is a copy" in refused(merge(parts, keys))


def test_a_list_that_cannot_be_written_spends_nothing(shards, keys):
    parts = parts_of(shards, keys)
    before = [part.read_bytes() for part in parts]
    listed = keys[0].with_name("identity.txt.merged")
    listed.write_text("0123\n")
    for place, fails in (("fsync", OSError(28, "No space left")), ("write", lambda *_: 5)):
        with mock.patch(f"panprivacy.cli.merge.os.{place}", side_effect=fails):
            assert "No space left" in refused(merge(parts, keys))
        assert [part.read_bytes() for part in parts] == before
        assert listed.read_text() == "0123\n"
    assert merge(parts, keys).code == 0


def test_a_disk_that_fills_up_after_the_list_takes_the_list_back(shards, keys):
    parts = parts_of(shards, keys)
    with mock.patch("panprivacy.cli.merge.replace_files", side_effect=OSError(28, "No space")):
        assert "No space" in refused(merge(parts, keys))
    assert keys[0].with_name("identity.txt.merged").read_text() == ""
    assert merge(parts, keys).code == 0


class TestRefused:
    def run(self, shard, *arguments, epsilon=1):
        words = shard, "--user", "who", "--epsilon", epsilon, "--stat", STAT
        return refused(run_command("run", *words, *arguments))

    @pytest.mark.long
    def test_no_recipient(self, shards, tmp_path):
        assert "--contribute needs --recipient" in self.run(
            shards[0], "--contribute", tmp_path / "x"
        )

    def test_a_recipient_for_nothing(self, shards, keys):
        message = self.run(shards[0], "--recipient", keys[1])
        assert "are for --contribute FILE" in message

    def test_a_recipient_that_is_none(self, shards, tmp_path):
        message = self.run(shards[0], "--contribute", tmp_path / "x", "--recipient", "age1no")
        assert "--recipient must be a public key of age" in message

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (["--releases", "2"], "leave out --releases"),
            (["--window", "1d"], "leave out --releases, --every and --window"),
            (["--demo"], "--demo and --plot show answers"),
            (["--plot", "x.png"], "--demo and --plot show answers"),
        ],
    )
    def test_answers_of_its_own(self, shards, keys, tmp_path, given, said):
        part = tmp_path / "x.part"
        message = self.run(shards[0], "--contribute", part, "--recipient", keys[1], *given)
        assert said in message
        assert not part.exists()

    def test_a_file_that_is_there(self, shards, keys):
        part, _ = contribute(shards[0], keys)
        before = part.read_bytes()
        message = self.run(shards[0], "--contribute", part, "--recipient", keys[1])
        assert "there is a file" in message
        assert part.read_bytes() == before

    @pytest.mark.parametrize("name", ["x.part", "x.part.new"])
    def test_a_file_of_somebody_is_left_alone(self, shards, keys, tmp_path, name):
        (tmp_path / name).symlink_to("nowhere")
        message = self.run(shards[0], "--contribute", tmp_path / "x.part", "--recipient", keys[1])
        assert f"there is a file {tmp_path / name} already" in message
        assert (tmp_path / name).is_symlink()

    def test_a_file_that_another_shard_wrote_meanwhile(self, shards, keys, tmp_path):
        part = tmp_path / "x.part"
        given = "--contribute", part, "--recipient", keys[1]

        def meanwhile():
            part.write_text("of another shard")

        with mock.patch("panprivacy.cli.run.compile_kernels", meanwhile):
            assert "there is a file" in self.run(shards[0], *given, epsilon=4)
        assert part.read_text() == "of another shard"

    def test_a_folder_that_is_not_there(self, shards, keys, tmp_path):
        where = tmp_path / "no" / "x.part"
        assert "cannot write" in self.run(shards[0], "--contribute", where, "--recipient", keys[1])

    def test_a_key_that_is_short(self, shards, keys, tmp_path):
        key = tmp_path / "short.key"
        key.write_bytes(b"short")
        given = "--contribute", tmp_path / "x", "--recipient", keys[1], "--key", key
        assert "key must be 16 random bytes or more" in self.run(shards[0], *given)

    def test_a_key_that_is_not_there(self, shards, keys, tmp_path):
        given = "--contribute", tmp_path / "x", "--recipient", keys[1], "--key", tmp_path / "no"
        assert "No such file" in self.run(shards[0], *given)

    def test_what_cannot_be_merged(self, shards, keys, tmp_path):
        words = shards[0], "--stat", "running-count,horizon=1", "--epsilon", 100
        given = "--contribute", tmp_path / "x", "--recipient", keys[1]
        message = refused(run_command("run", *words, *given))
        assert "let each shard release" in message

    def test_a_row_that_cannot_be_counted(self, keys, tmp_path):
        shard, part = tmp_path / "bad.csv", tmp_path / "bad.part"
        shard.write_text(f"who\n1\n{SECRET}x\n")
        message = self.run(shard, "--contribute", part, "--recipient", keys[1], epsilon=4)
        assert "row" in message
        assert not part.exists()

    def test_a_design_that_differs(self, shards, keys):
        parts = [
            contribute(shards[0], keys, stat="cropped-sum,tau=2,universe=5_000,bound=10")[0],
            contribute(shards[1], keys, stat="cropped-sum,tau=2,universe=5_000,bound=12")[0],
        ]
        before = [part.read_bytes() for part in parts]
        message = refused(merge(parts, keys))
        assert "bound=10 in contribution 1, bound=12 in contribution 2" in message
        assert [part.read_bytes() for part in parts] == before

    def test_one_file_twice_and_a_copy(self, shards, keys, tmp_path):
        part, _ = contribute(shards[0], keys)
        assert "is named twice" in refused(merge([part, part], keys))
        copy = tmp_path / "copy.part"
        copy.write_bytes(part.read_bytes())
        assert "contribution 2 is contribution 1 once more" in refused(merge([part, copy], keys))

    def test_a_file_that_is_none(self, shards, keys, tmp_path):
        part, _ = contribute(shards[0], keys)
        other = tmp_path / "other"
        other.write_text(f"{SECRET}")
        assert "is no sealed contribution" in refused(merge([part, other], keys))
        other.write_bytes(part.read_bytes()[:-3])
        assert "damaged, or sealed to another identity" in refused(merge([part, other], keys))
        assert "No such file" in refused(merge([part, Path("nowhere")], keys))
        os.mkfifo(tmp_path / "pipe")
        assert "is no sealed contribution" in refused(merge([part, tmp_path / "pipe"], keys))

    def test_another_identity(self, shards, keys, tmp_path):
        parts = parts_of(shards[:2], keys)
        other = tmp_path / "other.txt"
        other.write_text(f"{pyrage.x25519.Identity.generate()}\n")
        assert "sealed to another identity" in refused(merge(parts, (other, "")))

    def test_one_shard(self, shards, keys):
        part, _ = contribute(shards[0], keys)
        assert "merge two contributions or more" in refused(merge([part], keys))
        assert part.read_bytes().startswith(b"age-encryption")


@pytest.mark.parametrize(
    ("stat", "said"),
    [
        ("incidence,bound=5,universe=10000", ["errs 1.7 times", "errs 29 times"]),
        ("cropped-sum,tau=5,universe=10000", ["errs 1.7 times", "its cells cannot be added up"]),
        ("running-count,horizon=9", ["let each shard release", "its cells cannot be added up"]),
    ],
)
def test_a_plan_says_what_shards_cost(stat, said):
    result = run_command("plan", stat, "--epsilon", 1, "--shards", 3)
    assert result.code == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if line.startswith("3 shards")]
    assert all(part in line for part, line in zip(said, lines, strict=True))
    assert "who opens a contribution has seen the memory of its shard" in result.stdout
    alone = run_command("plan", stat, "--epsilon", 1).stdout
    assert "3 shards" not in alone
    assert "one machine" not in alone


def test_a_plan_says_what_shards_cost_in_epsilon_and_error_beside_one_machine():
    stat = "incidence,bound=5,universe=10000"
    plan = pp.plan("incidence", bound=5, universe=10_000, epsilon=1)
    one, sums, cells, _ = run_command(
        "plan", stat, "--epsilon", 1, "--shards", 3
    ).stdout.splitlines()[-4:]
    further = float(plan.split.budget.of_state(0))
    margin = 100 * plan.relative_margin(0.95)
    assert one == f"one machine: epsilon 1, ±{margin:.2g} %"
    assert sums.endswith(f"epsilon 1; errs 1.7 times as much, ±{margin * 3**0.5:.2g} %")
    told = re.search(r"epsilon 1, and (\S+) more for each further shard of a user: (\S+) in", cells)
    assert float(told[1]) == pytest.approx(further, abs=1e-5)
    assert float(told[2]) == pytest.approx(1 + 2 * further, abs=1e-5)
    assert f"±{margin * plan.growth**2:.0f} %" in cells
