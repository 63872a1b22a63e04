"""Who changes a module finds its tests by its name.

`src/panprivacy/a/b.py` is tested by `tests/*/test_b.py`, or, where another one is called b too, by
`test_a_b.py` or `tests/a/test_b.py`. A folder that is read in one sitting may have one `test_a.py`.
"""

from __future__ import annotations

import pytest

from tests import layout
from tests.layout import files_of, is_named_after, length, modules, names, sizes

EXCEPTIONS = {("version",): "a number"}
"""Modules without behaviour, and what they are."""

MOST_METHODS = 25

MOST_LINES = 40


@pytest.mark.parametrize(
    "module", [one for one in modules() if one not in EXCEPTIONS], ids="/".join
)
def test_a_module_has_a_test_file_of_its_name(module):
    *folders, name = module
    own = name if names()[name] == 1 or not folders else f"{folders[-1]}_{name}"
    assert files_of(module), f"add tests/unit/test_{own}.py: nothing has the name of this module"


@pytest.mark.parametrize("module", EXCEPTIONS, ids="/".join)
def test_what_is_excepted_is_there_and_has_none(module):
    assert module in modules()
    assert not files_of(module)


def test_names_that_several_have_are_told_apart():
    assert names()["server"] > 1
    assert is_named_after(("cluster", "server"), ("cluster", "server"))
    assert is_named_after(("cluster", "server"), ("unit", "cluster_server"))
    assert not is_named_after(("cluster", "server"), ("service", "server"))
    assert not is_named_after(("cluster", "server"), ("unit", "server"))
    assert is_named_after(("privacy", "noise"), ("unit", "privacy_noise"))
    assert not is_named_after(("privacy", "noise"), ("exact", "noise"))
    assert is_named_after(("service", "stream"), ("service", "stream"))
    assert not is_named_after(("service", "config", "stream"), ("service", "stream"))
    assert is_named_after(("statistics", "release"), ("unit", "statistics_release"))
    assert not is_named_after(
        ("statistics", "incidence", "release"), ("unit", "statistics_release")
    )
    assert is_named_after(("statistics", "incidence", "release"), ("unit", "incidence_release"))


def test_a_large_folder_has_a_file_for_each_module(monkeypatch):
    small = ("statistics", "density", "plan")
    assert files_of(small) == ["tests/statistical/test_density.py"]
    monkeypatch.setattr(layout, "SITTING", length(small[:-1]) - 1)
    assert files_of(small) == []


def test_no_class_has_too_many_methods():
    methods, _ = sizes()
    assert methods["statistics.plan.Plan"] > 10
    assert not {name for name, count in methods.items() if count > MOST_METHODS}


def test_no_function_is_too_long():
    _, lines = sizes()
    assert lines["cli.run.run"] > 10
    assert not {name for name, count in lines.items() if count > MOST_LINES}
