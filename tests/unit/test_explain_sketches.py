"""What is said of a published table."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

import panprivacy as pp
from panprivacy.statistics.explain.sketches import explain_sketch, sketch_document
from tests.commands import run_command


def make(**sizes):
    window = pp.OverlapSketch(**{"epsilon": 2, "expected": 5_000, "key": b"k" * 16, **sizes})
    return window.release().sketch


def test_it_says_design_window_guarantee_and_what_an_outsider_can_do():
    start, end = datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC)
    sketch = make().named(stream="site", group="home", start=start, end=end)
    told = dict(explain_sketch(sketch))
    assert told["sketch"].startswith("overlap, site, group home: 15,000 noisy bits, hashed")
    assert told["window"] == "2026-03-02 00:00:00 to 2026-03-03 00:00:00 UTC"
    assert told["guarantee"] == str(sketch.guarantee)
    assert sketch.guarantee.unseen_loss.says_of_odds() in told["outsider"]


def test_an_outsider_without_a_look_learns_less():
    look, alone = (sketch_document(make(covers=one)) for one in ("seizure", "publication"))
    assert look["outsider"]["epsilon"] < look["guarantee"]["epsilon"] == 2
    assert alone["outsider"]["epsilon"] == 2
    assert look["outsider"]["high"] < alone["outsider"]["high"] < 0.9


def test_the_design_is_in_the_document():
    told = sketch_document(make(expected=None, universe=100))["sketch"]
    assert (told["universe"], told["cells"], told["levels"], told["key"]) == (100, 100, 1, "")


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_the_command_takes_a_sketch(more, tmp_path):
    make().write(tmp_path / "x.sketch")
    result = run_command("explain", tmp_path / "x.sketch", *more)
    assert (result.code, result.stderr) == (0, "")
    assert json.loads(result.stdout)["sketch"] if more else "poisoning" in result.stdout


def test_a_damaged_sketch_is_refused(tmp_path):
    (tmp_path / "x.sketch").write_bytes(make().to_bytes()[:-1])
    result = run_command("explain", tmp_path / "x.sketch")
    assert (result.code, result.stdout) == (2, "")
    assert "the sketch is damaged" in result.stderr
