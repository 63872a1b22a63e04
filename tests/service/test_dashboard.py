"""The dashboard in a browser: what it shows, to whom, and what it sends where."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from panprivacy.service.config.tokens import hash_of
from tests.service.browsing import chromium, dashboard
from tests.service.filled import fill
from tests.service.running import TOKENS, Service, wait_until
from tests.service.sites import serving

pytestmark = pytest.mark.long

HTML = '<img src=x onerror="document.title=1">'
FEW = "pp_few"
STREAMS = f"""
[[tokens]]
name = "few"
may = ["read"]
sha256 = "{hash_of(FEW)}"
streams = ["visits"]

[streams.visits]
epsilon = 1
window = "1d"
zone = "Europe/Paris"
releases = 4
intrusions = 1
ids = "integers"
[[streams.visits.stat]]
name = "distinct"
expected = "100:1e5"

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
groups = ['{HTML}', "help", "shop"]
[[streams.pages.stat]]
name = "distinct"
expected = "100:1e5"

[streams.times]
epsilon = 1
window = "1d"
[[streams.times.stat]]
name = "histogram"
low = 1
high = 60_000
resolution = 0.05
quantile = [0.5, 0.95, 0.99]
counts = true

[streams.calls]
epsilon = 1
window = "1m"
[[streams.calls.stat]]
name = "running-count"
horizon = 100_000
"""
PATHS = (
    "/",
    *(f"/streams/{name}" for name in ("visits", "activity", "pages", "times", "calls")),
    "/streams/visits/explain",
)


@dataclass
class Visitor:
    """A page of a browser, and what it sent and said.

    Args:
        page: of playwright.
        base: where the dashboard is.
        asked: all that was requested.
        wrong: what scripts complained about.
    """

    page: Any
    base: str
    asked: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def enter(self, token):
        """Give a token at the door."""
        self.page.goto(self.base)
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Enter").click()

    def go(self, path):
        """Open a page, and wait until it shows what there is."""
        self.page.goto(self.base + path)
        self.page.locator(".status", has_text=re.compile("live")).wait_for()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A service, its dashboard, and a browser."""
    directory = tmp_path_factory.mktemp("site")
    with chromium() as browser, Service(directory, STREAMS, checkpoint=None) as service:
        fill(service.config, 8)
        service.start()
        with dashboard(service.config, "--service", service.url()) as base:
            yield browser, service, base


@pytest.fixture
def visitor(site):
    """Somebody with a token that may read, at a wide screen."""
    browser, _, base = site
    size = {"width": 1280, "height": 900}
    context = browser.new_context(viewport=size, reduced_motion="reduce")
    one = Visitor(context.new_page(), base)
    one.page.set_default_timeout(15_000)
    one.page.on("request", lambda request: one.asked.append(request.url))
    one.page.on("websocket", lambda socket: one.asked.append(socket.url))
    one.page.on("pageerror", lambda error: one.wrong.append(str(error)))
    one.enter(TOKENS["read"])
    one.page.locator(".tile").first.wait_for()
    yield one
    context.close()


def test_pages_fit_and_send_nothing_elsewhere(visitor, tmp_path):
    """Each page as a phone loads it, and then on a wide screen."""
    for path in PATHS:
        visitor.page.set_viewport_size({"width": 390, "height": 900})
        visitor.go(path)
        assert visitor.page.evaluate("document.documentElement.lang") == "en-US"
        for width in (390, 1280):
            visitor.page.set_viewport_size({"width": width, "height": 900})
            assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width, path
        picture = tmp_path / "page.png"
        visitor.page.screenshot(path=picture, full_page=True)
        assert picture.stat().st_size > 20_000
    here = visitor.base.partition("://")[2]
    elsewhere = [url for url in visitor.asked if url.split("/")[2] != here and url[:5] != "data:"]
    assert visitor.asked
    assert not elsewhere
    assert not visitor.wrong


def test_what_was_released_is_on_the_pages(visitor, site):
    _, service, _ = site
    rows = service.releases("activity")[-8:]
    visitor.go("/streams/activity")
    page = visitor.page
    for row in rows:
        shown = ("value", "low", "high", "estimate", "standard_error")
        numbers = [f"{row[name]:,.0f}" for name in shown]
        cells = page.get_by_role("row", name=f"visits: exactly {row['argument']}")
        assert cells.locator("td.number").all_inner_texts() == numbers
    assert page.locator(".chart svg").filter(visible=True).count() == 2  # over time, and by number
    assert page.locator(".chart svg path[fill='#0072B2']").count() >= 8
    meters = page.get_by_role("meter")
    assert meters.count() == 2
    assert 0 < int(meters.first.get_attribute("aria-valuenow")) <= 100
    pictures = page.locator(".seen img")
    pictures.nth(1).wait_for()
    assert "noise" in pictures.nth(1).get_attribute("alt")
    before = pictures.nth(1).get_attribute("src")
    page.get_by_role("button", name="Draw again").click()
    wait_until(lambda: pictures.count() == 2 and pictures.nth(1).get_attribute("src") != before)
    visitor.go("/streams/visits/explain")
    assert page.get_by_role("heading", name="What it can say about a person").is_visible()
    assert page.get_by_role("cell", name="26.8 % to 73.2 %").is_visible()


def test_a_histogram_is_a_density_and_its_percentiles_are_lines(visitor):
    visitor.go("/streams/times")
    page = visitor.page
    charts = page.locator(".chart svg").filter(visible=True)
    assert charts.count() == 3  # over time, density and percentiles
    density, lines = charts.nth(1), charts.nth(2)
    steps = density.locator("path[stroke='#0072B2']").first.get_attribute("d")
    assert steps.count("L") > 200  # a step has two lines
    colours = "#0072B2", "#D55E00", "#009E73"
    assert all(lines.locator(f"path[stroke='{one}']").count() >= 1 for one in colours)
    assert lines.get_by_text("p99", exact=True).is_visible()
    assert page.get_by_text("The band holds all counts together, 95 %.").is_visible()
    density.hover(position={"x": 300, "y": 100})
    page.locator(".chart div", has_text=re.compile(r"\d to \d")).last.wait_for()
    lines.hover(position={"x": 300, "y": 100})
    page.locator(".chart div", has_text=re.compile("p50: .*p95: .*p99: ")).last.wait_for()


def test_a_name_with_html_in_it_is_a_text(visitor):
    visitor.go("/streams/pages")
    page = visitor.page
    assert page.get_by_role("cell", name=HTML).is_visible()
    chart = page.locator(".chart").filter(visible=True).nth(1)
    chart.hover(position={"x": 200, "y": 30})  # the group of most visitors
    chart.locator("div", has_text=HTML).last.wait_for()
    assert page.locator("img[src=x]").count() == 0
    assert page.title() == "pages · panprivacy"
    page.get_by_label("Group", exact=True).select_option("shop")
    page.locator(".tile", has_text="shop").wait_for()


def test_a_new_answer_comes_by_itself(visitor, site):
    _, service, _ = site
    visitor.go("/streams/visits")
    service.send(range(4_321))
    assert service.release().status_code == 201
    shown = f"{service.releases()[-1]['value']:,.0f}"
    visitor.page.locator(".tile .value", has_text=shown).wait_for()
    assert "1 of 4 answers made" in visitor.page.locator(".gauges").inner_text()


def test_the_keyboard_reaches_every_control(visitor):
    visitor.go("/streams/pages")
    page = visitor.page
    page.locator(".seen img").first.wait_for()
    page.evaluate("document.activeElement.blur()")
    controls = "a, button, select, input"
    place = f"[...document.querySelectorAll('{controls}')].indexOf(document.activeElement)"
    reached, marked = [], []
    for _ in range(page.locator(controls).filter(visible=True).count()):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(place))
        marked.append(page.evaluate("getComputedStyle(document.activeElement).outlineStyle"))
    assert reached == sorted(set(reached))  # each once, in the order of the page
    assert -1 not in reached
    assert set(marked) == {"solid"}
    page.keyboard.press("Tab")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "numbers"


def test_the_button_asks_twice_and_needs_a_token_of_its_own(visitor, site):
    _, service, _ = site

    def announced():
        asked = service.client.get(service.url("/v1/streams"), headers=service.headers("read"))
        return asked.json()[0]["intrusions_announced"]

    page = visitor.page
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="The memory was seen").click()
    dialog.get_by_role("button", name="Go on").click()
    dialog.get_by_text("Give a token that may announce").wait_for()
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    for token, answer in ((TOKENS["read"], "may not announce"), (TOKENS["announce"], "0 left")):
        page.get_by_role("button", name="The memory was seen").click()
        dialog.get_by_label("A token that may announce").fill(token)
        dialog.get_by_role("button", name="Go on").click()
        dialog.get_by_role("heading", name="Announce it now?").wait_for()
        assert announced() == 0
        dialog.get_by_role("button", name="Yes, announce it").click()
        dialog.get_by_text(answer).wait_for()
        page.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
    assert announced() == 1
    page.get_by_role("button", name="The memory was seen").click()
    assert dialog.get_by_label("A token that may announce").input_value() == ""


def test_an_address_without_a_page_leads_home(visitor):
    answer = visitor.page.goto(f"{visitor.base}/nothing")
    assert answer.status == 404
    visitor.page.get_by_role("link", name="All streams").click()
    visitor.page.locator(".tile").first.wait_for()


def test_without_a_token_that_may_read_there_is_nothing_to_see(site):
    browser, _, base = site
    context = browser.new_context()
    visitor = Visitor(context.new_page(), base)
    for token in ("pp_nobody", TOKENS["announce"]):
        visitor.enter(token)
        assert "no token that may read" in visitor.page.get_by_role("alert").inner_text()
    visitor.enter(FEW)
    streams = visitor.page.get_by_role("navigation").get_by_role("link")
    streams.first.wait_for()
    assert streams.all_inner_texts() == ["visits"]
    visitor.go("/streams/pages")
    assert visitor.page.get_by_role("heading", name="There is no such stream").is_visible()
    visitor.page.get_by_role("button", name="Leave").click()
    visitor.page.goto(f"{base}/#{TOKENS['read']}")
    visitor.page.locator(".tile").first.wait_for()
    assert TOKENS["read"] not in visitor.page.url
    visitor.page.get_by_role("button", name="Leave").click()
    visitor.page.get_by_label("Token").wait_for()
    context.close()


ANOTHER_SITE = """<title>another</title><script>
const opens = () => new Promise(told => {
  const socket = new WebSocket(base.replace("http", "ws") + path + "websocket");
  socket.onopen = () => told(true);
  socket.onerror = () => told(false);
});
const asks = async (method, path) => {
  const body = method === "POST" ? new URLSearchParams({token: "pp_read"}) : undefined;
  const options = {method, body, credentials: "include", redirect: "manual"};
  try { return (await fetch(base + path, options)).type; } catch { return "refused"; }
};
const path = "/_nicegui_ws/socket.io/?EIO=4&transport=";
</script>"""


@contextmanager
def another_site():
    """Serve a page that asks the dashboard for things, at another port of the same host."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(ANOTHER_SITE.encode())

        def log_message(self, *_):
            pass

    with serving(Handler) as origin:
        yield origin


def test_a_page_at_another_port_reaches_nothing_with_the_cookie(visitor, site):
    """The browser sends it the cookie: a port is no other site."""
    _, _, base = site
    page = visitor.page
    with another_site() as other:
        asked = {}
        for at in (other, base):
            page.goto(other if at is other else f"{base}/")
            if at is base:  # the same questions by a page of the dashboard: they do work
                page.add_script_tag(
                    content=re.search(r"<script>(.*)</script>", ANOTHER_SITE, re.DOTALL)[1]
                )
            page.evaluate("at => { globalThis.base = at }", base)
            asked[at] = [page.evaluate("opens()"), page.evaluate("asks('GET', path + 'polling')"),
                         page.evaluate("asks('POST', '/enter')")]  # fmt: skip
        assert asked == {
            other: [False, "refused", "refused"],
            base: [True, "basic", "opaqueredirect"],
        }
        page.goto(other)
        page.evaluate("at => { globalThis.base = at }", base)
        page.evaluate(
            "async () => { await fetch(base + '/leave', "
            "{method: 'POST', mode: 'no-cors', credentials: 'include'}) }"
        )
    visitor.go("/")  # the cookie is there still
    visitor.page.locator(".tile").first.wait_for()


def test_who_lost_the_token_and_does_not_leave_the_page_is_shown_nothing_more(site):
    browser, service, base = site
    config = Path(service.config)
    before = config.read_text()
    context = browser.new_context()
    visitor = Visitor(context.new_page(), base)
    visitor.page.set_default_timeout(15_000)
    visitor.enter(FEW)
    visitor.page.locator(".tile").first.wait_for()
    visitor.page.route(f"{base}/", lambda route: route.fulfill(status=204))
    config.write_text(before.replace(hash_of(FEW), hash_of("pp_another")))
    visitor.page.locator(".tile").first.wait_for(state="detached")
    assert visitor.page.locator("select").count() == 0
    config.write_text(before)
    context.close()


def test_who_loses_the_token_sees_nothing_more_and_a_store_that_is_gone_is_told(visitor, site):
    _, service, _ = site
    files = list(service.directory.glob("releases.sqlite*"))
    away = service.directory / "away"
    away.mkdir()
    service.kill()
    for path in files:
        path.rename(away / path.name)
    alert = visitor.page.get_by_role("alert")
    alert.get_by_text("cannot be read").wait_for()
    assert visitor.page.locator(".tile").first.is_visible()  # what was known stays
    for path in away.iterdir():
        path.rename(service.directory / path.name)
    alert.wait_for(state="hidden")
    config = Path(service.config)
    config.write_text(config.read_text().replace('may = ["read"]', 'may = ["release"]'))
    visitor.page.get_by_label("Token").wait_for()


@pytest.mark.slow
def test_the_demo_shows_live_numbers_and_leaves_nothing(tmp_path):
    script = Path(__file__).parents[2] / "examples/live_demo.py"
    words = {"stdout": subprocess.PIPE, "text": True}
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, script], env=env, **words) as process:
        try:
            address = process.stdout.readline().rpartition(" ")[2].strip()
            with chromium() as browser:
                page = browser.new_page()
                page.goto(address)
                page.locator(".tile", has_text="running count").wait_for()
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
    assert process.returncode == 0
    assert not list(tmp_path.iterdir())
