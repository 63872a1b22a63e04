"""Pages name theorems that exist, and every theorem is on the page of proofs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "proofs.md"
THEOREM = re.compile(r"^(?:Theorem|Corollary) (\w+)", re.MULTILINE)
NAMED = re.compile(r"`proofs/(\w+)\.v::(\w+)`")
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
PAGES = sorted([PAGE, *(ROOT / "docs").glob("guarantees/*.md"), ROOT / "docs" / "laws.md"])


def compiled():
    """The files that `make proofs` compiles."""
    lines = (ROOT / "proofs" / "_CoqProject").read_text().split()
    return [ROOT / "proofs" / line for line in lines if line.endswith(".v")]


def proved():
    """Each theorem, as its file and its name."""
    return {(path.stem, name) for path in compiled() for name in THEOREM.findall(path.read_text())}


def named(page):
    """Each theorem that a page names."""
    return set(NAMED.findall(page.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_theorems_that_a_page_names_are_proved(page):
    assert named(page) <= proved()


@pytest.mark.parametrize(
    "page", [one for one in PAGES if one.parent.name == "guarantees"], ids=lambda page: page.stem
)
def test_each_page_of_a_guarantee_says_what_a_machine_checked(page):
    """Its theorem, or that there is none."""
    third = page.read_text().splitlines()[2]
    if third.startswith("[Checked by a machine](../proofs.md): "):
        assert NAMED.search(third)
    else:
        assert page.stem == "README" or third.startswith(
            "[Not checked by a machine](../proofs.md): "
        )


def test_each_theorem_is_explained():
    assert proved() == named(PAGE)


def test_no_file_is_left_out():
    assert {path.name for path in (ROOT / "proofs").glob("*.v")} == {
        path.name for path in compiled()
    }


def test_no_proof_is_missing():
    text = "\n".join(path.read_text() for path in compiled())
    assert not re.search(r"\b(Admitted|admit|Axiom|Axioms|Parameter|Conjecture)\b", text)


def test_the_tests_that_the_page_names_exist():
    for path, test in TEST.findall(PAGE.read_text()):
        text = (ROOT / path).read_text()
        assert not test or f"def {test}(" in text


def test_the_build_checks_every_theorem():
    """The script asks Coq for the assumptions of what is called a theorem, wherever it stands."""
    script = (ROOT / "proofs" / "check.sh").read_text()
    assert "(Theorem|Corollary)" in script
    assert "Print Assumptions" in script
