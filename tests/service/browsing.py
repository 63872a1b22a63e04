"""Chromium without a window, a dashboard in a process of its own, and what both are asked."""

from __future__ import annotations

import re
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.service.running import PLAIN

CHROMIUM = "/usr/bin/chromium"
_ARGUMENTS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--host-resolver-rules=MAP~*~~NOTFOUND,EXCLUDE~127.0.0.1"
)
_WHERE = re.compile(r"the dashboard is at (\S+)")


@contextmanager
def chromium():
    """A browser that finds no name: what is not at 127.0.0.1 fails."""
    if not Path(CHROMIUM).exists():
        pytest.skip("there is no Chromium: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    pytest.importorskip("nicegui")
    words = [one.replace("MAP~*~~", "MAP * ~").replace("EXCLUDE~", "EXCLUDE ")
             for one in _ARGUMENTS.split()]  # fmt: skip
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=words)
        yield browser
        browser.close()


@contextmanager
def dashboard(config, *options):
    """Where the dashboard of a configuration is, while it runs."""
    log = Path(config).with_name("dashboard.log")
    with log.open("w") as opened:
        listen = () if "--listen" in options else ("--listen", "127.0.0.1:0")
        words = [*PLAIN, "dashboard", str(config), *listen, *options]
        process = subprocess.Popen(words, stderr=opened)
    try:
        end = time.monotonic() + 180
        while (found := _WHERE.search(log.read_text())) is None:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(log.read_text())
            time.sleep(0.05)
        yield found[1]
    finally:
        process.terminate()
        process.wait(30)
    assert process.returncode in (0, -15), log.read_text()
    assert "complains" not in log.read_text()
