"""The recipes of `panprivacy init` load, state their total, and count."""

from __future__ import annotations

import re
import tomllib

import pytest

from panprivacy.cli.init import SiteRecipe
from panprivacy.privacy.guarantee import PrivacyLoss
from panprivacy.service.config.loading import load
from panprivacy.service.config.recipes import RECIPES
from panprivacy.service.web.openapi import document as openapi
from tests.commands import run_command

WHOSE = {"user": r"(?:visitor|user|caller|customer) loses (epsilon \S+) in one",
         "event": r"one (?:visit|call|order) (epsilon \S+) besides"}  # fmt: skip


def test_each_recipe_has_an_option():
    assert [one.value for one in SiteRecipe] == list(RECIPES)


@pytest.fixture(params=RECIPES)
def written(request, tmp_path):
    """The configuration of a recipe: its text, what `init` printed, and its streams."""
    result = run_command("init", "a.toml", "--recipe", request.param, cwd=tmp_path)
    assert result.code == 0, result.stderr
    file = tmp_path / "a.toml"
    return file.read_text(), result.stdout, load(file).streams


def test_the_total_that_it_states_is_that_of_the_guarantees(written):
    text, printed, streams = written
    said = " ".join(text.partition("# Total:")[2].partition(".\n")[0].replace("#", "").split())
    for hidden, pattern in WHOSE.items():
        each = [one.guarantee for one in streams.values() if one.guarantee.adjacency == hidden]
        total = str(PrivacyLoss.total(one.loss for one in each)) if each else None
        assert re.findall(pattern, said) == ([total] if total else [])
        if total:
            who = "a person" if hidden == "user" else "one event"
            assert f"In one window of each stream {who} loses {total} at most." in printed


def test_every_epsilon_says_what_it_hides(written):
    text, _, streams = written
    assert len(re.findall(r"^epsilon = 1  # hides one ", text, re.MULTILINE)) == len(streams)


LINES = b"10.0.0.1 /\n10.0.0.2 /about?from=mail\n10.0.0.3 /about\n10.0.0.4 /logo.png\n"


def test_readers_of_pages_come_from_one_line_of_nginx():
    pages = tomllib.loads(RECIPES["website"])["streams"]["pages"]
    (syslog,) = pages["syslog"]
    found = [re.match(syslog["pattern"], line.decode()) for line in LINES.splitlines()]
    assert [one["page"] for one in found] == ["/", "/about", "/about", "/logo.png"]
    assert {"/", "/about"} < set(pages["groups"])
    port = syslog["listen"].rpartition(":")[2]
    assert f"127.0.0.1:{port},nohostname,tag=nginx reader;" in RECIPES["website"]
    assert "log_format reader '$remote_addr $request_uri';" in RECIPES["website"]


def test_calls_of_a_day_are_known_within_a_few(tmp_path):
    run_command("init", "a.toml", "--recipe", "hotline", cwd=tmp_path)
    calls = load(tmp_path / "a.toml").streams["calls"]
    counting = calls.make_counting()
    plan = counting.statistics["running-count"].plan
    assert plan.absolute_margin(0.95) < 5
    assert calls.guarantee.over(365) == calls.guarantee.loss


def test_the_path_that_a_recipe_names_is_one_that_the_service_has():
    named = set(re.findall("POST (/v1/[^ .]+)", " ".join(RECIPES.values())))
    assert named == {"/v1/streams/NAME/updates"}
    assert {one.replace("NAME", "{name}") for one in named} <= set(openapi()["paths"])
