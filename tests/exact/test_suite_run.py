"""Which programs `panprivacy audit` finds by their names, and what becomes of each."""

from __future__ import annotations

import os
from fractions import Fraction

import pytest

from panprivacy.audit.controls import CONTROLS
from panprivacy.audit.suite.run import known_names, rows
from panprivacy.errors import PlanError

OWN = """
from fractions import Fraction
import panprivacy as pp
from panprivacy.audit import Subject

def density(claimed):
    make = lambda coins: pp.Density(universe=2, epsilon=1, releases=1, coins=coins)
    return Subject("own", "product", "a density", make, claimed, [[[0]]])

HOLDS, EXCEEDS = density(Fraction(1)), density(Fraction(1, 100))
NONE = 7
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a module of one's own, in one process."""
    (tmp_path / "own_of_suite.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


@pytest.mark.long
def test_names_are_those_of_products_and_controls_each_once():
    names = known_names()
    assert len(names) == len(set(names))
    assert {control.name for control in CONTROLS} < set(names)
    assert not any(":" in name for name in names)


@pytest.mark.usefixtures("here")
def test_what_is_written_as_module_and_variable_is_audited_in_order():
    names = ["own_of_suite:EXCEEDS", "own_of_suite:HOLDS"]
    assert [row.verdict for row in rows(names, Fraction(9))] == ["exceeds", "holds"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["own_of_suite:NONE", "own_of_suite:", "own_of_suite:X", "no:X"])
def test_what_is_no_subject_is_refused_before_anything_runs(name):
    with pytest.raises(PlanError, match=f"no panprivacy.audit.Subject at {name}: write it as"):
        rows(["own_of_suite:HOLDS", name], Fraction(1))
