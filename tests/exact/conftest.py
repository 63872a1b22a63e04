"""A fixture for all walks."""

from __future__ import annotations

import pytest

from panprivacy.devices.federated import device


@pytest.fixture(autouse=True)
def no_wiping(request, monkeypatch):
    """Of what no walk sees: a device wipes for 2 ms a tick, and is led through thousands."""
    if request.node.get_closest_marker("traces") is None:
        monkeypatch.setattr(device, "wipe_traces", lambda: None)
