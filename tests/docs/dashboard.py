"""Draws the picture of `docs/dashboard.md`: `python -m tests.docs.dashboard`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from panprivacy.service.config.tokens import hash_of, new_token
from tests.docs.pins import ROOT
from tests.service.browsing import chromium, dashboard
from tests.service.filled import fill

DAYS = 90
STREAMS = """
[streams.visitors]
epsilon = 1
window = "1d"
zone = "Europe/Paris"
intrusions = 1
ids = "integers"
[[streams.visitors.stat]]
name = "distinct"
expected = "100:1e5"
as = "visitors"

[streams.activity]
epsilon = 2
window = "1d"
ids = "integers"
[[streams.activity.stat]]
name = "incidence"
bound = 8
expected = 20_000
exactly = "1:8"
as = "visits"

[streams.pages]
epsilon = 2
window = "1d"
ids = "integers"
by = "page"
groups = ["home", "shop", "help", "blog", "jobs"]
[[streams.pages.stat]]
name = "distinct"
expected = "100:1e5"
as = "readers"
"""


def draw(folder):
    """Screenshots of all pages, at both widths."""
    token = new_token()
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "panprivacy.toml"
        table = f'[[tokens]]\nname = "board"\nmay = ["read"]\nsha256 = "{hash_of(token)}"\n'
        config.write_text(table + STREAMS)
        fill(config, DAYS)
        with dashboard(config) as base, chromium() as browser:
            for width in (1280, 390):
                page = browser.new_page(viewport={"width": width, "height": 900})
                page.goto(f"{base}/#{token}")
                page.locator(".tile").first.wait_for()
                for path in ("", "streams/visitors", "streams/activity", "streams/pages"):
                    page.goto(f"{base}/{path}")
                    page.locator(".seen img, .side .tile").first.wait_for()
                    page.wait_for_timeout(1_000)
                    name = path.rpartition("/")[2] or "overview"
                    page.screenshot(path=folder / f"{name}-{width}.png", full_page=True)


def main():
    """Keep the overview; all of them, in a folder that is named."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(*sys.argv[1:]) if sys.argv[1:] else Path(directory)
        draw(folder)
        picture = (folder / "overview-1280.png").read_bytes()
    (ROOT / "docs/dashboard.png").write_bytes(picture)


if __name__ == "__main__":
    main()
