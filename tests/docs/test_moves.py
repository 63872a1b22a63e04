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
from panprivacy.statistics.composites.moving import ChangeTriggered

PAGE = (Path(__file__).parents[2] / "docs" / "moves.md").read_text()
TABLE = PAGE.partition("<!-- moves -->")[2].partition("<!-- end of moves -->")[0]
ROWS = [
    [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
    for line in TABLE.strip().splitlines()[2:]
]


@pytest.mark.long
def test_days_err_as_predicted():
    table = PAGE.partition("<!-- day -->")[2].partition("<!-- end of day -->")[0]
    found = [line.strip("|").split("|") for line in table.strip().splitlines()[2:]]
    assert [int(row[0].replace(",", "")) for row in found] == list(moves.DAY)
    for row in found:
        users, _, threshold, _, predicted, measured, share, clock = (
            float(cell.strip().rstrip("%").replace(",", "")) for cell in row
        )
        assert measured < moves.LIMIT * predicted
        assert share == pytest.approx(100 * measured / users, abs=0.06)
        assert clock < measured < threshold
    chosen = moves.choice(moves.DAY[0], 1, 16)
    first = [int(cell.replace(",", "")) for cell in found[0][1:5]]
    assert first == [
        16,
        chosen.threshold,
        round(chosen.moving().internals.releasing.noise()),
        round(chosen.predicted),
    ]


@pytest.mark.long
def test_the_configuration_is_one():
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    stream = tomllib.loads(text)["streams"]["visits"]
    config = msgspec.convert(stream, StreamConfig, dec_hook=lambda _, value: Fraction(value))
    config.check()
    assert isinstance(config.make_counting(), ChangeTriggered)


@pytest.mark.long
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
            assert 0.7 < clock / measured < 1.3
        else:
            assert clock < measured
    at_one = [float(row[-1]) for row in ROWS if row[2] == "1" and row[0] == "flights"]
    assert max(at_one) < 1.3 * min(at_one)
