"""What docs/moves.md says of answers that move is so: its configuration, its table."""

from __future__ import annotations

import math
import re
import tomllib
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
from benchmarks import moves

from panprivacy.service.config.stream import StreamConfig
from panprivacy.statistics.moving import Continual

PAGE = (Path(__file__).parents[2] / "docs" / "moves.md").read_text()
TABLE = PAGE.partition("<!-- moves -->")[2].partition("<!-- end of moves -->")[0]
ROWS = [
    [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
    for line in TABLE.strip().splitlines()[2:]
]


def test_the_configuration_is_one():
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    stream = tomllib.loads(text)["streams"]["visits"]
    config = msgspec.convert(stream, StreamConfig, dec_hook=lambda _, value: Fraction(value))
    config.check()
    assert isinstance(config.make_counting(), Continual)


def test_the_table_is_of_the_updates_that_err_least():
    users, epsilon, updates, threshold, predicted = map(int, ROWS[2][1:6])
    chosen = moves.best(users, epsilon)
    assert (chosen.updates, chosen.threshold, round(chosen.predicted)) == (
        updates, threshold, predicted,
    )  # fmt: skip


def test_errors_are_as_predicted_and_grow_as_the_root():
    assert len(ROWS) == 12
    for row in ROWS:
        users, epsilon, _, _, predicted, measured, clock, worst, of_clock, ratio = map(
            float, row[1:]
        )
        assert measured < moves.LIMIT * predicted
        assert ratio == pytest.approx(measured / math.sqrt(users / epsilon), abs=0.6)
        if row[0] == "Higgs":
            assert of_clock > 2 * worst
            assert 0.8 < clock / measured < 1.3
        else:
            assert clock < measured
    at_one = [float(row[-1]) for row in ROWS if row[2] == "1" and row[0] == "flights"]
    assert max(at_one) < 1.2 * min(at_one)
