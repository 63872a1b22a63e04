"""Which pages of the web may send reports to a server of a task."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from panprivacy.devices.aggregator.app import LeaderApi, leader_application
from panprivacy.devices.collector.app import CollectorApi, application
from panprivacy.errors import PlanError
from panprivacy.service.config.tokens import Role, Token, Tokens, hash_of
from tests.service.two_servers import LEADER, task_of

TOKENS = Tokens([Token(name="devices", may=(Role("ingest"),), sha256=hash_of("pp_ingest"))])
SITE = "https://app.example"
REPORTS = {"collector": "/v1/reports", "leader": "/tasks/one/reports"}
EACH = pytest.mark.parametrize("role", REPORTS)


def app_of(role, origins):
    task = task_of()
    if role == "leader":
        return leader_application(LeaderApi(b"{}", task, None, None, TOKENS), origins)
    return application(CollectorApi(b"{}", task, LEADER, None, TOKENS), origins)


def ask(role, method, path, origins=(), **headers):
    async def asked():
        transport = httpx.ASGITransport(app_of(role, origins))
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(asked())


def preflight(role, path, origins, origin=SITE):
    named = {"Access-Control-Request-Method": "POST"}
    named["Access-Control-Request-Headers"] = "authorization,content-type"
    return ask(role, "OPTIONS", path, origins, Origin=origin, **named)


def allowed(answer):
    return answer.headers.get("access-control-allow-origin")


@EACH
def test_pages_of_a_declared_site_may_read_the_task_and_send_reports(role):
    answer = preflight(role, REPORTS[role], [SITE])
    assert (answer.status_code, allowed(answer)) == (200, SITE)
    assert "Authorization" in answer.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in answer.headers
    answer = ask(role, "GET", "/v1/task", [SITE], Origin=SITE)
    assert (answer.status_code, allowed(answer)) == (200, SITE)
    answer = ask(role, "POST", REPORTS[role], [SITE], Origin=SITE)
    assert (answer.status_code, allowed(answer)) == (401, SITE)  # the page may read why


@EACH
def test_pages_of_other_sites_may_not(role):
    for origin in (
        "https://other.example",
        "http://app.example",
        "https://app.example:444",
        "null",
    ):
        answer = preflight(role, REPORTS[role], [SITE], origin)
        assert (answer.status_code, allowed(answer)) == (400, None)
        assert allowed(ask(role, "GET", "/v1/task", [SITE], Origin=origin)) is None


@EACH
def test_without_a_declared_site_no_page_may(role):
    answer = preflight(role, REPORTS[role], [])
    assert (answer.status_code, allowed(answer)) == (405, None)
    assert allowed(ask(role, "GET", "/v1/task", Origin=SITE)) is None


@EACH
def test_no_page_may_ask_for_the_answer(role):
    answer = preflight(role, "/v1/release", [SITE])
    assert (answer.status_code, allowed(answer)) == (405, None)


@EACH
def test_what_is_no_site_is_refused(role):
    for wrong in ("*", "app.example", "https://app.example/page", "ftp://app.example", "https://"):
        with pytest.raises(PlanError, match="origin must be"):
            app_of(role, [wrong])
    assert allowed(preflight(role, REPORTS[role], ["HTTPS://App.Example:443/"])) == SITE
