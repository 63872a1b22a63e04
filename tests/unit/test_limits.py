"""What docs/threat-model.md says is not protected is really open: these tests break in."""

from __future__ import annotations

import math

import numpy as np

import panprivacy as pp
from panprivacy.audit import exact_loss
from tests.commands import run_command


class TwoLooks:
    """A density whose state was copied once before: in a backup, or by an earlier intruder."""

    def __init__(self, coins):
        self._density = pp.Density(universe=1, epsilon=1, coins=coins)
        self._copy = b""

    def update(self, users):
        self._copy = self._density.state()
        self._density.update(users)

    def state(self):
        return self._copy + self._density.state()


def test_two_looks_without_an_announcement_tell_who_came():
    assert exact_loss(TwoLooks, [[0]], [[]]).epsilon == math.inf
    assert exact_loss(
        lambda coins: pp.Density(universe=1, epsilon=1, coins=coins), [[0]], [[]]
    ).within(1)


def test_two_copies_of_a_large_table_name_users():
    density = pp.Density(universe=10_000, epsilon=1)
    before = density.state()
    came = np.arange(500) * 17
    density.update(came)
    changed = np.frombuffer(before, np.uint8) ^ np.frombuffer(density.state(), np.uint8)
    named = np.flatnonzero(np.unpackbits(changed[-1_250:], bitorder="little"))
    assert len(named) > 150
    assert set(named) <= set(came)


def test_who_changes_the_program_gets_the_ids(monkeypatch):
    recorded, update = [], pp.DistinctCount.update
    monkeypatch.setattr(
        pp.DistinctCount,
        "update",
        lambda self, users: (recorded.extend(users), update(self, users)),
    )
    pp.DistinctCount(epsilon=1, expected=100).update(["ada"])
    assert recorded == ["ada"]


def test_the_input_file_stays(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("id\nada\n")
    result = run_command(
        "run", path, "--user", "id", "--stat", "distinct,expected=100", "--epsilon", "1"
    )
    assert result.code == 0
    assert "ada" in path.read_text()
