"""The service and its dashboard below paths of a site, behind a real nginx."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
import numpy as np
import pytest

from panprivacy.service.client import announced
from panprivacy.service.config.tokens import hash_of
from tests.service.browsing import chromium, dashboard
from tests.service.running import TOKENS, Service, wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="apt-get install nginx-light"),
]

EXAMPLE = Path(__file__).parents[2] / "examples/service/subpath.conf"
STREAM = """
[streams.visits]
epsilon = 1
window = "1d"
releases = 3
intrusions = 1
ids = "integers"
[[streams.visits.stat]]
name = "distinct"
expected = "1000:1e6"
"""
NGINX = """
daemon off;
user root;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    log_format whole '$request $http_referer';
    access_log {folder}/access.log whole;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        {locations}
    }}
}}
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


@contextmanager
def nginx(folder, port, upstream):
    """Run nginx with the example, whose upstreams are elsewhere; it logs what it is asked."""
    text = EXAMPLE.read_text().replace("access_log off;", "")
    for known, real in upstream.items():
        assert known in text
        text = text.replace(known, real)
    file = folder / "nginx.conf"
    file.write_text(NGINX.format(folder=folder, port=port, locations=text))
    words = [shutil.which("nginx"), "-p", folder, "-e", folder / "error.log", "-c", file]
    with subprocess.Popen(list(map(str, words))) as process:
        try:
            wait_until(lambda: process.poll() is None and answers(port))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def answers(port):
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Where nginx is, the service behind it, and the folder of their files."""
    folder, port = tmp_path_factory.mktemp("site"), free_port()
    origin = f"http://127.0.0.1:{port}/board"
    with Service(folder, STREAM, checkpoint=None) as service:
        service.start()
        behind = f"{service.url()}/"
        with dashboard(service.config, "--origin", origin, "--service", service.url()) as board:
            upstream = {"http://127.0.0.1:8642/": behind, "http://127.0.0.1:8643/": f"{board}/"}
            with nginx(folder, port, upstream) as base:
                yield base, service, folder


def test_the_api_is_whole_below_a_path(site):
    base, service, _ = site
    root = f"{base}/pp/v1/streams/visits"
    with httpx.Client(verify=False, trust_env=False, timeout=30) as client:
        assert client.get(f"{base}/pp/healthz").json()["status"] == "ok"
        body = np.arange(30_000).astype("<i8").tobytes()
        headers = service.headers("ingest", Content_Type="application/octet-stream")
        for content in (body[:80], body, iter([body[:80], body[80:]])):
            sent = client.post(f"{root}/updates", content=content, headers=headers)
            assert sent.status_code == 202, sent.text
        made = client.post(f"{root}/release", headers=service.headers("release"))
        where = urljoin(f"{root}/release", made.headers["Location"])
        assert where == f"{base}/pp/v1/releases?stream=visits"
        assert client.get(where, headers=service.headers("read")).json()[0]["number"] == 1
        document = f"{base}/pp/v1/openapi.json"
        (server,) = client.get(document).json()["servers"]
        assert urljoin(document, server["url"]) == f"{base}/pp/"
        refused = client.post(f"{root}/updates", content=body, headers=service.headers("read"))
        assert refused.status_code == 403
    told = announced(f"{base}/pp", "visits", TOKENS["announce"], "look")
    assert (told["stream"], told["left"]) == ("visits", 0)


def test_the_dashboard_is_whole_below_a_path(site):
    base, service, folder = site
    with chromium() as browser:
        context = browser.new_context()
        page, asked, failed = context.new_page(), [], []
        page.set_default_timeout(20_000)
        page.on("request", lambda request: asked.append(request.url))
        page.on("websocket", lambda opened: asked.append(opened.url))
        page.on("response", lambda got: failed.append(got.url) if got.status > 401 else None)
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto(f"{base}/board/")
        page.get_by_label("Token").fill(TOKENS["read"])
        page.get_by_role("button", name="Enter").click()
        assert urlsplit(page.url).path == "/board/"
        page.get_by_role("navigation").get_by_role("link", name="visits").click()
        page.locator(".status", has_text=re.compile("live")).wait_for()
        assert urlsplit(page.url).path == "/board/streams/visits"
        before = len(service.releases())
        assert service.release().status_code == 201
        value = f"{service.releases()[before]['value']:,.0f}"
        page.locator(".tile .value", has_text=value).wait_for()  # over the web socket
        page.get_by_role("link", name="What a seized state can tell").click()
        page.get_by_role("link", name="Back to visits").click()
        page.get_by_role("link", name="panprivacy").click()
        page.locator(".card").first.wait_for()
        (cookie,) = [one for one in context.cookies() if one["value"] == TOKENS["read"]]
        assert (cookie["path"], cookie["httpOnly"], cookie["expires"]) == ("/board/", True, -1)
        page.get_by_role("button", name="Leave").click()
        page.get_by_label("Token").wait_for()
        assert not context.cookies()
    outside = [url for url in asked if urlsplit(url).path[:7] != "/board/" and url[:5] != "data:"]
    assert not outside
    assert any(url.startswith("ws:") for url in asked)
    assert not failed
    no_token_in(folder)


def no_token_in(folder):
    """No token is in any log, address or referrer."""
    logs = [(folder / name).read_text() for name in ("access.log", "dashboard.log", "log")]
    assert "websocket" in logs[0]
    assert not [log for log in logs if "pp_" in log]


def opened(base, *headers, transport="websocket"):
    """The status line of a request for a web socket, or for what stands in for one."""
    where = urlsplit(base)
    upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]  # fmt: skip
    path = f"{where.path}/_nicegui_ws/socket.io/?EIO=4&transport={transport}"
    lines = [f"GET {path} HTTP/1.1", f"Host: {where.netloc}", *headers]
    lines += upgrade if transport == "websocket" else []
    with socket.create_connection((where.hostname, where.port), timeout=20) as sock:
        sock.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(sock.recv(1 << 12).split()[1])


@pytest.mark.parametrize("way", ["websocket", "polling"])
def test_a_web_socket_takes_a_token_that_may_read_now_from_the_origin(site, way):
    """The cookie has the token, and each request is asked for it: one that is taken out is out."""
    base, service, folder = site
    board = f"{base}/board"
    own, foreign = f"Origin: {base}", "Origin: http://evil.example"

    def cookie(token):
        return f"Cookie: panprivacy_dashboard={token}"

    admitted = 101 if way == "websocket" else 200
    good = cookie(TOKENS["read"])
    assert opened(board, good, own, transport=way) == admitted
    refused = [
        [own], [own, cookie("")], [own, cookie("pp_nobody")], [own, cookie(TOKENS["ingest"])],
        [own, f"Authorization: Bearer {TOKENS['read']}"], [good, foreign],
        [good, own, foreign], [good, "Origin: null"],
    ]  # fmt: skip
    if way == "websocket":
        refused.append([good])
    for headers in refused:
        assert opened(board, *headers, transport=way) in (400, 401, 403), headers
    text = service.config.read_text()
    service.config.write_text(text.replace(hash_of(TOKENS["read"]), hash_of("pp_later")))
    try:
        wait_until(lambda: opened(board, good, own, transport=way) in (401, 403))
        assert opened(board, cookie("pp_later"), own, transport=way) == admitted
    finally:
        service.config.write_text(text)
        wait_until(lambda: opened(board, good, own, transport=way) == admitted)
    no_token_in(folder)
