"""Chromium with a profile of its own, a page with the client, and what it is asked."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clients.javascript import built
from tests.service.browsing import CHROMIUM

_ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-port=0",
    "about:blank",
]
_PATIENCE = 120
_PAGE = """<!doctype html><title>A device</title><link rel="icon" href="data:,">
<script type="module">
import * as client from '/client.js';
const bytes = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const text = (data) => Array.from(data, (byte) => byte.toString(16).padStart(2, '0')).join('');
window.begin = async ({ task, signer }) => {
  window.task = client.Task.read(bytes(task), bytes(signer));
  window.storage = await client.IndexedDBStorage.open('device');
  window.device = await client.Device.open(window.task, window.storage);
  return window.device.tick;
};
window.tick = async (event) => {
  await window.device.observe(event);
  return window.device.tick;
};
window.report = async () => text(await window.device.report());
window.send = async (url, token) =>
  client.send(await window.device.report(), window.task, { url, token });
const settled = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});
window.dump = async () => {
  const found = [];
  for (const { name, version } of await indexedDB.databases()) {
    const database = await settled(indexedDB.open(name, version));
    for (const store of database.objectStoreNames) {
      const all = database.transaction(store).objectStore(store);
      const [keys, values] = [await settled(all.getAllKeys()), await settled(all.getAll())];
      found.push({ name, version, store, keys, values: values.map(text) });
    }
    database.close();
  }
  return found;
};
window.ready = true;
</script>"""


def bundle(folder):
    """Write the page and the client, as one file, into a folder."""
    esbuild = str(built() / "node_modules" / ".bin" / "esbuild")
    words = [esbuild, "dist/index.js", "--bundle", "--minify", "--format=esm", "--log-level=error"]
    subprocess.run(
        [*words, f"--outfile={folder / 'client.js'}"], cwd=built(), check=True, timeout=60
    )
    (folder / "index.html").write_text(_PAGE)


class Browser:
    """Chromium with a profile that outlives it; as a context manager, it is killed in the end."""

    def __init__(self, driver, profile, url):
        self._driver, self._profile, self._url = driver, Path(profile), url

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(self, *_):
        self.kill()

    def start(self):
        """Start it, and open the page."""
        port = self._profile / "DevToolsActivePort"
        port.unlink(missing_ok=True)
        words = [CHROMIUM, f"--user-data-dir={self._profile}", *_ARGUMENTS]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(words, start_new_session=True, **silent)
        end = time.monotonic() + _PATIENCE
        while not (port.exists() and port.read_text().count("\n")):
            assert self._process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        at = f"http://127.0.0.1:{port.read_text().splitlines()[0]}"
        self._browser = self._driver.chromium.connect_over_cdp(at, timeout=1_000 * _PATIENCE)
        self.page = self._browser.contexts[0].new_page()
        self.told = []
        self.page.on("console", lambda message: self.told.append(message.text))
        self.page.goto(self._url)
        self.page.wait_for_function("window.ready")
        return self

    def ask(self, words, given=None):
        """What a function of the page resolves to."""
        return self.page.evaluate(words, given)

    def kill(self):
        """Kill all of its processes."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_PATIENCE)


@contextmanager
def driver():
    """What drives browsers."""
    if not Path(CHROMIUM).exists():
        pytest.skip("there is no Chromium: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as found:
        yield found
