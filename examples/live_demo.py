"""A service, a made-up web site that sends it visits, and the dashboard: `make demo`.

    python examples/live_demo.py

A day of the site takes ten seconds. Nobody is in its visits. Ctrl-C ends all, and removes all.
"""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from panprivacy.service.config.tokens import hash_of, new_token

PROGRAM = str(Path(sys.executable).with_name("panprivacy"))
DAY = 10.0
PAGES = ("home", "help", "shop", "blog", "jobs")
ROLES = "ingest", "read", "announce"
STREAMS = """
[streams.visitors]
epsilon = 1
window = "10s"
intrusions = 1
[[streams.visitors.stat]]
name = "distinct"
expected = "100:1e5"
as = "visitors"

[streams.activity]
epsilon = 2
window = "10s"
[[streams.activity.stat]]
name = "incidence"
bound = 8
expected = 20_000
exactly = "1:8"
as = "visits"

[streams.pages]
epsilon = 2
window = "10s"
by = "page"
groups = ["home", "help", "shop", "blog", "jobs"]
per_user = 2
ignore_others = true
[[streams.pages.stat]]
name = "distinct"
expected = "100:1e5"
as = "readers"

[streams.requests]
epsilon = 1
window = "1s"
[[streams.requests.stat]]
name = "running-count"
horizon = 1_000_000
as = "requests"
"""


def main() -> None:
    """Start everything, print one address, and end everything."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="panprivacy-demo-"))
    tokens = {role: new_token() for role in ROLES}
    service, dashboard = (f"127.0.0.1:{free_port()}" for _ in range(2))
    config = folder / "panprivacy.toml"
    config.write_text(f'[server]\nlisten = "{service}"\n{tables(tokens)}{STREAMS}')
    log = (folder / "log").open("w")
    # in sessions of their own, so that Ctrl-C ends this program first, and it ends them in turn
    start = partial(subprocess.Popen, stderr=log, start_new_session=True)
    running = [start([PROGRAM, "serve", config])]
    try:
        wait_for(f"http://{service}/healthz", running, log)
        words = "dashboard", config, "--listen", dashboard
        running.append(start([PROGRAM, *words]))
        wait_for(f"http://{dashboard}/", running, log)
        print(f"The dashboard, with what may be read: http://{dashboard}/#{tokens['read']}")
        print(f"A token that may announce a look, to try it: {tokens['announce']}")
        print("Ctrl-C ends all.", flush=True)
        site(lambda stream, body: send(f"http://{service}", stream, body, tokens["ingest"]))
    except KeyboardInterrupt:
        print()
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(30)
        log.close()
        shutil.rmtree(folder)


def site(send_to: Callable[[str, bytes], None]) -> None:
    """Visitors come as Zipf has it, more of them at noon than at night, for ever."""
    coins = np.random.default_rng()
    while True:
        hour = time.time() % DAY / DAY
        requests = coins.poisson(500 * (1.2 - np.cos(2 * np.pi * hour)))
        users = coins.zipf(1.25, requests) % 20_000
        pages = coins.zipf(1.7, requests)
        rows = [
            {"user": f"visitor-{user}", "page": PAGES[min(user, page) % len(PAGES)]}
            for user, page in zip(users.tolist(), pages.tolist(), strict=True)
        ]
        body = "".join(json.dumps(row) + "\n" for row in rows).encode()
        for stream in ("visitors", "activity", "pages", "requests"):
            send_to(stream, body)
        time.sleep(0.25)


def send(service: str, stream: str, body: bytes, token: str) -> None:
    """Send rows; the site goes on without those that are refused, as at the end of a window."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"}
    url = f"{service}/v1/streams/{stream}/updates"
    try:
        urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30).close()
    except urllib.error.HTTPError as error:
        error.close()


def tables(tokens: dict[str, str]) -> str:
    """Those of the tokens."""
    return "\n".join(
        f'[[tokens]]\nname = "{role}"\nmay = ["{role}"]\nsha256 = "{hash_of(token)}"'
        for role, token in tokens.items()
    )


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, running: list[subprocess.Popen[bytes]], log: object) -> None:
    """Wait until something answers, or say why it does not."""
    while True:
        if any(process.poll() is not None for process in running):
            sys.exit(Path(log.name).read_text())
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except urllib.error.HTTPError as error:
            error.close()
            return
        except OSError:
            time.sleep(0.1)
        else:
            return


if __name__ == "__main__":
    main()
