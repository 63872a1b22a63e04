"""What the comparison says an intruder gets is what the attack measures."""

from __future__ import annotations

import re

import pytest

from panprivacy.audit.attacks import ATTACKS
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/comparison.md").read_text()
ROWS = {
    "salted hashes": "hashes with a daily salt",
    "bitmap": r"a bitmap .*",
    "HyperLogLog": r"HyperLogLog, 1 MiB",
    "DistinctCount": r"`DistinctCount`, epsilon 1",
}


def test_the_shares_are_those_of_the_attack():
    """Within 7 standard deviations or more of each share, over people and over keys."""
    guesses = {
        panel.title.partition(",")[0]: panel.guesses for panel in ATTACKS["dictionary"](1).panels
    }
    assert guesses.keys() == ROWS.keys()
    for name, row in ROWS.items():
        shown = re.search(rf"^\| {row} \| ([\d.]+) % \| ([\d.]+) % \|", PAGE, re.MULTILINE)
        found, suspected = (float(share) / 100 for share in shown.groups())
        within = 0.02 if name == "DistinctCount" else 0.006
        assert guesses[name].found == pytest.approx(found, abs=within)
        assert guesses[name].suspected == pytest.approx(suspected, abs=within)
