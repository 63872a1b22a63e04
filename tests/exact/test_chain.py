"""Walks over all coins."""

from __future__ import annotations

import pytest

from panprivacy.audit import RELEASE, exact_loss
from panprivacy.audit.exact import chain
from tests.exact.test_loss import bits


def test_a_long_walk_is_told(monkeypatch):
    monkeypatch.setattr(chain, "_MANY_RUNS", 20)
    with pytest.warns(UserWarning, match="outcomes have been walked and there are more"):
        exact_loss(bits, [[0], RELEASE], [[], RELEASE])
