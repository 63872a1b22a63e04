"""The page of the architecture names the layers that the import contract checks."""

from __future__ import annotations

import re
import tomllib

from tests.docs.pins import ROOT

PAGE = (ROOT / "docs/architecture.md").read_text()
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]


def layers():
    """The names of each layer, from the ground up."""
    (contract,) = (one for one in CONTRACTS if one.get("containers") == ["panprivacy"])
    return [sorted(layer.split(" : ")) for layer in reversed(contract["layers"])]


def test_the_layers_are_those_of_the_contract():
    section = PAGE.partition("## The layers")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
    assert [sorted(re.findall(r"`(\w+)`", row)) for row in rows] == layers()


def test_adding_a_statistic_takes_ten_steps():
    section = PAGE.partition("## How to add a statistic")[2]
    assert len(re.findall(r"^\d+\. \*\*", section, re.MULTILINE)) == 10
