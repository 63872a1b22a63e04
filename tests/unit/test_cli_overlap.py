"""The command `panprivacy overlap`."""

from __future__ import annotations

import json

import numpy as np
import pytest

import panprivacy as pp
from tests.commands import run_command
from tests.unit.test_cli_run import refused

KEY = b"public, but the same for all windows"
FRIDAY = np.arange(20_000)
SATURDAY = np.arange(10_000, 30_000)


def publish(file, users, **sizes):
    """Write the published table of some users."""
    given = {"epsilon": 4, "expected": 20_000, "key": KEY, **sizes}
    window = pp.OverlapSketch(**given)
    window.update(users)
    sketch = window.release().sketch
    sketch.write(file)
    return sketch


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sketches")
    found = {name: folder / f"{name}.sketch" for name in ("friday", "saturday", "sunday")}
    for file, users in zip(found.values(), (FRIDAY, SATURDAY, FRIDAY), strict=True):
        publish(file, users)
    return found


class TestAnswers:
    def test_answers_cover_what_is_true(self, files):
        found = run_command("overlap", files["friday"], files["saturday"], "--json",
                            "--confidence", 1 - 1e-9)  # fmt: skip
        assert (found.code, found.stderr) == (0, "")
        rows = {row["question"]: row for row in json.loads(found.stdout)["answers"]}
        truth = {"union": 30_000, "intersection": 10_000, "difference": 10_000,
                 "jaccard": 1 / 3, "return_rate": 0.5}  # fmt: skip
        assert rows.keys() == truth.keys()
        for name, number in truth.items():
            assert rows[name]["low"] < number < rows[name]["high"]
            assert rows[name]["high"] - rows[name]["low"] < number  # it says something

    def test_they_are_those_of_python(self, files):
        opened = [pp.Sketch.read(files[name]) for name in ("saturday", "friday")]
        found = run_command("overlap", files["saturday"], files["friday"], "--json")
        answers = pp.overlap(*opened).answers()
        values = [row["value"] for row in json.loads(found.stdout)["answers"]]
        assert values == [one.value for one in answers.values()]

    def test_so_many_windows_are_asked_for(self, files):
        found = run_command("overlap", *files.values(), "--at-least", 2, "--at-least", 3,
                            "--exactly", 1, "--json")  # fmt: skip
        rows = json.loads(found.stdout)["answers"][5:]
        assert [(row["question"], row["argument"]) for row in rows] == [
            ("at_least", 2), ("at_least", 3), ("exactly", 1)
        ]  # fmt: skip
        compared = pp.overlap(*map(pp.Sketch.read, files.values()))
        assert [row["value"] for row in rows] == [
            compared.at_least(2).value, compared.at_least(3).value, compared.exactly(1).value
        ]  # fmt: skip

    def test_people_read_a_table_and_the_price(self, files):
        found = run_command("overlap", *files.values(), "--confidence", 0.9)
        assert "90 % interval" in found.stdout
        lines = found.stdout.splitlines()
        starts = "union", "intersection", "difference", "jaccard", "return rate"
        assert all(any(line.startswith(name) for line in lines) for name in starts)
        loss = pp.Sketch.read(files["friday"]).guarantee.over(3)
        assert f"a user of all 3 windows, one of them seen, loses {loss}." in lines[-1]


class TestPrice:
    def test_a_user_of_all_windows_loses_what_the_accounting_says(self, files):
        document = json.loads(run_command("overlap", *files.values(), "--json").stdout)
        loss = pp.Sketch.read(files["friday"]).guarantee.over(3)
        assert document["loss"] == {"windows": 3, "seen": 1, **loss.document()}
        assert [one["file"] for one in document["sketches"]] == list(map(str, files.values()))

    def test_tables_of_one_window_are_seen_together(self, tmp_path):
        files = [tmp_path / "left", tmp_path / "right"]
        for file, users in zip(files, (FRIDAY, SATURDAY), strict=True):
            publish(tmp_path / "x", users).named(group=file.name).write(file)
            (tmp_path / "x").unlink()
        document = json.loads(run_command("overlap", *files, "--json").stdout)
        assert (document["loss"]["windows"], document["loss"]["epsilon"]) == (1, 8)
        assert "a user of the window, seen once, loses" in run_command("overlap", *files).stdout

    def test_a_state_that_nobody_sees_is_said(self, files, tmp_path):
        publish(tmp_path / "x", SATURDAY, covers="publication")
        found = run_command("overlap", files["friday"], tmp_path / "x")
        assert "where nobody sees the state" in found.stdout
        document = json.loads(
            run_command("overlap", files["friday"], tmp_path / "x", "--json").stdout
        )
        assert (document["loss"]["seen"], document["loss"]["epsilon"]) == (0, 8)


class TestRefusals:
    """One line on standard error, with the name of the file, and nothing on standard output."""

    def test_the_same_table_twice(self, files, tmp_path):
        (tmp_path / "copy").write_bytes(files["friday"].read_bytes())
        told = refused("overlap", files["friday"], tmp_path / "copy")
        assert f"{tmp_path / 'copy'} is {files['friday']} once more" in told

    def test_another_key(self, files, tmp_path):
        publish(tmp_path / "other", SATURDAY, key=b"another key of a series")
        told = refused("overlap", files["friday"], tmp_path / "other")
        assert f"{tmp_path / 'other'} has another addressing key than {files['friday']}" in told
        assert "--key" in told

    def test_other_cells(self, files, tmp_path):
        publish(tmp_path / "small", SATURDAY, expected=10_000)
        told = refused("overlap", files["friday"], tmp_path / "small")
        assert "small has other cells" in told

    @pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: b"x" + data,
                                        lambda data: data[:900] + b"??" + data[902:],
                                        lambda data: b""])  # fmt: skip
    def test_a_damaged_file(self, change, files, tmp_path):
        (tmp_path / "damaged").write_bytes(change(files["saturday"].read_bytes()))
        told = refused("overlap", files["friday"], tmp_path / "damaged")
        assert told.startswith(f"panprivacy: {tmp_path / 'damaged'}: ")

    def test_a_file_that_is_not_there(self, files, tmp_path):
        assert "nowhere: No such file" in refused("overlap", files["friday"], tmp_path / "nowhere")

    def test_one_file(self, files):
        assert "two sketches or more" in refused("overlap", files["friday"])

    @pytest.mark.parametrize("option", ["--at-least", "--exactly"])
    @pytest.mark.parametrize("number", [0, 3])
    def test_a_number_of_windows_that_cannot_be(self, option, number, files):
        told = refused("overlap", files["friday"], files["saturday"], option, number)
        assert "--at-least and --exactly must be" in told
