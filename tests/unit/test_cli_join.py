"""The command `panprivacy join`."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from tests.commands import run_command
from tests.unit.test_cli_overlap import publish


@pytest.fixture
def shards(tmp_path):
    found = {name: tmp_path / f"{name}.sketch" for name in ("eu", "us")}
    for place, file in enumerate(found.values()):
        publish(file, np.arange(place * 20_000, (place + 1) * 20_000))
    return found


def test_a_joined_sketch_is_that_of_python(shards, tmp_path):
    said = [f"{name}={file}" for name, file in shards.items()]
    found = run_command("join", *said, "--sketch", tmp_path / "monday.sketch")
    assert (found.code, found.stdout) == (0, "")
    joined = pp.Sketch.read(tmp_path / "monday.sketch")
    assert joined == pp.join({name: pp.Sketch.read(file) for name, file in shards.items()})
    again = run_command("join", *said, "--sketch", tmp_path / "monday.sketch")
    assert again.code == 2
    assert "already" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["monday.sketch"], "name each shard, such as"),
        (["eu=a.sketch", "eu=b.sketch"], "two shards are called eu"),
        (["eu="], "name each shard, such as"),
    ],
)
def test_what_cannot_be_joined_is_refused_in_a_line(arguments, said, tmp_path):
    found = run_command("join", *arguments, "--sketch", tmp_path / "x.sketch")
    assert found.code == 2
    assert said in found.stderr
    assert found.stderr.count("\n") == 1
    assert not (tmp_path / "x.sketch").exists()


def test_a_file_that_is_no_sketch_is_named(shards, tmp_path):
    wrong = tmp_path / "wrong"
    wrong.write_text("no sketch")
    found = run_command("join", f"eu={shards['eu']}", f"us={wrong}", "--sketch", tmp_path / "x")
    assert found.code == 2
    assert f"{wrong}: there is no sketch" in found.stderr
