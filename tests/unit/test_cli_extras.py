"""What is said where a part of the package is not installed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from panprivacy.cli.extras import PACKAGES, Extra, import_failed, installed
from panprivacy.errors import PlanError


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        (Extra.service, r"the service needs uvicorn: pip install '\.\[service\]' in a clone"),
        (Extra.dashboard, r"the dashboard needs uvicorn: pip install '\.\[dashboard\]' in a clone"),
        (Extra.cluster, r"a cluster needs uvicorn: pip install '\.\[cluster\]' in a clone"),
        (Extra.federated, r"collectors need uvicorn: pip install '\.\[federated\]' in a clone"),
    ],
)
def test_what_is_missing_is_named_with_the_cure(extra, says):
    with pytest.raises(PlanError, match=says) as refused, installed(extra):
        raise ModuleNotFoundError("no module", name="uvicorn")
    assert refused.value.__suppress_context__


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ModuleNotFoundError("no", name="psycopg"), "needs psycopg: pip install '.[postgresql]'"),
        (ModuleNotFoundError("no", name="anyio.abc"), "cannot import anyio.abc: no"),
        (ModuleNotFoundError("no", name="panprivacy.x"), "cannot import panprivacy.x: no"),
        (ImportError("libz.so\nis broken", name="scipy"), "cannot import scipy: libz.so is broken"),
        (ImportError("it needs SciPy: pip"), "it needs SciPy: pip"),
        (ImportError(), "cannot import a module: ImportError"),
    ],
)
def test_only_a_package_of_an_extra_is_called_missing(error, says):
    assert says in import_failed(error)
    if error.name != "psycopg":
        with pytest.raises(PlanError, match=re.escape(says)), installed(Extra.service):
            raise error


def test_every_package_of_an_extra_is_known():
    """Those of what is installed for users, by the names of their distributions."""
    tree = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())
    extras = tree["project"]["optional-dependencies"]
    known = {"pycryptodome": "Crypto", "nats-py": "nats"}
    for extra in (
        "plot",
        "service",
        "dashboard",
        "postgresql",
        "federated",
        "cluster",
        "published",
    ):
        for wanted in extras[extra]:
            name = re.match(r"[\w-]+", wanted)[0]
            if name not in {"panprivacy", "cryptography"}:
                assert PACKAGES[known.get(name, name.replace("-", "_"))] == extra


def test_all_else_passes():
    with installed(Extra.service):
        pass
    with pytest.raises(KeyError), installed(Extra.service):
        raise KeyError
