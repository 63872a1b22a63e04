"""Devices in Chromium: three profiles, a collector, two servers, and a browser that is killed."""

from __future__ import annotations

import contextlib
import json
import re

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.clients.browsers import Browser, bundle, driver
from tests.commands import run_command
from tests.service import sites
from tests.service import test_aggregator_app as two
from tests.service import test_collector as one

pytestmark = pytest.mark.long

HORIZON = 3
LIVES = [[True, False, True], [False, True, True], [False, False, False]]
"""What three devices observe: two events, two, and none."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Where the page with the client is."""
    folder = tmp_path_factory.mktemp("site")
    bundle(folder)
    with sites.site(folder) as url:
        yield url


@pytest.fixture
def browsers(site, tmp_path):
    """Three of them, each with a profile of its own."""
    with driver() as playwright, contextlib.ExitStack() as opened:
        yield [
            opened.enter_context(Browser(playwright, tmp_path / f"profile-{each}", site))
            for each in range(len(LIVES))
        ]


@pytest.fixture
def browser(site, tmp_path):
    """One of them."""
    with driver() as playwright, Browser(playwright, tmp_path / "profile", site) as found:
        yield found


def new_task(folder, horizon, *more):
    """Write a task of a histogram of 0, 1 and 2 or more; return the tokens."""
    words = ["--kind", "histogram", "--most", "2", "--epsilon", "100", "--horizon", horizon]
    result = run_command(
        "task", folder / "task.json", *map(str, words), "--signer", folder / "signer", *more
    )
    assert result.code == 0, result.stderr
    return dict(re.findall(r"(ingest|release) +(pp_\S+)", result.stdout))


def given(folder):
    """What a page is given: the file of the task, and whom it trusts."""
    signing = Ed25519PrivateKey.from_private_bytes(bytes.fromhex((folder / "signer").read_text()))
    return {
        "task": (folder / "task.json").read_bytes().hex(),
        "signer": signing.public_key().public_bytes_raw().hex(),
    }


def live(browsers, task, ticks=HORIZON):
    """Let each browser observe its events; return what an intruder finds after each tick."""
    found = []
    for browser, events in zip(browsers, LIVES, strict=False):
        assert browser.ask("begin", task) == 0
        dumps = [browser.ask("dump")]
        for tick, event in enumerate(events[:ticks], 1):
            assert browser.ask("tick", event) == tick
            dumps.append(browser.ask("dump"))
        found.append(dumps)
    return found


def send(browsers, url, token):
    for browser in browsers:
        for _ in range(2):  # sent again, it counts once
            browser.ask("([url, token]) => send(url, token)", [url, token])


def check_answers(document, places):
    """With so little noise a bit of 0 stays 0, and one of 1 is reported by the toss of a coin."""
    assert document["reports"] == len(LIVES)
    for answer, devices in zip(document["answers"], places, strict=True):
        assert answer["low"] <= devices <= answer["high"]
        assert 0 <= round(answer["estimate"], 9) <= 2 * devices


def check_dumps(lives, ticks, points_each):
    """Dumps of any two inputs are equally long, and no ciphertext comes twice."""
    lengths = [[len(json.dumps(dump)) for dump in dumps] for dumps in lives]
    assert lengths[0] == lengths[1] == lengths[2]
    states = [dump[0]["values"] for dumps in lives for dump in dumps if len(dump) == 1]
    assert len(states) == len(LIVES) * (ticks + 1)
    assert {len(values) for values in states} == {1}
    rows = [value[2 * 62 :] for (value,) in states]
    points = [row[at : at + 66] for row in rows for at in range(0, len(row), 66)]
    assert len(set(points)) == len(points) == len(states) * points_each


def test_three_profiles_and_a_collector(browsers, site, tmp_path):
    tokens = new_task(tmp_path, HORIZON)
    task = given(tmp_path)
    check_dumps(live(browsers, task), HORIZON, 12)
    with one.Running(tmp_path, tokens, "--origin", site) as collector:
        send(browsers, collector.url, tokens["ingest"])
        answer = collector.post("/v1/release", "release")
        check_answers(answer.json(), [1, 0, 2])
        assert collector.post("/v1/release", "release").content == answer.content
    assert [browser.told for browser in browsers] == [[], [], []]


def test_three_profiles_and_two_servers(browsers, site, tmp_path):
    words = ["--collusion", "one-server", "--batch", str(len(LIVES))]
    with two.Running(tmp_path, *words, leading=("--origin", site)) as servers:
        check_dumps(live(browsers, given(tmp_path), 1), 1, 32)
        send(browsers, servers.urls["leader"], servers.tokens["ingest"])
        check_answers(servers.release().json(), [2, 1])


def test_a_page_of_another_site_sends_nothing(browser, tmp_path):
    tokens = new_task(tmp_path, HORIZON)
    live([browser], given(tmp_path))
    with one.Running(tmp_path, tokens, "--origin", "https://app.example") as collector:
        with pytest.raises(Exception, match="Failed to fetch"):
            send([browser], collector.url, tokens["ingest"])
        assert collector.get("/healthz").json()["status"] == "open"
        report = bytes.fromhex(browser.ask("report"))
        assert collector.send(report).status_code == 201  # it had not come


def test_tampered_tasks_wrong_keys_and_replays_are_refused(browser, tmp_path):
    new_task(tmp_path, HORIZON)
    task = given(tmp_path)
    signed = json.loads(bytes.fromhex(task["task"]))
    signed["task"]["horizon"] += 1
    for wrong in (
        {**task, "task": json.dumps(signed).encode().hex()},
        {**task, "signer": "11" * 32},
    ):
        with pytest.raises(Exception, match="not signed by the one whom this program trusts"):
            browser.ask("begin", wrong)
    assert browser.ask("dump") == []
    assert browser.ask("begin", task) == 0
    older = browser.ask("async () => Array.from(await storage.read())")
    browser.ask("tick", True)
    browser.ask(REPLAY, older)
    with pytest.raises(Exception, match="another program has changed the state"):
        browser.ask("tick", False)
    assert browser.ask("begin", task) == 0
    for tick in range(HORIZON):
        assert browser.ask("tick", False) == tick + 1
    with pytest.raises(Exception, match="all ticks of the task are over"):
        browser.ask("tick", True)
    report = browser.ask("report")
    assert browser.ask("report") == report
    browser.ask(REPLAY, older)  # who puts an old state back sends the same name, which counts once
    assert browser.ask("begin", task) == 0
    for _ in range(HORIZON):
        browser.ask("tick", False)
    again = browser.ask("report")
    assert again != report
    assert again[2 * 37 : 2 * 53] == report[2 * 37 : 2 * 53]


REPLAY = """async (older) => {
  await storage.replace(await storage.read(), Uint8Array.from(older));
}"""


def test_a_browser_that_is_killed_during_a_tick_loses_that_tick_at_most(browser, tmp_path):
    new_task(tmp_path, 100_000)
    task = given(tmp_path)
    last = browser.ask("begin", task)
    for _ in range(4):
        browser.ask(BUSY)
        browser.page.wait_for_function("told >= 40", polling=5)
        seen = browser.ask("told")
        browser.kill()
        browser.start()
        now = browser.ask("begin", task)
        assert now >= last + seen
        last = now
        assert browser.ask("tick", True) == now + 1
        last += 1


BUSY = """() => {
  window.told = 0;
  const on = () => window.tick(window.told % 3 === 0).then(() => { window.told += 1; on(); });
  on();
}"""
