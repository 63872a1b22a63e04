"""Three browsers, of which two use a feature, and a collector that counts them without knowing who.

make browser-demo

It serves examples/browser, opens it in three headless browsers, and prints the released count. The
picture has what an intruder finds in each browser after each tick.
"""

from __future__ import annotations

import functools
import http.server
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from matplotlib.figure import Figure
from playwright.sync_api import Page, sync_playwright

from panprivacy.devices.federated.messages import DeviceState

HERE, CLIENT = Path(__file__).parent, Path("clients/js")
FILE = Path("build/browser-demo.png")
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = (
    "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking"
)
TICKS, EVERY = 6, 1.5
USES = {"phone": (1, 3), "tablet": (4,), "laptop": ()}
"""The ticks in which each browser uses the feature."""
PATIENCE = 60.0


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that logs nothing."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The URL of a folder, while it is served."""
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def make_task(folder: Path) -> dict[str, str]:
    """Write a signed task; return the tokens."""
    words = ["--kind", "count-nonzero", "--epsilon", "6", "--horizon"]
    told = subprocess.run(
        [sys.executable, "-m", "panprivacy", "task", "task.json", *words, str(TICKS), "--signer", "signer"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return dict(re.findall(r"(ingest|release) +(pp_\S+)", told.stdout))


@contextmanager
def collecting(folder: Path, site: str) -> Iterator[str]:
    """The URL of a collector that takes reports from the pages of a site."""
    words = ["collector", "task.json", "--listen", "127.0.0.1:0", "--origin", site]
    log = folder / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "panprivacy", *words], cwd=folder, stdout=output, stderr=output
        )
    try:
        end = time.monotonic() + PATIENCE
        while not (found := re.search(r"http://\S+:\d+", log.read_text())):
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(log.read_text())
            time.sleep(0.05)
        yield found[0]
    finally:
        process.terminate()
        process.wait()


def settings(folder: Path, url: str, token: str) -> str:
    """What the page is told: the task, whom it trusts, where reports go, and the clock."""
    secret = bytes.fromhex((folder / "signer").read_text())
    signer = Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
    clock = {"start": 1_000 * (time.time() + EVERY), "every": 1_000 * EVERY}
    task = (folder / "task.json").read_text()
    return json.dumps({"task": task, "signer": signer.hex(), "url": url, "token": token, **clock})


def live(pages: dict[str, Page], start: float) -> None:
    """Click in the middle of the ticks in which a browser uses the feature."""
    for tick in range(TICKS):
        time.sleep(max(0.0, start + (tick + 0.5) * EVERY - time.time()))
        for name, page in pages.items():
            if tick in USES[name]:
                page.click("#feature")
    for page in pages.values():
        page.wait_for_function("window.sent", timeout=1_000 * PATIENCE)


def run() -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Return what was found in each browser after each tick, and the release."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        site = folder / "site"
        site.mkdir()
        (site / "index.html").write_bytes((HERE / "index.html").read_bytes())
        bundle = ["dist/index.js", "--bundle", "--minify", "--format=esm", "--log-level=error"]
        esbuild = CLIENT.absolute() / "node_modules/.bin/esbuild"
        subprocess.run(
            [esbuild, *bundle, f"--outfile={site / 'client.js'}"], cwd=CLIENT, check=True
        )
        tokens, origin = make_task(folder), stack.enter_context(served(site))
        url = stack.enter_context(collecting(folder, origin))
        driver = stack.enter_context(sync_playwright())
        browsers = {
            name: driver.chromium.launch_persistent_context(
                folder / name, executable_path=CHROMIUM, args=ARGUMENTS.split()
            )
            for name in USES
        }
        for browser in browsers.values():
            stack.callback(browser.close)
        (site / "settings.json").write_text(settings(folder, url, tokens["ingest"]))
        start = json.loads((site / "settings.json").read_text())["start"] / 1_000
        pages = {name: browser.new_page() for name, browser in browsers.items()}
        for page in pages.values():
            page.goto(origin)
        live(pages, start)
        looks = {name: page.evaluate("window.looks") for name, page in pages.items()}
        headers = {"Authorization": f"Bearer {tokens['release']}"}
        answer = httpx.post(f"{url}/v1/release", headers=headers, trust_env=False)
        return looks, answer.raise_for_status().json()


def draw(looks: dict[str, list[str]]) -> None:
    """A row for each tick, a square for each byte of the ciphertext."""
    figure = Figure(figsize=(9.6, 5.4), layout="constrained", dpi=90)
    for picture, (name, states) in zip(figure.subplots(len(looks), 1), looks.items(), strict=True):
        read = [DeviceState.read(bytes.fromhex(state)) for state in states]
        rows = np.array([list(one.row) for one in read if not one.done], np.uint8)
        picture.imshow(rows, cmap="gray", aspect="auto", interpolation="nearest", vmin=0, vmax=255)
        used = ", ".join(str(tick + 1) for tick in USES[name]) or "none"
        picture.set(title=f"{name}: uses the feature in ticks: {used}", ylabel="after tick")
    picture.set_xlabel("byte of the ciphertext, in the browser's IndexedDB")
    FILE.parent.mkdir(exist_ok=True)
    figure.savefig(FILE)


def main() -> None:
    """Run, print and draw."""
    looks, released = run()
    (answer,) = released["answers"]
    used = sum(map(bool, USES.values()))
    print(f"Reports: {released['reports']}. {released['guarantee']}.")
    print(
        f"Browsers that used the feature: {answer['estimate']:.1f} "
        f"({answer['low']:g} to {answer['high']:g}, {100 * answer['confidence']:g} %); in truth {used}."
    )
    draw(looks)
    states = sorted({len(state) // 2 for found in looks.values() for state in found})
    print(f"Each browser kept {states[0]} bytes, others after each tick: {FILE} has them.")


if __name__ == "__main__":
    main()
