"""What a program leaves elsewhere is looked for in slow tests, and by `panprivacy audit`."""

from __future__ import annotations

import pytest

from panprivacy.audit.exact import loss
from panprivacy.audit.suite import subject


@pytest.fixture(autouse=True)
def only_the_walk(request, monkeypatch):
    """The exact loss alone: children that go through all variables of all tests take far longer."""
    if request.node.get_closest_marker("slow") is None:
        for module in (loss, subject):
            monkeypatch.setattr(module, "check_traces", lambda *_: None)
