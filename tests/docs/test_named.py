"""What pages name between backquotes exists, and every benchmark has a row of measurements."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib

import pytest

from tests.docs.pages import PAGES, ROOT, name
from tests.docs.pins import has_test

PACKAGES = "panprivacy", "pp", "benchmarks", "reproductions", "tests"
HOMES = [
    "panprivacy",
    *(
        f"panprivacy.{part}"
        for part in (
            "audit",
            "cluster",
            "continual",
            "devices.federated",
            "papers.local",
            "papers.online",
            "papers.published",
            "papers.queries",
        )
    ),
]
"""Where public classes are, whose names pages write without a module."""

FOLDERS = "benchmarks", "docs", "examples", "proofs", "reproductions", "src", "tests", "tools"
FILES = ".toml", ".conf", ".yml", ".md"
"""Endings of files that are named after the package."""

SUBJECTS = {"panprivacy.visits"}
"""Names of queues."""

EXAMPLES = {"src/panprivacy/a/b.py"}
"""Paths that stand for any path."""

RULES = (ROOT / "Makefile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EACH = pytest.mark.parametrize(
    "page", [page for page in PAGES if page.stem != "CHANGELOG"], ids=name
)
DOTTED = re.compile(rf"(?<![\w./-])(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+")
MEMBER = re.compile(r"([A-Z]\w+)\.([a-z]\w*)(?:\(.*)?")
PATH = re.compile(rf"(?:{'|'.join(FOLDERS)})(?:/[\w.-]+)+")


def quoted(page):
    """What a page has between backquotes, without its blocks of code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`([^`\n]+)`", text))


def found(dotted):
    """What a dotted name stands for.

    Raises:
        LookupError: it stands for nothing.
    """
    parts = dotted.split(".")
    if parts[0] == "pp":
        parts[0] = "panprivacy"
    for length in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError as error:
            if error.name in {".".join(parts[:some]) for some in range(1, length + 1)}:
                continue
            return dotted  # a benchmark, beside packages that no test needs
        for part in parts[length:]:
            thing = member(thing, part)
        return thing
    raise LookupError(dotted)


def member(thing, part):
    """An attribute of a module or a class, or the source of a class that assigns it to itself."""
    if hasattr(thing, part):
        return getattr(thing, part)
    if any(part in getattr(one, "__annotations__", ()) for one in inspect.getmro(thing)):
        return part
    raise LookupError(part)


def exists(dotted):
    """Whether a dotted name stands for something."""
    try:
        found(dotted)
    except (LookupError, AttributeError):
        return False
    return True


def is_there(text):
    """Whether there is a path, or a test or theorem in a file."""
    path, *inside = text.split("::")
    if inside and path.endswith(".py"):
        return has_test(text)
    return (ROOT / path).exists() and all(one in (ROOT / path).read_text() for one in inside)


@EACH
def test_dotted_names_stand_for_something(page):
    names = {one for text in quoted(page) for one in DOTTED.findall(text)}
    names = {one for one in names if not one.endswith(FILES) and one not in SUBJECTS}
    assert {one for one in names if not exists(one)} == set()


@EACH
def test_members_of_public_classes_exist(page):
    lost = set()
    for text in quoted(page):
        if found_member := MEMBER.fullmatch(text):
            homes = [home for home in HOMES if exists(f"{home}.{found_member[1]}")]
            whole = [f"{home}.{found_member[1]}.{found_member[2]}" for home in homes]
            if whole and not any(map(exists, whole)):
                lost.add(text)
    assert lost == set()


@EACH
def test_paths_and_tests_exist(page):
    paths = {text for text in quoted(page) - EXAMPLES if PATH.fullmatch(text.split("::")[0])}
    assert {text for text in paths if not is_there(text)} == set()


def benchmarks():
    """The benchmarks that can be run."""
    scripts = (ROOT / "benchmarks").glob("*.py")
    return sorted(one.stem for one in scripts if '__name__ == "__main__"' in one.read_text())


def test_every_benchmark_has_a_row_of_measurements():
    page = (ROOT / "docs/measurements.md").read_text()
    recipes = {
        target: re.search(rf"^{target}:.*\n((?:\t.*\n)*)", RULES, re.MULTILINE)[1]
        for target in re.findall(r"`make ([a-z-]+)`", page)
    }
    measured = set(re.findall(r"-m benchmarks\.(\w+)", "".join([page, *recipes.values()])))
    assert set(benchmarks()) - measured == set()


@EACH
def test_targets_and_extras_exist(page):
    text = page.read_text()
    targets = set(re.findall(r"(?:`|\$ )make ([a-z][a-z-]*)", text))
    assert {one for one in targets if not re.search(rf"^{one}:", RULES, re.MULTILINE)} == set()
    extras = {name for some in re.findall(r"'\.\[([\w,]+)\]'", text) for name in some.split(",")}
    assert extras <= set(PROJECT["optional-dependencies"])


def test_the_pages_name_the_oldest_python_that_is_supported():
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert f"with Python {oldest} or newer" in (ROOT / "README.md").read_text()


def test_what_is_not_there_is_found_missing():
    assert exists("panprivacy.DistinctCount.release")
    assert exists("benchmarks.crashes")
    assert not exists("panprivacy.DistinctCount.released_by_nobody")
    assert not exists("panprivacy.nothing.Nobody")
    assert not exists("nothing_at_all")
    assert is_there("tests/docs/test_named.py::test_what_is_not_there_is_found_missing")
    assert not is_there("tests/docs/test_named.py::test_of_nobody")
    assert not is_there("docs/nothing.md")
