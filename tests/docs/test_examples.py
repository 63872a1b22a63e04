"""Every example is short, on the page of examples, and runs."""

from __future__ import annotations

import json
import re
import runpy
import sys

import pytest

from tests.docs.pins import ROOT

EXAMPLES = ROOT / "examples"
DEMONSTRATIONS = {"two_servers.py", "live_demo.py", "flights_picture.py"}
"""They start servers and draw pictures, and `make` runs them."""
PROGRAMS = [
    path
    for path in EXAMPLES.glob("*.py")
    if not path.name.startswith("make_") and path.name not in DEMONSTRATIONS
]


@pytest.fixture
def ran(capsys, monkeypatch):
    """What an example prints."""

    def run(name, *words):
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return run


def test_each_is_short_and_on_the_page():
    page = (EXAMPLES / "README.md").read_text()
    for path in PROGRAMS:
        assert sum(bool(line.strip()) for line in path.read_text().splitlines()) < 40, path.name
    shown = [path for path in PROGRAMS if path.name != "one_device.py"]  # of another page
    assert [path.name for path in shown if f"`{path.name}`" not in page] == []


@pytest.mark.long
def test_the_clients_of_a_log_are_counted(ran, tmp_path):
    (said,) = ran("make_visits.py", tmp_path)
    assert said.endswith(f" and {tmp_path / 'access.log'}: nobody is in them.")
    told = [re.fullmatch(r"(\S+) [\d,]+ \(([\d,]+) to ([\d,]+), .*\)", line)
            for line in ran("web_log.py", tmp_path / "access.log")]  # fmt: skip
    assert [one[1] for one in told] == ["/", "/help", "/shop"]
    low, high = (int(told[0][end].replace(",", "")) for end in (2, 3))
    assert 15_000 < low < high < 35_000


@pytest.mark.long
def test_a_law_of_ones_own_loses_what_it_says(ran):
    first, _, audited, counted = ran("custom_law.py")
    assert first.startswith("custom: loss 0.6931")
    assert "0.6931 is lost" in audited
    assert counted.endswith("in truth 99,998")


def test_a_statistic_of_ones_own_answers(ran):
    (line,) = ran("own_statistic.py")
    assert 0.6 < float(line.split()[0]) < 0.8


def test_the_notebook_runs(monkeypatch, capsys):
    monkeypatch.chdir(EXAMPLES)
    cells = json.loads((EXAMPLES / "notebook.ipynb").read_text())["cells"]
    names = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert "releases have been made" in capsys.readouterr().out
    assert names["count"].releases == 1
