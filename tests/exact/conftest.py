"""What a program leaves elsewhere is looked for once a class, in test_audit and test_traces."""

from __future__ import annotations

import pytest

from panprivacy.audit.exact import loss

LOOK_EVERYWHERE = {"test_audit", "test_traces"}


@pytest.fixture(autouse=True)
def only_the_walk(request, monkeypatch):
    """The loss alone: children that are led through both streams would take most of the time."""
    if request.node.path.stem not in LOOK_EVERYWHERE:
        monkeypatch.setattr(loss, "check_traces", lambda *_: None)
