"""What a program leaves elsewhere is looked for in tests marked `traces` and in slow ones."""

from __future__ import annotations

import pytest

from panprivacy.audit.exact import loss
from panprivacy.audit.suite import subject


@pytest.fixture(autouse=True)
def only_the_walk(request, monkeypatch):
    """The exact loss alone: four children a walk take a second, and there are hundreds of walks."""
    if not any(request.node.get_closest_marker(name) for name in ("traces", "slow")):
        for module in (loss, subject):
            monkeypatch.setattr(module, "check_traces", lambda *_: None)
