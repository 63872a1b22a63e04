"""A long search is made once: other processes read its result, or search where they cannot."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import pytest

from panprivacy.ground import searches
from panprivacy.ground.searches import planning_digest, stored_or_searched
from panprivacy.statistics.alternatives import Alternatives, Target
from panprivacy.statistics.catalogue import kind_of

QUESTION = {"sizes": "universe=3", "error": 0.1}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """The cache folder of the user."""
    monkeypatch.delenv("CACHE_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", "/no")
    return tmp_path / "panprivacy"


def result(answer="5", *, question=None, holds=True, unstored=0.0):
    """The result of a search that would answer this, and whether it was made."""
    made = []
    found = stored_or_searched(
        question or QUESTION, lambda: made.append(1) or answer, lambda _: holds, unstored
    )
    return found, bool(made)


def stored(place):
    return [path for path in place.rglob("*") if path.is_file()]


@pytest.mark.parametrize("answer", ["5", None])
def test_the_result_of_a_search_is_read_the_next_time(place, answer):
    assert result(answer) == (answer, True)
    assert result("6") == (answer, False)
    assert result("6", question={**QUESTION, "error": 0.2}) == ("6", True)
    assert len(stored(place)) == 2


def test_a_short_search_is_not_stored(place):
    assert result(unstored=1.0) == ("5", True)
    assert not place.exists()


def test_a_result_that_does_not_hold_is_searched_for_again():
    result("5")
    assert result("6", holds=False) == ("6", True)
    assert result("7") == ("6", False)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"found": "9"}', '{"question": 1, "found": "9"}', "é", "9" * 20_000],
)
def test_a_broken_or_foreign_file_is_ignored_and_replaced(place, text):
    result()
    (file,) = stored(place)
    file.write_text(text, encoding="latin-1")
    assert result("6") == ("6", True)
    assert result("7") == ("6", False)
    assert stored(place) == [file]


def test_a_folder_that_cannot_be_written_stores_nothing(place):
    place.parent.joinpath("panprivacy").write_text("a file where the folder would be")
    assert result("5") == ("5", True)
    assert result("6") == ("6", True)


def test_a_result_is_read_from_a_folder_that_cannot_be_written(place):
    result("5")
    (folder,) = place.iterdir()
    folder.chmod(0o500)
    try:
        assert result("6") == ("5", False)
    finally:
        folder.chmod(0o700)


def test_another_version_searches_again(place, monkeypatch):
    result("5")
    monkeypatch.setattr("panprivacy.ground.caching.VERSION", "0.0.0")
    assert result("6") == ("6", True)
    assert len({file.parent for file in stored(place)}) == 2


def test_sources_that_plan_decide_the_folder(tmp_path, monkeypatch):
    for name in ("statistics", "cli"):
        tmp_path.joinpath(name).mkdir()
        tmp_path.joinpath(name, "one.py").write_text("ONE = 1")
    monkeypatch.setattr(searches, "PACKAGE", tmp_path)
    digests = [planning_digest.__wrapped__()]
    for name in ("cli", "statistics"):
        tmp_path.joinpath(name, "one.py").write_text("ONE = 2")
        digests.append(planning_digest.__wrapped__())
    assert digests[0] == digests[1] != digests[2]


PROGRAM = """
import time
from panprivacy.ground.searches import stored_or_searched

def search():
    time.sleep(1.1)
    print("searched", end=" ")
    return "5"

print(stored_or_searched({"one": 1}, search, lambda found: found == "5"))
"""


def test_two_processes_search_once():
    printed = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert printed == ["searched 5", "5"]


@pytest.mark.parametrize("way", ["memory", "epsilon"])
def test_a_plan_that_is_read_is_the_plan_that_was_found(way, place, monkeypatch):
    monkeypatch.setattr(stored_or_searched, "__defaults__", (0.0,))
    kind = kind_of("distinct").entry
    sizes = kind.sizes.read(kind.name, {"expected": 100_000})
    target = Target(lambda plan: plan.relative_error(), 0.05, "error")

    def planned():
        search, made = Alternatives(sizes, 1, 0), []
        plan = search.plan
        monkeypatch.setattr(search, "plan", lambda *asked: made.append(asked) or plan(*asked))
        found = (
            search.smallest_memory(Fraction(1), 1 << 30, target)
            if way == "memory"
            else search.smallest_epsilon(None, target)
        )
        return found, len(set(made))

    first, tried = planned()
    assert tried > 2
    assert planned() == (first, 1)
    (file,) = stored(place)
    forged = '"found": "1"}' if way == "memory" else '"found": "1/1000"}'
    file.write_text(file.read_text().rpartition('"found"')[0] + forged)
    assert planned() == (first, tried + 1)  # one that misses the target
