"""A site of several pages, real browsers, and the numbers that come out.

The pages are served by one program and the script by another, as on two machines: what browsers
send to the second one crosses origins.
"""

from __future__ import annotations

import time

import pytest

from tests.service.browsing import chromium
from tests.service.running import Service, wait_until
from tests.service.sites import site

pytestmark = pytest.mark.long

STREAMS = """
[streams.pages]
epsilon = 1000
window = "1d"
releases = 2
by = "page"
groups = ["/", "/help.html"]
per_user = 2
ignore_others = true
[[streams.pages.stat]]
name = "distinct"
expected = 1_000
[streams.pages.beacon]
origins = ["{origin}"]
proxies = ["127.0.0.1"]
[streams.sources]
epsilon = 1000
window = "1d"
releases = 2
by = "referrer"
groups = ["-", "127.0.0.1:{port}"]
per_user = 2
[[streams.sources.stat]]
name = "distinct"
expected = 1_000
[streams.sources.beacon]
origins = ["{origin}"]
proxies = ["127.0.0.1"]
"""
"""With so little noise that what is released can be compared with what was done."""
PAGE = """<!doctype html><meta charset="utf-8"><title>A page</title>
<meta http-equiv="Content-Security-Policy"
      content="default-src 'none'; script-src {service}; connect-src {service}">
<p>Text</p><a id="help" href="help.html?name=ada#part">Help</a>
<script async crossorigin="anonymous" referrerpolicy="no-referrer"
 src="{service}/v1/streams/pages/beacon.js"></script>
<script async crossorigin="anonymous" referrerpolicy="no-referrer"
 src="{service}/v1/streams/sources/beacon.js?v=2"></script>
"""
LINK = '<!doctype html><a id="there" href="{origin}/">There</a>'


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The origin of a site, that of another one with a link to it, and the service."""
    pages, others = tmp_path_factory.mktemp("pages"), tmp_path_factory.mktemp("others")
    with site(pages) as origin, site(others) as other:
        port = other.rpartition(":")[2]
        streams = STREAMS.format(origin=origin, port=port)
        with Service(tmp_path_factory.mktemp("service"), streams) as service:
            service.start()
            for name in ("index.html", "help.html", "secret.html"):
                (pages / name).write_text(PAGE.format(service=service.url()))
            (others / "index.html").write_text(LINK.format(origin=origin))
            yield origin, other, service


class Visitor:
    """A browser of somebody: an address that a proxy would name, and what it sends and is told."""

    def __init__(self, browser, number):
        self.context = browser.new_context(user_agent=f"Browser/{number}")
        address = f"192.0.2.{number}"
        self.context.route("**/beacon", lambda route: route.continue_(
            headers={**route.request.headers, "X-Forwarded-For": address}))  # fmt: skip
        self.page, self.told, self.trouble = self.context.new_page(), [], []
        self.page.on("console", lambda one: self.trouble.append(one.text))
        self.page.on("pageerror", lambda one: self.trouble.append(str(one)))
        self.context.on("response", self._note)

    def _note(self, answer):
        if answer.url.endswith("/beacon"):
            self.told.append((answer.request, answer.status))

    def wait(self, visits):
        """Wait until so many visits of each stream have been answered."""
        end = time.monotonic() + 30
        while len(self.told) < 2 * visits and time.monotonic() < end:
            self.page.wait_for_timeout(20)
        assert [status for _, status in self.told] == [204] * 2 * visits
        assert not self.trouble


def released(service, stream):
    """The newest number of each group."""
    answer = service.release(stream)
    assert answer.status_code == 201, answer.text
    return {row["group"]: row["value"] for row in service.releases(stream)}


def test_browsers_are_counted_by_page_and_by_the_site_before(world):
    origin, other, service = world
    with chromium() as browser:
        for number in range(1, 6):
            visitor = Visitor(browser, number)
            if number <= 2:
                visitor.page.goto(f"{other}/")
                visitor.page.click("#there")
            else:
                visitor.page.goto(f"{origin}/?campaign=x#top")
            visitor.wait(1)
            visitor.page.goto(f"{origin}/secret.html")
            visitor.wait(2)
            if number != 3:
                visitor.page.click("#help")
                visitor.wait(3)
            bodies = [request.post_data for request, _ in visitor.told]
            before = f"127.0.0.1:{other.rpartition(':')[2]}" if number <= 2 else ""
            pages = ["/", "/secret.html", "/help.html"][: len(bodies) // 2]
            named = [f"{page}\n{before if page == '/' else ''}" for page in pages]
            assert sorted(bodies) == sorted(2 * named)
            kinds = {request.headers["content-type"] for request, _ in visitor.told}
            assert kinds == {"text/plain;charset=UTF-8"}
            assert visitor.context.cookies() == []
            kept = visitor.page.evaluate(
                "[localStorage.length, sessionStorage.length, document.cookie]"
            )
            assert kept == [0, 0, ""]
            visitor.context.close()
    assert released(service, "pages") == pytest.approx({"/": 5, "/help.html": 4}, abs=0.6)
    sources = {"-": 5, f"127.0.0.1:{other.rpartition(':')[2]}": 2}
    assert released(service, "sources") == pytest.approx(sources, abs=0.6)


def test_neither_script_nor_visit_has_a_cookie_or_names_the_page(world):
    """Though the browser has a cookie for the host of the service."""
    origin, _, service = world
    with chromium() as browser:
        visitor, asked = Visitor(browser, 9), []
        visitor.context.add_cookies([{"name": "session", "value": "x", "url": service.url()}])
        visitor.context.on("request", lambda one: asked.append((one.url, one.all_headers)))
        visitor.page.goto(f"{origin}/?token=x")
        visitor.wait(1)
        told = [headers() for url, headers in asked if service.url() in url]
        assert len(told) == 4
        assert not any({"cookie", "referer"} & set(headers) for headers in told)


def test_a_browser_without_fetch_sends_a_beacon(world):
    origin, _, _ = world
    with chromium() as browser:
        visitor = Visitor(browser, 9)
        visitor.page.add_init_script("Object.defineProperty(window, 'fetch', {value: undefined})")
        visitor.page.goto(f"{origin}/")
        visitor.wait(1)
        assert all(request.resource_type == "ping" for request, _ in visitor.told)


def test_a_page_of_another_site_is_not_counted(world, tmp_path):
    _, _, service = world
    (tmp_path / "index.html").write_text(PAGE.format(service=service.url()))
    with site(tmp_path) as thief, chromium() as browser:
        visitor, blocked = Visitor(browser, 10), []
        visitor.context.on("requestfailed", lambda one: blocked.append(one.url))
        visitor.page.goto(f"{thief}/")
        wait_until(lambda: visitor.page.wait_for_timeout(50) or len(blocked) == 2)
        assert all(url.endswith("/beacon") for url in blocked)


def test_the_service_has_logged_nobody(world):
    _, _, service = world
    said = service.said
    assert not [word for word in ("192.0.2.", "Browser/", "help.html", "secret") if word in said]
