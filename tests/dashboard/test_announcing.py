"""Announcing from the dashboard: asked twice, with a token that it forgets."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from panprivacy.errors import InputError
from panprivacy.service.client import UnsureError
from panprivacy.service.dashboard import announcing as module
from panprivacy.service.dashboard.announcing import announcing

TOLD = {"number": 1, "window_began": "2026-11-02", "left": 0}


def look(intrusions):
    return SimpleNamespace(
        promise=SimpleNamespace(guarantee=SimpleNamespace(intrusions=intrusions))
    )


@pytest.fixture
def asked(monkeypatch):
    """What the service is asked; an error is raised instead of an answer."""
    found = SimpleNamespace(calls=[], answer=TOLD)

    async def io_bound(_call, *given):
        found.calls.append(given)
        if isinstance(found.answer, Exception):
            raise found.answer
        return found.answer

    monkeypatch.setattr(module, "run", SimpleNamespace(io_bound=io_bound))
    return found


@pytest.fixture
def dialog(page, asked):
    announcing({"shop": look(1), "calls": look(0)}, "http://service")
    return Dialog(page)


class Dialog:
    """What somebody sees and presses."""

    def __init__(self, page):
        self.page = page
        self.first, self.second = page.root.all("div", "dialog-step")

    def press(self, text):
        (found,) = [one for one in self.page.root.all("button") if one.text == text]
        pressed = found.emit("click")
        if asyncio.iscoroutine(pressed):
            asyncio.run(pressed)

    def enter(self, token):
        (field,) = self.page.root.all("input", "field")
        field.emit("change", token)

    @property
    def said(self):
        (said,) = self.page.root.all("div", "said")
        return said.said


def test_without_a_look_that_is_planned_for_there_is_nothing_to_press(page):
    announcing({"calls": look(0)}, "http://service")
    assert page.root.children == []


def test_it_is_announced_after_a_second_question_and_the_token_is_forgotten(dialog, asked):
    dialog.press("The memory was seen…")
    dialog.enter("pp_word")
    dialog.press("Go on")
    assert "hidden" in dialog.first.styles
    assert "hidden" not in dialog.second.styles
    assert asked.calls == []
    dialog.press("Yes, announce it")
    ((service, stream, token, key),) = asked.calls
    assert (service, stream, token) == ("http://service", "shop", "pp_word")
    assert dialog.said == ["shop: announced, number 1 of the window that began 2026-11-02; 0 left."]
    dialog.press("Go on")
    assert dialog.said == ["Give a token that may announce."]
    dialog.enter("pp_word")
    dialog.press("Go on")
    dialog.press("Yes, announce it")
    assert asked.calls[1][3] != key


def test_streams_for_which_no_look_is_planned_are_named(dialog):
    assert any("No look is planned for in calls" in text for text in dialog.page.root.said)


def test_where_nobody_knows_the_same_name_is_sent_again(dialog, asked):
    asked.answer = UnsureError("it does not answer")
    dialog.enter("pp_word")
    dialog.press("Go on")
    dialog.press("Yes, announce it")
    assert "it is announced once, however often you ask" in dialog.said[0]
    asked.answer = TOLD
    dialog.press("Go on")
    dialog.press("Yes, announce it")
    assert asked.calls[0] == asked.calls[1]


def test_a_refusal_is_shown(dialog, asked):
    asked.answer = InputError("none is left")
    dialog.enter("pp_word")
    dialog.press("Go on")
    dialog.press("Yes, announce it")
    assert dialog.said == ["none is left"]


def test_a_stream_has_to_be_chosen(dialog):
    (box,) = [one for one in dialog.page.root.all("input") if one.props["type"] == "checkbox"]
    box.emit("change", False)
    dialog.press("Go on")
    assert dialog.said == ["Choose at least one stream."]


def test_who_cancels_leaves_no_token(dialog, asked):
    dialog.enter("pp_word")
    dialog.press("Cancel")
    dialog.press("Go on")
    assert dialog.said == ["Give a token that may announce."]
    assert asked.calls == []
