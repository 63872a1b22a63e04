"""The page on two servers: its commands run, and its demonstration shows what it says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest

from tests.docs.pins import ROOT
from tests.docs.test_service import Shell

PAGE = (ROOT / "docs/two-servers.md").read_text()
LINE = re.compile(r"(0 events|1 event|2 or more): -?\d+\.\d \(\d+ to \d+, 95 %\); of the .* \d")


@pytest.mark.slow
def test_the_demonstration_refuses_the_lie_and_draws_who_sees_what(tmp_path):
    shown = PAGE.partition("make federated-demo\n")[2].partition("```")[0].splitlines()
    run = subprocess.run(
        [sys.executable, ROOT / "examples/two_servers.py"],
        capture_output=True, text=True, check=True, timeout=300, cwd=tmp_path,
    )  # fmt: skip
    for lines in (shown, run.stdout.splitlines()):
        assert [LINE.fullmatch(line)[1] for line in lines[:3]] == [
            "0 events",
            "1 event",
            "2 or more",
        ]
        assert lines[3] == "Report 10 said 1,000,000. The servers refused [10]."
        assert lines[4].startswith("build/two-servers.png shows who sees what.")
    assert (tmp_path / "build/two-servers.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_a_report_goes_to_two_servers_as_the_page_says(tmp_path):
    section = PAGE.partition("## Over HTTP")[2].partition("\n### ")[0]
    make, help_it, lead, live, send, release = re.findall(r"^\$ (.*)$", section, re.MULTILINE)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    helper, leader = Shell(tmp_path, "8645"), Shell(tmp_path, "8644")
    printed = leader.run(make)
    leader.environment["SIGNER"] = re.search(r"^    ([0-9a-f]{64})$", printed, re.MULTILINE)[1]
    leader.environment["REPORTS"] = re.search(r"/tasks/\S+/reports", printed)[0]
    for role in ("ingest", "release"):
        leader.environment[role.upper()] = re.search(rf"{role} +(pp_\S+)", printed)[1]
    processes = [helper.start(f"{help_it} --listen 127.0.0.1:8645")]
    try:
        lead = lead.replace("8645", helper.port)
        processes.append(leader.start(f"{lead} --listen 127.0.0.1:8644"))
        leader.run(live)
        assert [leader.run(send) for _ in range(2)] == ["200, 0 bytes\n"] * 2
        first, again = (leader.run(release) for _ in range(2))
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert json.loads(first)["reports"] == 1
    assert first == again
    assert first.startswith(release_shown(section))


def release_shown(section):
    """The part of the answer that the page writes out."""
    return re.search(r"^(\{.*\[)\{\.\.\.\}\]\}$", section, re.MULTILINE)[1]
