"""The site has all pages; where MkDocs is installed, it is built, and fetches nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT

CONFIGURATION = (ROOT / "mkdocs.yml").read_text()


def test_every_page_is_in_the_navigation():
    pages = {str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/**/*.md")}
    shown = set(re.findall(r"([\w/-]+\.md)$", CONFIGURATION.partition("\nnav:\n")[2], re.MULTILINE))
    assert pages - shown == set(), "add them to nav in mkdocs.yml"
    assert shown - pages == {"index.md"}, "nav in mkdocs.yml names pages that are gone"


@pytest.mark.slow
def test_it_is_built_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    first = (tmp_path / "index.html").read_text()
    assert "seized.png" in first
    assert 'href="guarantees/' in first
    assert "--ignore-others" in (tmp_path / "commands.html").read_text()
    assert "Guarantee:" in (tmp_path / "reference/index.html").read_text()
