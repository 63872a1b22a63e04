"""The published tables of `panprivacy run --sketch`."""

from __future__ import annotations

import base64
import json
import stat
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from unittest import mock

import pytest

import panprivacy as pp
from panprivacy.cli.output import Printed, print_text
from panprivacy.cli.publishing import Schedule
from panprivacy.cli.sketching import SketchFiles
from panprivacy.statistics.composites.windows import Window
from panprivacy.statistics.release import Answers
from panprivacy.statistics.specification import Specification
from tests.commands import run_command
from tests.unit.test_cli_run import refused

STAT = "overlap,expected=10_000"
GIVEN = "--user", "who", "--stat", STAT, "--epsilon", "4"


@pytest.fixture
def visits(tmp_path):
    """Two days of 10,000 visitors, of whom half come on both, on two pages."""
    files = []
    for day, first in ("monday", 0), ("tuesday", 5_000):
        files.append(tmp_path / f"{day}.csv")
        rows = "".join(f"v{i},{'ab'[i % 2]}\n" for i in range(first, first + 10_000))
        files[-1].write_text(f"who,page\n{rows}")
    return files


@pytest.fixture
def key(tmp_path):
    return tmp_path / "series.key"


def publish(file, sketch, key, *more):
    result = run_command("run", file, *GIVEN, "--sketch", sketch, "--key", key, "--json", *more)
    assert result.code == 0, result.stderr
    return json.loads(result.stdout)


class TestFiles:
    def test_windows_of_one_key_are_compared(self, visits, key, tmp_path):
        sketches = [tmp_path / "monday.sketch", tmp_path / "tuesday.sketch"]
        for file, sketch in zip(visits, sketches, strict=True):
            assert publish(file, sketch, key)["sketches"] == [{"file": str(sketch)}]
        answer = pp.overlap(*map(pp.Sketch.read, sketches)).return_rate(confidence=1 - 1e-9)
        assert 0.2 < answer.low < 0.5 < answer.high < 0.8

    def test_a_sketch_is_public_and_the_answer_is_that_of_its_table(self, visits, key, tmp_path):
        document = publish(visits[0], tmp_path / "x", key)
        assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o644
        front = pp.Sketch.read(tmp_path / "x").front
        assert (front.statistic, front.group, front.start) == ("overlap", None, None)
        assert document["epsilon"] == float(Fraction(front.epsilon))

    def test_groups_have_a_file_each_with_one_key(self, visits, key, tmp_path):
        words = "--by", "page", "--groups", "a,b/../c", "--ignore-others"
        document = publish(visits[0], tmp_path / "pages", key, *words)
        files = sorted((tmp_path / "pages").iterdir())
        assert [one["file"] for one in document["sketches"]] == list(map(str, files))
        assert [one.name for one in files] == ["a.sketch", "b%2F..%2Fc.sketch"]
        opened = [pp.Sketch.read(one) for one in files]
        assert [one.front.group for one in opened] == ["a", "b/../c"]
        assert pp.overlap(*opened).union().low > 3_000

    def test_several_statistics_have_a_file_each(self, visits, key, tmp_path):
        more = "--stat", "overlap,expected=20_000,as=wide"
        document = publish(visits[0], tmp_path / "all", key, *more)
        names = [one["file"].rpartition("/")[2] for one in document["sketches"]]
        assert names == ["overlap.sketch", "wide.sketch"]
        assert pp.Sketch.read(tmp_path / "all" / "wide.sketch").front.statistic == "wide"


class TestWindows:
    """A table for each window, with its start and its end."""

    STARTS = datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC)

    @pytest.fixture
    def files(self, key, tmp_path):
        schedule = Schedule(1, None, 86_400)
        found = SketchFiles.read(
            tmp_path / "days", key, schedule, None, [Specification.from_text(STAT)]
        )
        found.begin()
        return found

    def printed(self, files, start):
        one = pp.OverlapSketch(epsilon=4, expected=10_000, key=files.key)
        window = Window(start, start + timedelta(days=1), complete=True, release=None)
        return Printed(Answers([one.release()]), one.guarantee, 8, 0.95, window=window)

    def test_each_has_a_file_that_says_when(self, files, tmp_path):
        for start in self.STARTS:
            files.write(self.printed(files, start))
        found = sorted((tmp_path / "days").iterdir())
        assert [one.name for one in found] == [
            "2026-03-02T000000Z.sketch", "2026-03-03T000000Z.sketch"
        ]  # fmt: skip
        fronts = [pp.Sketch.read(one).front for one in found]
        assert [one.start for one in fronts] == list(self.STARTS)
        assert [one.end - one.start for one in fronts] == [timedelta(days=1)] * 2

    def test_a_window_of_another_process_is_not_overwritten(self, files, tmp_path):
        for _ in range(3):
            files.write(self.printed(files, self.STARTS[0]))
        found = sorted(one.name for one in (tmp_path / "days").iterdir())
        assert found == [f"2026-03-02T000000Z{more}.sketch" for more in ("", "_2", "_3")]

    def test_a_table_that_cannot_be_written_is_printed(self, files, capsys, tmp_path):
        """It is paid for, and cannot be published again."""
        with mock.patch(
            "panprivacy.cli.sketching.write_new_file", side_effect=OSError(28, "No space left")
        ):
            printed = files.write(self.printed(files, self.STARTS[0]))
        print_text(printed)
        (line,) = (one for one in capsys.readouterr().out.splitlines() if "base64" in one)
        sketch = pp.Sketch.read(base64.b64decode(line.rpartition(" ")[2]))
        assert sketch.front.start == self.STARTS[0]
        assert list((tmp_path / "days").iterdir()) == []
        with pytest.raises(pp.PlanError, match="No space left; the table is printed in base64"):
            files.end()


class TestLost:
    def test_the_answer_is_in_json_where_the_file_cannot_be_written(self, visits, key, tmp_path):
        def full(path, data, mode):
            if path.suffix == ".sketch":
                raise OSError(28, "No space left")

        words = *GIVEN, "--sketch", tmp_path / "x.sketch", "--key", key, "--json"
        with mock.patch("panprivacy.cli.sketching.write_new_file", side_effect=full):
            result = run_command("run", visits[0], *words)
        assert result.code == 2
        (written,) = json.loads(result.stdout)["sketches"]
        assert written["reason"] == "No space left"
        assert pp.Sketch.read(base64.b64decode(written["base64"])).guarantee.epsilon == 4
        assert "the table is printed in base64" in result.stderr.splitlines()[-1]


class TestKey:
    def test_it_is_made_once_and_public(self, visits, key, tmp_path):
        publish(visits[0], tmp_path / "x", key)
        made = key.read_bytes()
        assert len(made) >= 16
        assert stat.S_IMODE(key.stat().st_mode) == 0o644
        publish(visits[1], tmp_path / "y", key)
        assert key.read_bytes() == made

    def test_that_it_is_made_is_said(self, visits, key, tmp_path):
        result = run_command("run", visits[0], *GIVEN, "--sketch", tmp_path / "x", "--key", key)
        assert f"made {key}, the addressing key of the series" in result.stderr
        assert "public" in result.stderr
        assert f"Sketch: {tmp_path / 'x'}" in result.stdout

    def test_it_may_be_any_text(self, visits, key, tmp_path):
        key.write_text("visits of the site, since 2026")
        publish(visits[0], tmp_path / "x", key)
        one = pp.OverlapSketch(epsilon=4, expected=10_000, key=key.read_bytes())
        assert pp.Sketch.read(tmp_path / "x").key == one.release().sketch.key

    def test_a_short_one_is_refused(self, visits, key, tmp_path):
        key.write_text("short")
        words = *GIVEN, "--sketch", tmp_path / "x", "--key", key
        assert "16 random bytes" in refused("run", visits[0], *words)

    def test_none_is_made_by_a_command_that_fails(self, visits, key, tmp_path):
        refused("run", tmp_path / "nowhere.csv", *GIVEN, "--sketch", tmp_path / "x", "--key", key)
        assert not key.exists()


class TestRefusals:
    """One line that says what to do, before anything is counted."""

    def test_a_sketch_that_is_there(self, visits, key, tmp_path):
        (tmp_path / "x").write_text("")
        words = *GIVEN, "--sketch", tmp_path / "x", "--key", key
        assert f"there is {tmp_path / 'x'} already" in refused("run", visits[0], *words)
        assert (tmp_path / "x").read_text() == ""

    def test_a_folder_that_is_not_there(self, visits, key, tmp_path):
        words = *GIVEN, "--sketch", tmp_path / "a" / "x", "--key", key
        assert "--sketch cannot write" in refused("run", visits[0], *words)

    def test_a_group_whose_file_is_there(self, visits, key, tmp_path):
        (tmp_path / "pages").mkdir()
        (tmp_path / "pages" / "b.sketch").touch()
        words = *GIVEN, "--by", "page", "--groups", "a,b", "--sketch", tmp_path / "pages"
        assert "b.sketch already" in refused("run", visits[0], *words, "--key", key)

    def test_two_tables_of_one_name(self, visits, key, tmp_path):
        stats = ["--stat", "overlap,expected=500,as=a", "--stat", "overlap,expected=500,as=a_b"]
        said = refused(
            *("run", str(visits), "--user", "id", *stats, "--epsilon", "8", "--key", str(key)),
            *("--by", "page", "--groups", "c,b_c", "--sketch", str(tmp_path / "tables")),
        )
        assert "two tables would be in one file, a_b_c.sketch" in said
        assert not (tmp_path / "tables").exists()

    def test_a_file_in_place_of_a_folder(self, visits, key, tmp_path):
        (tmp_path / "pages").touch()
        words = *GIVEN, "--by", "page", "--groups", "a,b", "--sketch", tmp_path / "pages"
        assert "needs a folder" in refused("run", visits[0], *words, "--key", key)

    def test_no_key(self, visits, tmp_path):
        told = refused("run", visits[0], *GIVEN, "--sketch", tmp_path / "x")
        assert "--sketch needs --key series.key" in told

    def test_no_sketch(self, visits):
        assert "say where, --sketch monday.sketch" in refused("run", visits[0], *GIVEN)

    def test_a_statistic_that_publishes_no_table(self, visits, key, tmp_path):
        words = "--user", "who", "--stat", "distinct", "--epsilon", 4
        told = refused("run", visits[0], *words, "--sketch", tmp_path / "x", "--key", key)
        assert "--stat overlap" in told

    @pytest.mark.parametrize("more", [("--releases", 2), ("--releases", 2, "--every", 1)])
    def test_several_tables_of_one_window(self, more, visits, key, tmp_path):
        words = *GIVEN, "--sketch", tmp_path / "x", "--key", key, *more
        assert "one table a window" in refused("run", visits[0], *words)

    def test_a_contribution(self, visits, key, tmp_path):
        recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
        words = "--contribute", tmp_path / "part", "--recipient", recipient
        told = refused("run", visits[0], *GIVEN, "--sketch", tmp_path / "x", "--key", key, *words)
        assert "leave one out" in told
