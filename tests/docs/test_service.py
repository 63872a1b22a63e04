"""The page on the service runs: its first number comes, and a real nginx is counted as it says."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from panprivacy.service.config.loading import load
from panprivacy.service.config.template import configuration
from panprivacy.service.config.tokens import Role, hash_of
from panprivacy.service.outgoing.records import FIELDS
from panprivacy.service.web.metrics import _QUESTION
from panprivacy.statistics.catalogue import kinds
from tests.service.running import Service, wait_until, wait_until_read

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/service.md").read_text()
EXAMPLES = ROOT / "examples/service"
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
CLIENTS = 200


def commands():
    """What the page has typed for the first number, in order."""
    section = PAGE.partition("## The first number")[2].partition("\n## ")[0]
    blocks = re.findall(r"```console\n(.*?)```", section, re.DOTALL)
    text = "".join(blocks).replace("\\\n", "")
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def snippets(title):
    """The configurations of a section."""
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"```toml\n(.*?)```", section, re.DOTALL)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


def listens(port):
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


class Shell:
    """Runs commands of a page, on another port than the one that it names."""

    def __init__(self, folder, named="8642"):
        self.folder, self.port, self._named = folder, str(free_port()), named
        self.environment = dict(os.environ)
        self.environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def run(self, command):
        done = subprocess.run(
            ["bash", "-c", command.replace(self._named, self.port)], check=False, timeout=60,
            cwd=self.folder, env=self.environment, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, command):
        process = subprocess.Popen(
            command.replace(self._named, self.port).split(), cwd=self.folder,
            env=self.environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            wait_until(lambda: listens(int(self.port)))
        except TimeoutError:
            process.kill()
            raise
        return process

    def serve(self, command):
        config = self.folder / "panprivacy.toml"
        text = config.read_text()
        default = f'listen = "127.0.0.1:{self._named}"'
        config.write_text(text.replace(f"#{default}", default.replace(self._named, self.port)))
        return self.start(command)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_first_number_comes(tmp_path):
    init, add_token, change_token, edit, serve, send, release, read = commands()
    shell = Shell(tmp_path)
    printed = shell.run(init)
    for role in Role:
        shell.environment[role.upper()] = re.search(rf"{role} +(pp_\S+)", printed)[1]
    one, other = (
        re.findall(r"pp_\S+", shell.run(command)) for command in (add_token, change_token)
    )
    assert len(one) == len(other) == 1
    assert one != other
    shell.run(edit)
    assert (
        tomllib.loads((tmp_path / "panprivacy.toml").read_text())["streams"]["visits"]["releases"]
        == 2
    )
    service = shell.serve(serve)
    try:
        shell.run(send)
        shell.run(release)
        head, row = shell.run(read).splitlines()
    finally:
        service.terminate()
        said = service.communicate()[1]
    assert 'stream=visits guarantee="epsilon 1 for adding or removing one user' in said
    answer = dict(zip(head.split(","), row.split(","), strict=True))
    assert answer["statistic"] == "distinct"
    assert float(answer["low"]) < float(answer["value"]) < float(answer["high"])
    assert 0 < float(answer["value"]) < 50_000
    shown = re.search(r"^stream,start.*$", PAGE, re.MULTILINE)[0]
    assert shown == head


def test_the_defaults_of_the_page_are_those_of_the_program():
    text = configuration("visits", None, {role: hash_of(role) for role in Role})
    assert "#retries = 8_192 " in text
    assert "8,192 names" in PAGE


def test_the_configuration_of_the_page_counts_what_it_says(tmp_path):
    (snippet,) = snippets("What can be counted")
    path = tmp_path / "a.toml"
    path.write_text(snippet)
    statistics = load(path).streams["visits"].make_counting().statistics
    assert [(label, one.entry.name) for label, one in statistics.items()] == [
        ("distinct", "distinct"),
        ("visits", "cropped-sum"),
    ]


def test_the_table_of_the_page_has_every_statistic_with_all_that_it_may_be_told():
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*?) \| (.*?) \| .* \|$", PAGE, re.MULTILINE)
    told: dict = {}
    for name, needs, may in rows:
        if name in kinds():
            told.setdefault(name, (needs, may))  # later tables are about other things
    assert list(told) == list(kinds())
    for name, kind in kinds().items():
        needs, may = (set(re.findall(r"`(\w+)`", cell)) for cell in told[name])
        sizes, query = kind.entry.sizes.fields(), kind.entry.query.fields()
        assert needs | may == {*sizes, *query}, name
        assert {one.name for one in sizes.values() if one.required} <= needs


def test_the_columns_of_the_page_are_those_of_a_row():
    head = re.search(r"^stream,start.*$", PAGE, re.MULTILINE)[0]
    assert head.split(",") == list(FIELDS)
    named = re.findall(r"^\| `(\w+)` \| [^|]* \| (?:`[^`]*`(?:, )?)+ \|$", PAGE, re.MULTILINE)
    assert named == ["statistic", "question", "arguments", "group"] == _QUESTION[1:]


def test_every_file_that_the_page_names_is_there():
    names = set(re.findall(r"\]\(\.\./(examples/[\w./]+)\)", PAGE))
    assert names == {f"examples/service/{path.name}" for path in EXAMPLES.iterdir()}
    for name in names:
        assert (ROOT / name).is_file(), name


class RunningNginx:
    """nginx with the example of the page, in a folder of its own."""

    def __init__(self, folder, service_port, syslog_port):
        self.port = free_port()
        text = (EXAMPLES / "nginx.conf").read_text()
        for old, new in {
            "listen 80;": f"listen {self.port};",
            "listen [::]:80;": "",
            "127.0.0.1:5514": f"127.0.0.1:{syslog_port}",
            "127.0.0.1:8642": f"127.0.0.1:{service_port}",
            "/var/www/html": str(folder),
        }.items():
            assert old in text
            text = text.replace(old, new)
        (folder / "site.conf").write_text(text)
        temporary = "\n".join(
            f"{kind}_temp_path {folder}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (folder / "nginx.conf").write_text(
            f"pid {folder}/pid; error_log {folder}/error.log;\n"
            f"events {{}}\nhttp {{ {temporary}\ninclude {folder}/site.conf; }}"
        )
        self._process = subprocess.Popen(
            [NGINX, "-p", folder, "-c", folder / "nginx.conf", "-g", "daemon off;"],
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self):
        wait_until(lambda: listens(self.port))
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()

    def get(self, path, source):
        """A request from an address of this machine."""
        with socket.create_connection(("127.0.0.1", self.port), source_address=(source, 0)) as sock:
            sock.sendall(f"GET {path} HTTP/1.0\r\nHost: example.org\r\n\r\n".encode())
            return sock.recv(100).split()[1]


@pytest.mark.long
@pytest.mark.skipif(NGINX is None or os.geteuid() != 0, reason="needs nginx, and root to run it")
def test_visitors_of_a_real_nginx_are_counted_and_its_proxy_leads_to_the_service(tmp_path):
    (snippet,) = snippets("nginx, without a log")
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        syslog_port = sock.getsockname()[1]
    counted = 'epsilon = 60\nwindow = "1d"\nreleases = 2\n'
    statistic = '\n[[streams.visits.stat]]\nname = "distinct"\nexpected = 1000\n'
    # A /24 would make one client of all that this machine can be.
    streams = (
        snippet.replace("# ...\n", counted)
        .replace('prefix = "24:56"', 'prefix = "32:128"')
        .replace("5514", str(syslog_port))
    ) + statistic
    with Service(tmp_path, streams, checkpoint=None) as service:
        service.start()
        port = service.url().rpartition(":")[2]
        with RunningNginx(tmp_path, port, syslog_port) as nginx:
            for client in range(CLIENTS):
                assert nginx.get("/seen", f"127.0.0.{client + 2}") == b"204"
            assert nginx.get("/v1/openapi.json", "127.0.0.1") == b"200"
            wait_until_read(syslog_port)  # a datagram is counted as it comes
            assert service.release().status_code == 201
            (answer,) = service.releases()
        logs = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert abs(answer["value"] - CLIENTS) <= 6
    assert b"127.0.0.77" not in logs
