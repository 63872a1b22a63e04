"""The examples of the page on decoding run, and print what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.running import PLAIN

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/decoding.md").read_text()
EXAMPLES = re.findall(r"```console\n\$ (.*?\n)(statistic .*?)```", PAGE, re.DOTALL)
NUMBER = re.compile(r"[\d,.]*\d")


def shapes(lines):
    """The lines without numbers and spacing, but for notes, which come by chance."""
    kept = (line for line in lines if not line.startswith("Note on"))
    return [" ".join(NUMBER.sub("#", line).split()) for line in kept]


def truths(lines):
    """What coins do not change: the truth of each answer, and the size of the state."""
    return [lines[1].split()[-1], next(line for line in lines if line.startswith("State"))]


@pytest.mark.long
@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_an_example_prints_what_the_page_shows(command, shown):
    script = re.sub(r"^( *)panprivacy", r'\1"$0" -c "$1"', command, flags=re.MULTILINE)
    words = ["bash", "-c", script, sys.executable, PLAIN[-1]]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    printed, lines = run.stdout.splitlines(), shown.splitlines()
    assert shapes(printed) == shapes(lines)
    assert truths(printed) == truths(lines)


def test_sums_and_thresholds_have_an_example():
    names = ["cropped sum 2", "threshold 20", "heavy hitters 10000"]
    assert [shown.splitlines()[1].partition("  ")[0] for _, shown in EXAMPLES] == names
