"""The README runs: its transcript is what the program prints, its links lead somewhere."""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from unittest import mock

import pytest

from tests.commands import run_command

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
NUMBER = re.compile(r"[\d,.]*\d")


def transcript(command):
    """The lines that the README shows after `$ command`."""
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    block = next(
        block for block in blocks if block.startswith(f"$ {command}\n") and "statistic" in block
    )
    return block.splitlines()[1:]


def recipes(target):
    """The commands of a Makefile target, each a list of arguments."""
    lines = re.search(
        rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    commands = lines[1].replace("\\\n", " ").replace("$(BIN)/", "").splitlines()
    return [shlex.split(command) for command in commands]


def shown(title):
    """The commands of a section, each with what it is said to print."""
    section = README.partition(f"## {title}\n")[2].partition("\n## ")[0]
    blocks = "".join(re.findall(r"```console\n(.*?)```", section, re.DOTALL))
    parts = blocks.replace("\\\n", " ").removeprefix("$ ").split("\n$ ")
    return [part.partition("\n")[::2] for part in parts]


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """The folder where the commands of the README are typed."""
    folder = tmp_path_factory.mktemp("visits")
    make = [sys.executable, ROOT / "examples/make_visits.py"]
    subprocess.run(make, cwd=folder, check=True)
    return folder


def typed(command, folder):
    """What a command of the README prints; what feeds its pipe for ever is ended."""
    *feeding, command = (shlex.split(part, comments=True) for part in command.split(" | "))
    assert command[0] == "panprivacy"
    with contextlib.ExitStack() as last:
        for words in feeding:
            feed = last.enter_context(subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE))
            if words[0] != "cat":  # which ends by itself
                timer = threading.Timer(3, feed.terminate)
                last.callback(timer.cancel)
                timer.start()
            last.enter_context(mock.patch.object(sys, "stdin", feed.stdout))
        result = run_command(*command[1:], cwd=folder)
    assert result.code == 0, result.stderr
    return result.stdout


def test_the_commands_run_on_the_files_that_are_made(visits):
    activate, make, *commands = (command for command, _ in shown("From the command line"))
    assert activate == ". .venv/bin/activate"
    assert make.startswith("python examples/make_visits.py ")
    assert len(commands) == 13
    for command in commands[:-1]:
        assert typed(command, visits)


def test_the_intervals_of_the_pages_are_as_wide_as_it_says(visits):
    command, printed = shown("From the command line")[-1]
    lines = typed(command, visits).splitlines()
    assert [shape(line) for line in printed.splitlines()[1:-1]] == [
        shape(line) for line in lines[1:5]
    ]
    said = re.search(r"±(\d+) % around ([\d,]+) clients, ±(\d+) % around ([\d,]+)", README)
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


def shape(line):
    """A line with its numbers and its spacing taken out."""
    return " ".join(NUMBER.sub("#", line).split())


def shapes(lines):
    """The shapes of all lines but notes, which are on other answers each time."""
    return [shape(line) for line in lines if not line.startswith("Note on")]


def noted(lines):
    """The answers that notes are on."""
    notes = (line for line in lines if line.startswith("Note on"))
    return [name for line in notes for name in re.findall(r"exactly \d+|distinct", line)]


def noise(lines):
    """The answers whose interval reaches down to 0."""
    rows = (re.match(r"(exactly \d+|distinct) +\S+ +0 to ", line) for line in lines)
    return [row[1] for row in rows if row]


@pytest.fixture(scope="module")
def make_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    printed = []
    for command in recipes("run"):
        arguments = [word.replace("build/", f"{folder}/") for word in command[1:]]
        result = run_command(*arguments, cwd=ROOT)
        assert result.code == 0, result.stderr
        printed += result.stdout.splitlines()
    return printed, folder


def test_the_transcript_is_what_make_run_prints(make_run):
    printed, _ = make_run
    shown = transcript("make run")
    assert shapes(printed) == shapes(shown)
    assert noted(printed) == noise(printed)
    assert noted(shown) == noise(shown)


def test_what_does_not_depend_on_coins_is_the_same_to_the_digit(make_run):
    printed, _ = make_run
    shown = transcript("make run")
    assert promises(printed) == promises(shown)
    assert truths(printed) == truths(shown)
    assert truths(shown)[:5] == ["251,561", "186,542", "50,271", "11,904", "2,754"]
    assert truths(shown)[-1] == "78,028"


def promises(lines):
    """The guarantees and the sizes of the states."""
    return [line for line in lines if line.startswith(("Guarantee", "State"))]


def truths(lines):
    """The last column of every answer."""
    return [line.split()[-1] for line in lines if line.startswith(("distinct", "exactly"))]


def test_the_answers_are_near_the_truth(make_run):
    for lines in (make_run[0], transcript("make run")):
        answer, low, _, high, truth = (
            word if word == "to" else float(word.replace(",", "")) for word in lines[1].split()[1:]
        )
        assert low < answer < high
        assert abs(answer - truth) < 0.07 * truth  # five standard deviations


def test_make_run_draws_a_picture(make_run):
    _, folder = make_run
    pictures = ("flights", "legs", "late", "flights-late")
    for name in pictures:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))], ids=str)
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


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))], ids=str)
def test_links_to_headings_lead_there(page):
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text())
    lost = [
        f"{target}#{heading}"
        for target, heading in links
        if heading not in headings(page.parent / target if target else page)
    ]
    assert lost == []
