"""The example of a graph whose edges come and go is short, runs, and tells its density."""

from __future__ import annotations

import itertools
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "graph_density.py"
NUMBER = re.compile(r"\d[\d.e+-]*")


@pytest.mark.long
def test_the_example_is_short_and_tells_the_density_of_the_graph():
    """Within intervals that are three times as wide: one run in a million is outside."""
    assert len(EXAMPLE.read_text().splitlines()) < 40
    run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True)
    share, edges = (
        [float(one) for one in NUMBER.findall(line)] for line in run.stdout.splitlines()
    )
    assert share[3] * 1_999_000 == pytest.approx(edges[3], rel=1e-5)
    for value, low, high, truth in (share, edges):
        assert low < value < high
        assert abs(value - truth) < 3 * max(high - value, value - low) < truth


def test_each_pair_of_vertices_has_a_number_of_its_own(capsys):
    numbers = runpy.run_path(str(EXAMPLE))["numbers"]
    pairs = np.array(list(itertools.combinations(range(60), 2)))
    found = numbers(pairs)
    assert sorted(found.tolist()) == list(range(60 * 59 // 2))
    assert (numbers(pairs[:, ::-1]) == found).all()
    assert "in truth" in capsys.readouterr().out
