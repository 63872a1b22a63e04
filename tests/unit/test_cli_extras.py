"""What is said where a part of the package is not installed."""

from __future__ import annotations

import pytest

from panprivacy.cli.extras import Extra, installed
from panprivacy.errors import PlanError


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        (Extra.service, r"the service needs uvicorn: pip install 'panprivacy\[service\]'"),
        (Extra.dashboard, r"the dashboard needs uvicorn: pip install 'panprivacy\[dashboard\]'"),
        (Extra.cluster, r"a cluster needs uvicorn: pip install 'panprivacy\[cluster\]'"),
        (Extra.federated, r"collectors need uvicorn: pip install 'panprivacy\[federated\]'"),
    ],
)
def test_what_is_missing_is_named_with_the_cure(extra, says):
    with pytest.raises(PlanError, match=says) as refused, installed(extra):
        raise ImportError("no module", name="uvicorn")
    assert refused.value.__suppress_context__


def test_an_import_that_names_nothing_is_told_as_the_extra():
    with (
        pytest.raises(PlanError, match="the service needs the extra service: pip"),
        installed(Extra.service),
    ):
        raise ImportError


def test_all_else_passes():
    with installed(Extra.service):
        pass
    with pytest.raises(KeyError), installed(Extra.service):
        raise KeyError
