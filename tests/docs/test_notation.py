"""No symbol has two meanings, and those of a page are on it."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.docs.pages import ROOT

EVERYWHERE, SOMEWHERE = (ROOT / "docs/notation.md").read_text().split("## On some pages")


def rows(text):
    """The cells of each row below the head of a table."""
    lines = [line[1:-1].split("|") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line] for line in lines[1:]]


def symbols(cell):
    return [one for one in cell.split(", ") if one]


def test_a_symbol_has_one_meaning():
    everywhere, somewhere = rows(EVERYWHERE), rows(SOMEWHERE)
    counted = Counter(one for row in [*everywhere, *somewhere] for one in symbols(row[1]))
    assert len(counted) > 30
    assert [one for one, times in counted.items() if times > 1] == []


def pages():
    """The symbols of each page that is named."""
    found = {}
    for _, symbol, _, named in rows(SOMEWHERE):
        for page in re.findall(r"\]\(([^)]+)\)", named):
            found.setdefault(page, []).extend(symbols(symbol))
    return found


@pytest.mark.parametrize(("page", "named"), pages().items())
def test_a_symbol_of_a_page_is_there(page, named):
    text = (ROOT / "docs" / page).read_text()
    assert [one for one in named if not re.search(rf"(?<![\w]){re.escape(one)}(?!\w)", text)] == []
