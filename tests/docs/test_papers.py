"""Every row of docs/papers.md names what exists, and every number in it is computed again."""

from __future__ import annotations

import ast
import math
import re
from importlib import import_module
from pathlib import Path

import pytest
from reproductions.papers import NUMBERS

from panprivacy.continual import METHODS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/papers.md").read_text()
SECTIONS = {
    section.splitlines()[0].split(",")[0].split(":")[0]: section
    for section in PAGE.split("\n## ")[1:]
}
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for section in SECTIONS.values()
    for line in section.splitlines()
    if line.startswith("| ") and not line.startswith("| result")
]
VERDICTS = set(re.findall(r"^\| (\w+) \|", PAGE.split("\n## ")[0], re.MULTILINE)) - {"word"}
NUMBER = re.compile(r"(inf|[\d.,]*\d) ± ([\d.]*\d) \(`(\w+)`\)")
WORDS = {"deletions=True", "expected", "intrusions"}
"""Arguments that cells of code name."""

SLOW = {
    "figure_4_dwork",
    "figure_4_tuned",
    "figure_5_ratio",
    "figure_6_ratio",
    "figure_7_ratio",
    "despite_a_fifth",
    "beyond_rho",
}
"""Numbers that take more than a second or two."""

RESULTS = {
    "Digalakis": {
        "Definition": "2.2 2.3 2.4 2.5 2.6",
        "Theorem": "2.1 2.2 3.1 3.2 3.3 4.1 4.2 4.3 5.1 5.2",
        "Lemma": "A.1",
        "Algorithm": "1 2 3",
        "Section": "3.1 3.2 4.1 4.2 4.4 5.1",
        "Figure": "1 2 3 4 5 6 7",
    },
    "Mir": {
        "Definition": "1 2 3 4 5 6",
        "Theorem": "1 2 3 4 5 6 7 8 9 10 11 12 13 14",
        "Lemma": "1 2 3 4 5 6 7",
        "Claim": "1 2",
        "Corollary": "1 2 3 4 5",
        "Algorithm": "1 2 3",
        "Problem": "1",
    },
    "Dwork and Roth": {
        "Definition": "12.1 12.2 12.3 12.4 12.5 12.6 12.7 12.8",
        "Observation": "12.1",
        "Remark": "12.1",
        "Theorem": "12.5 12.6 12.7 12.8",
        "Lemma": "12.2 12.9",
        "Corollary": "12.3 12.4",
        "Figure": "12.1 12.2",
        "Algorithm": "18",
    },
    "Feldman": {
        "Definition": "2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8 2.9 2.10 2.11 B.1",
        "Observation": "5",
        "Theorem": "1 2 3 6 7 8 9 10 11 12 13 6.1 6.2",
        "Lemma": "2.1 3.1 3.2",
        "Algorithm": "1 2 3 4 5 6",
    },
}
"""The numbered results of four papers; the slides of the lecture have none."""

KIND = re.compile(
    r"(Definition|Theorem|Lemma|Claim|Corollar|Algorithm|Section|Figure|Observation|Remark|Problem)"
)
ONE = r"(?:[A-Z]\.)?\d+(?:\.\d+)?"


def named(cell):
    """The results that the first cell of a row speaks of, by kind."""
    head = cell.split(":")[0]
    pieces = KIND.split(head)[1:]
    for kind, piece in zip(pieces[::2], pieces[1::2], strict=True):
        whole = "Corollary" if kind == "Corollar" else kind
        for first, last in re.findall(rf"({ONE})(?: to ({ONE}))?", piece):
            yield whole, first
            if last:
                before, _, start = first.rpartition(".")
                for place in range(int(start) + 1, int(last.rpartition(".")[2]) + 1):
                    yield whole, f"{before}.{place}" if before else str(place)


@pytest.mark.parametrize("paper", RESULTS)
def test_every_result_of_a_paper_has_a_row(paper):
    section = next(text for name, text in SECTIONS.items() if name.startswith(paper))
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    found = {one for line in lines for one in named(line.split("|")[1])}
    wanted = {(kind, one) for kind, all_of in RESULTS[paper].items() for one in all_of.split()}
    assert wanted - found == set()


def exists(name):
    """Whether a name of the code leads somewhere."""
    path, _, test = name.partition("::")
    if path.startswith("tests/"):
        return test in functions(path) if test else (ROOT / path).exists()
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def functions(path):
    """The names of the tests of a file."""
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_names_what_exists(row):
    result, code, wrong, ours, verdict = row
    assert result
    assert wrong
    assert code, "say that nothing is in the code, and why"
    assert verdict in VERDICTS
    code = re.sub(r"\[[^]]*\]\(([^)#]*)[^)]*\)", "", code)  # links have a test of their own
    for one in re.findall(r"`([^`]*)`", code):
        method = re.fullmatch(r'(?:method=)?"(\w+)"', one)
        if method:
            assert method[1] in METHODS
        elif one not in WORDS:
            assert re.match(r"(panprivacy|reproductions)\.|tests/", one), one
            assert exists(one), one
    for cell in (wrong, ours):
        bare = re.sub(r"`[^`]*`", "", NUMBER.sub("", cell))
        bare = re.sub(rf"(Theorem|Lemma|Corollary|Definition|Section|Figure)s? {ONE}", "", bare)
        assert not re.search(r"\d\.\d", bare), f"no function computes a number of: {cell}"


LONG = {"hitters_error", "twice", "weights_least"}

MARKS = {**dict.fromkeys(SLOW, pytest.mark.slow), **dict.fromkeys(LONG, pytest.mark.long)}

STATED = [
    pytest.param(*one, marks=MARKS.get(one[2], ()), id=one[2])
    for one in sorted(set(NUMBER.findall(PAGE)), key=lambda one: one[2])
]


@pytest.mark.parametrize(("stated", "tolerance", "name"), STATED)
def test_a_number_is_what_is_computed(stated, tolerance, name):
    stated = float(stated.replace(",", ""))
    found = NUMBERS[name]()
    assert found == stated if math.isinf(stated) else abs(found - stated) <= float(tolerance) + 1e-9


def test_the_page_has_every_number():
    assert {name for _, _, name in NUMBER.findall(PAGE)} == set(NUMBERS)
