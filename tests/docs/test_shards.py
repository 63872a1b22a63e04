"""The example of three shards is short, runs, and tells how many users there are."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "three_shards.py"
PAGE = EXAMPLE.parents[1] / "docs" / "merging.md"


def test_the_example_is_short_and_tells_how_many_aircraft_there_were(capsys):
    """Within intervals that are three times as wide: one run in a million is outside."""
    assert len(EXAMPLE.read_text().splitlines()) < 40
    runpy.run_path(str(EXAMPLE))
    value, low, high, truth = map(float, re.findall(r"\d+", capsys.readouterr().out))
    assert truth == 251_561
    assert low < value < high
    assert abs(value - truth) < 3 * max(high - value, value - low) < truth / 3
    assert "251,561" in PAGE.read_text()
