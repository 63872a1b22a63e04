"""Refusals that tests of many modules meet: each has its text here, once."""

from __future__ import annotations

from functools import partial

import pytest

from panprivacy.errors import BudgetError, InputError, PanPrivacyError, PlanError

wiped = partial(
    pytest.raises, PanPrivacyError, match=r"the state was wiped; make a new (one|statistic)"
)
begun = partial(
    pytest.raises,
    PanPrivacyError,
    match=r"only a new (one|statistic) can go on from an earlier state",
)
spoilt = partial(
    pytest.raises, InputError, match="the state is damaged: no such state can come about"
)
copied = partial(pytest.raises, TypeError, match="second intrusion")
released = partial(pytest.raises, BudgetError, match="all 1 planned releases")
confidence = partial(pytest.raises, PlanError, match="confidence must lie strictly between 0 and 1")
