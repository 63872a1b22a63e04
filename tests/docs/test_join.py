"""The join of two streams: the example runs, and `run` and `serve` take both by a column."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import tomllib
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from panprivacy.errors import InputError
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.stream import Stream
from tests.commands import run_command

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "join_size.py"
SECTION = (ROOT / "docs/accuracy-moments.md").read_text().partition("## The join of two")[2]
TRUTH = 407_641


def is_near(value, low, high):
    """Within intervals that are three times as wide: one run in a million is outside."""
    return low < value < high and abs(value - TRUTH) < 3 * max(high - value, value - low)


@pytest.mark.long
def test_the_example_is_short_and_tells_the_size_of_the_join(capsys):
    assert len(EXAMPLE.read_text().splitlines()) < 40
    runpy.run_path(str(EXAMPLE))
    numbers = re.findall(r"[\d,]+", capsys.readouterr().out.replace("), in", " "))
    value, low, high, truth = (int(one.replace(",", "")) for one in numbers)
    assert truth == TRUTH
    assert is_near(value, low, high)
    assert high - low < TRUTH / 4


def test_the_command_of_the_page_is_that_of_the_example_and_counts_both_streams():
    command = re.search(r"\$ (panprivacy run .*?)\nstat", SECTION, re.DOTALL)[1]
    words = shlex.split(command.replace("\\\n", " "))
    example = EXAMPLE.read_text().replace("\\\n", " ")
    assert sorted(words) == sorted(shlex.split(re.search(r"panprivacy run .*", example)[0]))
    result = run_command(*words[1:], "--json", cwd=ROOT)
    assert result.code == 0, result.stderr
    (row,) = json.loads(result.stdout)["answers"]
    assert is_near(row["value"], row["low"], row["high"])


def test_the_service_of_the_page_counts_both_streams(tmp_path):
    table = tomllib.loads(re.search(r"```toml\n(.*?)```", SECTION, re.DOTALL)[1])
    config = StreamConfig(**{**table["streams"]["flights"], "epsilon": Fraction(400)})
    config.check()
    store = ReleaseStore(f"sqlite:///{tmp_path}/releases.sqlite")
    stream = Stream("flights", config, store)
    users = [f"N{number}" for number in range(3_000)]
    rows = {"aircraft_day": users * 3, "status": ["planned"] * 6_000 + ["on time"] * 3_000}
    stream.take([pa.record_batch(rows)])
    with pytest.raises(InputError, match="side must be planned or on time"):
        stream.take([pa.record_batch({"aircraft_day": ["N1"], "status": ["late"]})])
    stream.close()
    (answer,) = store.answers()
    store.close()

    assert answer.value == pytest.approx(6_000, rel=0.1)
