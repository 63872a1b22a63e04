"""The page on devices: its example runs, its numbers are those of the scripts."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from benchmarks import device_noise
from reproductions import FOLDER, devices, devices_seen

from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.testing import SeededCoins
from tests.clients.browsers import driver
from tests.clients.javascript import built
from tests.commands import run_command
from tests.docs.pins import ROOT
from tests.docs.test_service import Shell

PAGE = (ROOT / "docs/devices.md").read_text()
SCRIPTS = (FOLDER / "README.md").read_text()
EXAMPLE = ROOT / "examples/three_devices.py"
LINE = re.compile(r"(exactly 0|exactly 1|at least 2): (-?\d+) \(\d to \d, 95 %; more noise .*\)")
ROWS = list(csv.DictReader((FOLDER / "devices.csv").read_text().splitlines()))


@pytest.mark.long
def test_three_processes_make_a_histogram():
    """At epsilon 30 a bit of 0 is never reported as 1: only the three that are 1 are noised."""
    assert len(EXAMPLE.read_text().splitlines()) < 40
    run = subprocess.run(
        [sys.executable, EXAMPLE, "30"], capture_output=True, text=True, check=True, timeout=300
    )
    found = [LINE.fullmatch(line) for line in run.stdout.splitlines()]
    assert [one[1] for one in found] == ["exactly 0", "exactly 1", "at least 2"]
    assert {one[2] for one in found} <= {"0", "2"}
    shown = PAGE.partition("three_devices.py 4\n")[2].partition("```")[0].splitlines()
    assert all(LINE.fullmatch(line) for line in shown)


@pytest.mark.long
def test_three_browsers_are_counted(tmp_path):
    """At epsilon 6 one of three reports is false once in 135 runs: then the count is another."""
    built()
    with driver():
        run = subprocess.run(
            [sys.executable, ROOT / "examples/browser/demo.py"],
            cwd=ROOT, capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
    said = run.stdout.splitlines()
    shown = PAGE.partition("make browser-demo\n")[2].partition("```")[0].splitlines()
    assert [DEMO.sub("", line) for line in said] == [DEMO.sub("", line) for line in shown]


DEMO = re.compile(r"-?\d\.\d \(\d to \d")


@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_a_report_goes_over_http_as_the_page_says(tmp_path):
    section = PAGE.partition("## Over HTTP")[2].partition("\n## ")[0]
    make, collect, live, send, release = re.findall(r"^\$ (.*)$", section, re.MULTILINE)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shell = Shell(tmp_path, "8646")
    printed = shell.run(make)
    shell.environment["SIGNER"] = re.search(r"^    ([0-9a-f]{64})$", printed, re.MULTILINE)[1]
    for role in ("ingest", "release"):
        shell.environment[role.upper()] = re.search(rf"{role} +(pp_\S+)", printed)[1]
    process = shell.start(f"{collect} --listen 127.0.0.1:8646")
    try:
        shell.run(live)
        assert [shell.run(send) for _ in range(2)] == ["201\n", "200\n"]
        first, again = (shell.run(release) for _ in range(2))
    finally:
        process.kill()
        process.communicate()
    assert first == again
    shown = section.partition("v1/release\n")[2].partition("{...}")[0]
    assert first.startswith(shown)
    assert json.loads(first)["answers"][0]["statistic"] == "count-nonzero"
    assert (tmp_path / "visits.json.mark").exists()


@pytest.mark.long
def test_the_table_of_noise_is_the_one_that_is_planned():
    table = list(device_noise.lines(device_noise.DEVICES))
    assert "\n".join(table) in (ROOT / "docs/guarantees/devices.md").read_text()
    with_found = "\n".join(device_noise.found_lines(device_noise.DEVICES))
    assert with_found in (ROOT / "docs/guarantees/two-servers.md").read_text()


def test_the_command_of_the_page_prints_what_the_page_shows():
    block = PAGE.partition("$ panprivacy federated simulate ")[2].partition("```")[0].splitlines()
    smaller = {"--devices": "100", "--ticks": "2"}
    given = block[0].split()
    words = [smaller.get(before, word) for before, word in pairwise(["", *given])]
    assert "100" in words
    assert "--encrypted" not in words
    words += ["--encrypted", "2"]
    found = run_command("federated", "simulate", *words)
    assert found.code == 0, found.stderr
    bare = [re.sub(r"[-\d,. ]+", " ", line) for line in found.stdout.splitlines()]
    assert bare == [re.sub(r"[-\d,. ]+", " ", line) for line in block[1:]]


def test_the_intruder_sees_as_much_of_either_device_and_nothing_twice():
    key, coins = DecryptionKey.generate(SeededCoins(1)), SeededCoins(2)
    without, with_event = (
        devices_seen.looks(event, key, coins) for event in (None, devices_seen.EVENT)
    )
    lengths = {len(state) for state in without + with_event}
    assert lengths == {128}
    assert "128 bytes" in PAGE
    assert len(without) == len(with_event) == devices_seen.TICKS + 1
    rows = [devices_seen.ciphertexts(states) for states in (without, with_event)]
    assert {*np.unique(np.vstack(rows)[:, [0, 33]])} == {2, 3}
    assert len({row.tobytes() for both in rows for row in both}) == 2 * len(without)
    opened = [key.bits(one.tobytes()).tolist() for one in rows]
    assert opened == [[0] * 17, [0] * 6 + [1] * 11]


def test_the_lines_of_the_picture_are_those_of_the_table():
    said = {1: "30 devices after one tick", 64: "242 after 64", 1024: "971 after 1,024"}
    for row in ROWS:
        ticks = int(row["ticks"])
        again = {name: float(value) for name, value in row.items()}
        least = devices.error_bound(devices.DEVICES, ticks, devices.EPSILON)
        assert again["least"] == pytest.approx(least, rel=1e-5)
        exact = float(devices.total_variation(ticks, devices.FLIP))
        assert again["total_variation"] == pytest.approx(exact, rel=1e-5)
        if ticks in said:
            assert f"{least:,.0f}" in said[ticks]
            assert said[ticks] in SCRIPTS
    assert "0.21 for 0.105 at 16 ticks" in SCRIPTS


def test_what_is_measured_is_on_the_lines():
    """Coins repeat; 400 runs stray by 3.5 % of a deviation."""
    for row in ROWS:
        assert float(row["ciphertexts"]) == pytest.approx(float(row["local_model"]), rel=0.15)
        assert float(row["every_tick"]) == pytest.approx(
            float(row["every_tick_predicted"]), rel=0.15
        )
