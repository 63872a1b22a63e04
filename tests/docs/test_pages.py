"""Every block of every page runs, and its links lead somewhere."""

from __future__ import annotations

import re
from fractions import Fraction
from importlib import import_module

import pyarrow.parquet as pq
import pytest

from panprivacy.cli import _COMMANDS
from panprivacy.statistics.plan_search import Alternatives
from panprivacy.statistics.specification import Specification
from tests.docs.pages import NUMBER, PAGES, ROOT, blocks, commands, name, shape, typed

ELSEWHERE = {
    "docs/decoding.md": "tests/docs/test_decoding.py",
    "docs/demonstration.md": "tests/docs/test_demonstration.py",
    "docs/devices.md": "tests/docs/test_devices.py",
    "docs/merging.md": "tests/docs/test_shards.py",
    "docs/moves.md": "tests/docs/test_moves.py",
    "docs/service.md": "tests/docs/test_service.py",
    "docs/two-servers.md": "tests/docs/test_two_servers.py",
}
"""Whose commands another test types, because they need servers, keys or shards."""

MODULES = [
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
EACH = pytest.mark.parametrize("page", PAGES, ids=name)
TYPED = [
    page
    for page in PAGES
    if name(page) not in ELSEWHERE
    and any(language == "console" and not reason for language, _, reason in blocks(page))
]


@EACH
def test_each_block_is_of_a_kind_that_a_test_runs(page):
    """Doctests run by themselves; configurations and transcripts belong to what is typed."""
    assert {language for language, *_ in blocks(page)} <= {"pycon", "console", "toml", ""}


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items())
def test_what_is_typed_elsewhere_is(page, test):
    assert page.rpartition("/")[2].removesuffix(".md") in (ROOT / test).read_text()


@pytest.fixture
def folder(tmp_path):
    """Where the commands of a page are typed."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize("page", TYPED, ids=name)
def test_the_commands_of_a_page_run_and_print_what_it_shows(page, folder):
    for language, block, reason in blocks(page):
        if language != "console" or reason:
            continue
        for command, shown in commands(block):
            lines = typed(command, folder).splitlines()
            drawn = command.startswith(("panprivacy run", "cat"))
            wanted, printed = (shapes(side) if drawn else packed(side) for side in (shown, lines))
            assert appear(wanted, printed), (command, printed)


def shapes(lines):
    """What a run prints whatever its coins: numbers differ, and notes come by chance."""
    return [shape(line) for line in lines if not line.startswith("Note on")]


def packed(lines):
    """Lines without the spaces that set them in columns."""
    return [" ".join(line.split()) for line in lines]


def appear(shown, printed):
    """Whether the lines are printed in this order, all of them but where it says `...`."""
    if not shown or "..." in shown:
        rest = iter(printed)
        return all(line in rest for line in shown if line != "...")
    return shown == printed


def test_lines_have_to_be_printed_in_order():
    assert appear(["a", "..."], ["a", "b"])
    assert not appear(["b", "a", "..."], ["a", "b"])
    assert not appear(["a"], ["a", "b"])


@pytest.mark.long
def test_the_intervals_of_the_pages_are_as_wide_as_it_says(folder):
    page = ROOT / "docs/command-line.md"
    (command,) = (
        command
        for _, block, _ in blocks(page)
        for command, _ in commands(block)
        if "--groups" in command
    )
    typed("python examples/make_visits.py", folder)
    lines = typed(command, folder).splitlines()
    said = re.search(
        r"±(\d+) % around ([\d,]+) clients, ±(\d+) % around ([\d,]+)", page.read_text()
    )
    home, help_page, _ = (
        [float(word.replace(",", "")) for word in NUMBER.findall(line)] for line in lines[2:5]
    )
    for (value, low, high), percent, around in (
        (home, said[1], said[2]),
        (help_page, said[3], said[4]),
    ):
        assert value == pytest.approx(float(around.replace(",", "")), rel=0.6)
        # A standard deviation of an answer moves the width of its interval by a tenth.
        assert 100 * (high - low) / 2 / value == pytest.approx(float(percent), rel=0.5)


@pytest.mark.long
def test_heavy_hitters_of_the_page_are_several_times_their_error(folder):
    page = (ROOT / "docs/command-line.md").read_text()
    typed_so = re.search(r"cents --epsilon (\d+) .*\n\s+--stat (heavy-hitters\S+)", page)
    search = Alternatives(Specification.from_text(typed_so[2]).sizes, 1, 0)
    plan, looser = search.plan(Fraction(typed_so[1]), None), search.plan(Fraction(2), None)
    typed("python examples/make_visits.py", folder)
    orders = pq.read_table(folder / "orders.parquet")["cents"].to_numpy()  # one a customer
    truth = plan.truth(plan.name, orders, orders)
    assert orders.sum() == pytest.approx(plan.total, rel=1e-3)
    assert truth == (orders >= plan.high).sum() == 8_000
    assert 2.5 * plan.absolute_margin(0.95) < truth
    for one, said in ((plan, "2,900"), (looser, "3,600")):
        assert f"{round(one.absolute_margin(0.95), -2):,.0f}" == said
        assert said in page


# Links


@EACH
def test_links_and_named_files_exist(page):
    text = page.read_text()
    targets = re.findall(r"\]\(([^)#:]+)\)", text)
    missing = [target for target in targets if not (page.parent / target).exists()]
    named = re.findall(r"`((?:tests|docs|benchmarks|examples)/[\w/.]+)`", text)
    missing += [name for name in named if not (ROOT / name).exists()]
    assert missing == []


def headings(page):
    """The names by which links lead to the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@EACH
def test_links_to_headings_lead_there(page):
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text())
    lost = [
        f"{target}#{heading}"
        for target, heading in links
        if heading not in headings(page.parent / target if target else page)
    ]
    assert lost == []


# Nothing is left out


def test_every_command_is_documented():
    page = (ROOT / "docs/commands.md").read_text()
    documented = set(re.findall(r"^## `panprivacy ([\w-]+)`$", page, re.MULTILINE))
    assert documented == set(_COMMANDS)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_documented(module):
    pages = "".join(page.read_text() for page in (ROOT / "docs/reference").glob("*.md"))
    documented = set(re.findall(rf"^::: {module}\.(\w+)$", pages, re.MULTILINE))
    assert documented == set(import_module(module).__all__)
