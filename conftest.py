"""For the examples in the documents and in `src`."""

from __future__ import annotations

from typing import Any

import pytest

collect_ignore = ["tests/docs/docstrings.py", "tests/docs/site.py"]
"""What `make docs` runs: it imports MkDocs, which no test needs."""


@pytest.fixture(autouse=True)
def no_way_to_pytest(doctest_namespace: dict[str, Any]) -> None:
    """An audit goes through the variables of an example; from this one it would get everywhere."""
    doctest_namespace["getfixture"] = None
