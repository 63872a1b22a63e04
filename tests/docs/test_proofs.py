"""Each proof names tests that exist, and has been read beside the code as it is."""

from __future__ import annotations

import ast
import re

import pytest

from tests.docs import pins
from tests.docs.pins import INDEX, ROOT, Pin

SRC = ROOT / "src"
PACKAGE = SRC / "panprivacy"


# What is wrong with a page, a line each


def stale(pin, source=SRC):
    """Why the proof has to be read again; nothing if it has not."""
    page = pin.page.relative_to(ROOT)
    try:
        now = pins.digest(pin.code, source)
    except LookupError:
        return [f"{page} speaks of {pin.code}, which does not exist"]
    advice = "read the proof again, then run `make pins`"
    changed = f"{page} speaks of {pin.code}, which has changed: {advice}"
    return [changed] if now != pin.digest else []


def missing_tests(page):
    text = page.read_text()
    return [
        f"{page.relative_to(ROOT)} names {test}, which does not exist"
        for test in pins.named_tests(text)
        if not pins.has_test(test)
    ]


def unpinned(needed, pinned):
    """The names of which neither they nor parts of them are pinned."""
    return [
        f"no page of docs/guarantees speaks of {name}: prove it, and pin it"
        for name in sorted(needed)
        if not any(f"{code}.".startswith(f"{name}.") for code in pinned)
    ]


def report(problems):
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


# What has to be pinned


def cells_and_addressings():
    """The public classes of all cells and all addressings."""
    modules = [*(PACKAGE / "tables/cells").glob("*.py"), PACKAGE / "tables/addressing.py"]
    return {name for module in modules for name in pins.classes(module)}


def mechanisms():
    """The running counts: every class that can be re-randomised in its own way."""
    return {
        name
        for module in (PACKAGE / "tables/counters").glob("*.py")
        for name, node in pins.classes(module).items()
        if defined(node, "rerandomise") or defined(node, "run")
    } - {f"panprivacy.tables.counters.running.{one}" for one in ("Running", "RunningState")}


def defined(node, name):
    """Whether a class has a method of this name that does something."""
    return any(
        getattr(one, "name", None) == name and not pins.says_nothing(one) for one in node.body
    )


def release_rules():
    """Every `release` that does something, and every reading: what it noises, and how much."""
    found = {
        name: node
        for module in (PACKAGE / "statistics").rglob("*.py")
        for name, node in pins.classes(module).items()
    }
    releases = {f"{name}.release" for name, node in found.items() if defined(node, "release")}
    return releases | {name for name, node in found.items() if defined(node, "scales")}


def all_pins():
    return [pin for page in pins.pages() for pin in pins.pins(page)]


PAGES = pytest.mark.parametrize("page", pins.pages(), ids=lambda page: page.stem)


@PAGES
def test_each_proof_was_read_beside_the_code_as_it_is(page):
    assert pins.pins(page), f"{page.relative_to(ROOT)} has no table of pins"
    report([problem for pin in pins.pins(page) for problem in stale(pin)])


@pytest.mark.parametrize("page", [INDEX, *pins.pages()], ids=lambda page: page.stem)
def test_the_tests_that_a_page_names_exist(page):
    report(missing_tests(page))


@PAGES
def test_each_pin_names_a_test(page):
    assert all(pin.tests for pin in pins.pins(page))
    rows = re.findall(r"^\| `panprivacy.*$", page.read_text(), re.MULTILINE)
    assert len(rows) == len(pins.pins(page)), "a row is not written like a pin"


@PAGES
def test_each_page_is_in_the_index(page):
    assert f"]({page.name})" in INDEX.read_text(), f"{INDEX.relative_to(ROOT)} has no {page.name}"


@pytest.mark.parametrize("needed", [cells_and_addressings, mechanisms, release_rules])
def test_each_cell_addressing_and_release_has_a_proof(needed):
    report(unpinned(needed(), {pin.code for pin in all_pins()}))


def test_what_needs_a_proof_is_found():
    assert {"panprivacy.tables.cells.bits.BitCells", "panprivacy.tables.addressing.Sampled"} < (
        cells_and_addressings()
    )
    assert "panprivacy.tables.counters.accumulator.Accumulator" in mechanisms()
    assert release_rules() >= {
        "panprivacy.statistics.statistic.Statistic.release",
        "panprivacy.statistics.composites.groups.GroupedReleasing.release",
        "panprivacy.statistics.count_plan.CountReading",
        "panprivacy.statistics.incidence.reading.NamedReading",
    }


# What a hash sees

CODE = '''
class Cell:
    """A cell."""

    width = 8

    def add(self, value, *, to=("a", "b")):
        """Add a value."""
        if value:
            self.total += value
        return f"{value!r} of {self.width:{to}}, {{total}}"
'''


def hashed(code):
    return pins.hashed(ast.parse(code).body[0])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""A cell."""', '"""What a cell is."""'),
        ('        """Add a value."""\n', ""),
        ("self.total += value", "self.total += value  # in place"),
        ("    width = 8\n", "    width = (8)\n\n\n    # bits\n"),
        ('to=("a", "b")):', "to=(\n        'a',\n        'b',\n    )):"),
        ('f"{value!r} of', 'f"{value!r} " f"of'),
        ("if value:\n            self.total", "if value:\n                self.total"),
    ],
)
def test_a_hash_sees_neither_words_nor_layout(old, new):
    assert old in CODE
    assert hashed(CODE.replace(old, new)) == hashed(CODE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("width = 8", "width = 9"),
        ("width = 8", 'width = "8"'),
        ("width = 8", "width = True"),
        ("+=", "-="),
        ("*, to", "to"),
        ('("a", "b")', '("a b",)'),
        ("{{total}}", "{total}"),
        ("value!r", "value!s"),
        ("{value!r} of", "{value!r}  of"),
        ("        return", "            return"),
        ("    def add", "    @property\n    def add"),
        ("class Cell:", "class Cell(Base):"),
        ('        return f"', '        "a statement"\n        raise f"'),
    ],
)
def test_a_hash_sees_every_change_of_code(old, new):
    assert old in CODE
    assert hashed(CODE.replace(old, new)) != hashed(CODE)


def test_a_hash_is_the_same_in_all_versions_of_python():
    assert hashed(CODE) == "35512e89"


@pytest.fixture
def copied(tmp_path):
    """Replaces text in a copy of the bits, and tells what a pin of their update says then."""
    original = PACKAGE / "tables/cells/bits.py"
    code = "panprivacy.tables.cells.bits.RedrawnBits.update"
    page = ROOT / "docs" / "guarantees" / "bits.md"
    copy = tmp_path / "panprivacy/tables/cells/bits.py"
    copy.parent.mkdir(parents=True)

    def problems(old, new):
        assert old in original.read_text()
        copy.write_text(original.read_text().replace(old, new))
        return stale(Pin(page, code, (), pins.digest(code)), tmp_path)

    return problems


def test_a_changed_line_of_code_asks_for_the_proof_to_be_read_again(copied):
    (line,) = copied("fresh = coins.bernoulli(self.presence(epoch)", "fresh = coins.bernoulli(1")
    assert line == (
        "docs/guarantees/bits.md speaks of panprivacy.tables.cells.bits.RedrawnBits.update, "
        "which has changed: read the proof again, then run `make pins`"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("            wipe(fresh)\n", "            wipe(fresh)  # nobody may see it\n"),
        ("Redraw each touched bit once", "Redraw touched bits"),
        ("return self._draw((1 - self.gain()) / 2, coins)", "return None"),
    ],
    ids=["a comment", "a docstring", "another method"],
)
def test_what_is_no_code_of_his_leaves_a_pin_alone(copied, old, new):
    assert copied(old, new) == []


def test_code_that_is_gone_is_reported(copied):
    (line,) = copied("    def update(", "    def take_in(")
    assert line.endswith("RedrawnBits.update, which does not exist")


def test_tests_that_do_not_exist_are_not_found():
    assert pins.has_test("tests/docs/test_proofs.py::test_tests_that_do_not_exist_are_not_found")
    assert pins.has_test("tests/unit/test_grouped.py::TestUpdate::test_whole_numbers_as_labels")
    assert not pins.has_test("tests/docs/test_proofs.py::test_nothing")
    assert not pins.has_test("tests/docs/test_nothing.py::test_nothing")


def test_a_cell_without_a_proof_is_reported():
    needed = {"a.b.Cells", "a.b.Bits", "a.b.Bit"}
    assert unpinned(needed, {"a.b.Cells.update", "a.b.Bits"}) == [
        "no page of docs/guarantees speaks of a.b.Bit: prove it, and pin it"
    ]


def test_rewriting_a_page_writes_hashes_and_nothing_else():
    page = ROOT / "docs" / "guarantees" / "bits.md"
    text = page.read_text()
    blank = re.sub(r"`\w*` \|$", "`` |", text, flags=re.MULTILINE)
    assert pins.rewrite(blank) == pins.rewrite(text)
    assert re.sub(r"`\w*` \|$", "`` |", pins.rewrite(text), flags=re.MULTILINE) == blank
