"""Three jobs of a first hour, each in under twelve commands: a site, a hotline, and a notebook."""

from __future__ import annotations

import csv
import io
import re
import shutil
import socket
import time

import pytest

from panprivacy.service.config.tokens import Role
from tests.docs.test_service import NGINX, ROOT, Shell, free_port, listens
from tests.service.running import wait_until, wait_until_read

MOST = 11
"""Commands of a job."""
PAGES = {"/": 400, "/about?from=home": 150, "/style.css": 300}
CALLS = 60


class Job(Shell):
    """Commands of somebody who begins, counted."""

    def __init__(self, folder):
        super().__init__(folder)
        self.commands, self.datagrams, self._service = 0, [], None

    def run(self, command):
        self.commands += 1
        return super().run(command)

    def begin(self, recipe):
        """Write the configuration of a recipe; the tokens go into the environment."""
        printed = self.run(f"panprivacy init panprivacy.toml --recipe {recipe}")
        for role in Role:
            self.environment[role.upper()] = re.search(rf"{role} +(pp_\S+)", printed)[1]

    def exact(self):
        """Mend the configuration: numbers of users are exact, and can be had at any time."""
        self.run(
            "sed -i '/streams.visits]/,$ !s/^epsilon = 1 .*/epsilon = 600\\nreleases = 2/' "
            "panprivacy.toml"
        )

    def ports(self):
        """Let the listeners have ports that are free; the test needs that, not the user."""
        config = self.folder / "panprivacy.toml"
        text = config.read_text()
        for named in sorted(set(re.findall(r"127\.0\.0\.1:(55\d\d)", text))):
            with socket.socket(type=socket.SOCK_DGRAM) as sock:
                sock.bind(("127.0.0.1", 0))
                self.datagrams.append(sock.getsockname()[1])
                text = text.replace(named, str(self.datagrams[-1]))
        config.write_text(text)

    def __enter__(self):
        self.commands += 1
        self._service = self.serve("panprivacy serve panprivacy.toml")
        return self

    def __exit__(self, *_):
        self._service.terminate()
        self._service.communicate()

    def release(self, stream):
        """Ask for an answer."""
        url = f"http://127.0.0.1:8642/v1/streams/{stream}/release"
        self.run(f'curl -sf -X POST {url} -H "Authorization: Bearer $RELEASE"')

    def answers(self, stream):
        """Read what was released of a stream."""
        url = f"http://127.0.0.1:8642/v1/releases?format=csv&stream={stream}"
        text = self.run(f"curl -sf '{url}' -H \"Authorization: Bearer $READ\"")
        return [*csv.DictReader(io.StringIO(text))]


def get(port, page, source):
    """Ask nginx for a page, from an address of this machine."""
    with socket.create_connection(("127.0.0.1", port), source_address=(source, 0)) as sock:
        sock.sendall(f"GET {page} HTTP/1.0\r\n\r\n".encode())
        sock.recv(100)


@pytest.mark.long
@pytest.mark.skipif(NGINX is None or shutil.which("curl") is None, reason="needs nginx and curl")
def test_the_owner_of_a_site_reads_how_many_readers_each_page_has(tmp_path):
    job, port = Job(tmp_path), free_port()
    job.begin("website")
    job.exact()
    job.ports()
    kept = "log_format|access_log|error_log"
    job.run(f"sed -nE 's/^# +({kept}) /\\1 /p' panprivacy.toml > lines.conf")
    assert len((tmp_path / "lines.conf").read_text().splitlines()) == 7
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; events {{}} http {{ include {tmp_path}/lines.conf;\n"
        f"server {{ listen {port}; location / {{ return 204; }} }} }}"
    )
    with job:
        job.run(f"{NGINX} -p {tmp_path} -e /dev/null -c {tmp_path}/nginx.conf")
        try:
            wait_until(lambda: listens(port))
            for page, readers in PAGES.items():
                for reader in range(readers):
                    get(port, page, f"127.{1 + reader // 200}.{reader % 200}.1")
            wait_until_read(*job.datagrams)  # each is counted as it comes
            job.release("pages")
            pages = {one["group"]: float(one["value"]) for one in job.answers("pages")}
            job.release("visitors")
            (visitors,) = job.answers("visitors")
        finally:
            job.run(f"{NGINX} -p {tmp_path} -e /dev/null -c {tmp_path}/nginx.conf -s stop")
    assert pages == pytest.approx({"/": 400, "/about": 150, "/contact": 0}, abs=8)
    assert float(visitors["value"]) == pytest.approx(400, abs=8)
    assert job.commands <= MOST


@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_a_hotline_reads_how_many_calls_a_day_has(tmp_path):
    """Its days have three seconds here. The epsilon is that of the recipe."""
    job = Job(tmp_path)
    job.begin("hotline")
    job.run('sed -i \'s/^window = "1d"/window = "3s"/\' panprivacy.toml')
    with job:
        job.run(
            f'seq {CALLS} | sed \'s/.*/{{"user": "&"}}/\' | '
            "curl -sf http://127.0.0.1:8642/v1/streams/calls/updates "
            '-H "Authorization: Bearer $INGEST" -H "Content-Type: application/x-ndjson" '
            "--data-binary @-"
        )
        time.sleep(8)  # the day of the calls is over, whatever else this machine does
        days = job.answers("calls")
    assert days
    called = sum(float(one["estimate"]) for one in days)
    assert abs(called - CALLS) <= 30 * len(days)  # beyond it less than once in 1e6 runs
    assert job.commands <= MOST


def test_an_analyst_has_an_answer_and_its_plot_in_a_few_cells_of_a_notebook():
    """The page runs by itself, as all pages do; this counts its cells up to the plot."""
    page = (ROOT / "docs/notebook.md").read_text()
    before, plotted, _ = page.partition(".plot(")
    assert plotted
    assert before.count("```pycon") + 1 <= MOST
