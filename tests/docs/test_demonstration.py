"""The demonstration prints what its page shows, and is near the truth."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import run_command
from tests.docs.pages import shape

ROOT = Path(__file__).parents[2]
SHOWN = (
    (ROOT / "docs/demonstration.md").read_text().partition("$ make run\n")[2].partition("```")[0]
)


def recipes(target):
    """The commands of `panprivacy` and Python in a Makefile target, each a list of arguments."""
    lines = re.search(
        rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    commands = [shlex.split(line) for line in lines[1].replace("\\\n", " ").splitlines()]
    return [command for command in commands if command[0].startswith("$(BIN)/")]


def shapes(lines):
    """The shapes of all lines but those that are on other answers each time."""
    return [shape(line) for line in lines if not line.startswith(("Note on", "Uncut"))]


def noted(lines):
    """The answers that notes are on."""
    notes = (line for line in lines if line.startswith("Note on"))
    return [name for line in notes for name in re.findall(r"exactly \d+|distinct", line)]


def noise(lines):
    """The answers whose interval reaches down to 0, or is wider than the answer."""
    rows = (re.match(r"(exactly \d+|distinct) +(\S+) +(\S+) to (\S+)", line) for line in lines)
    told = [(row[1], *(int(row[k].replace(",", "")) for k in (2, 3, 4))) for row in rows if row]
    return [name for name, value, low, high in told if not low or high - low > value]


@pytest.fixture(scope="module")
def make_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    printed = []
    *counts, picture = recipes("run")
    for command in counts:
        *arguments, into, text = command[1:]
        assert into == ">"
        result = run_command(*arguments, cwd=ROOT)
        assert result.code == 0, result.stderr
        (folder / Path(text).name).write_text(result.stdout)
        printed += result.stdout.splitlines()
    names = re.findall(r"[\w-]+\.\w+", " ".join(picture[2:]))
    words = [sys.executable, picture[1], *(folder / name for name in names)]
    drawn = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    printed += drawn.stdout.replace(str(folder), "build").splitlines()
    return printed, folder


@pytest.mark.long
def test_the_transcript_is_what_make_run_prints(make_run):
    printed, _ = make_run
    shown = SHOWN.splitlines()
    assert shapes(printed) == shapes(shown)
    assert sorted(noted(printed)) == sorted(noise(printed))
    assert sorted(noted(shown)) == sorted(noise(shown))


def test_what_does_not_depend_on_coins_is_the_same_to_the_digit(make_run):
    printed, _ = make_run
    shown = SHOWN.splitlines()
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
    for lines in (make_run[0], SHOWN.splitlines()):
        answer, low, _, high, truth = (
            word if word == "to" else float(word.replace(",", "")) for word in lines[1].split()[1:]
        )
        assert low < answer < high
        assert abs(answer - truth) < 0.07 * truth  # five standard deviations


def test_make_run_draws_a_picture(make_run):
    printed, folder = make_run
    assert (folder / "flights.png").read_bytes().startswith(b"\x89PNG")
    assert printed[-1] == "See all answers in build/flights.png."


def test_it_says_how_many_of_its_intervals_miss(make_run):
    printed, _ = make_run
    rows = [re.findall(r"[\d,]+", line)[-4:] for line in printed if truths([line])]
    numbers = [[int(cell.replace(",", "")) for cell in row] for row in rows]
    missed = sum(not low <= truth <= high for _, low, high, truth in numbers)
    assert len(rows) == 12
    assert printed[-2].endswith(f"In this run {missed} of 12 do.")
    assert round(1 - 0.95**12, 1) == 0.5  # about every second run
