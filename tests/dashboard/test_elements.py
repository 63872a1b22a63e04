"""The few elements of which pages are made."""

from __future__ import annotations

from panprivacy.service.dashboard.elements import Check, Choice, SecretField, button, tag


def test_an_element_has_its_text_style_and_attributes(page):
    made = tag("a", "to visits", "brand small", href="/visits", aria_label="x", for_="y")
    assert (made.tag, made.text, made.styles) == ("a", "to visits", {"brand", "small"})
    assert made.props == {"href": "/visits", "aria-label": "x", "for": "y"}
    assert tag("div").text == ""


def test_a_button_does_what_it_is_for(page):
    pressed = []
    made = button("Go", lambda: pressed.append(0))
    made.emit("click")
    assert pressed == [0]
    assert made.props == {"type": "button"}


def test_a_choice_is_shown_where_there_is_one_and_keeps_what_was_chosen(page):
    changes = []
    choice = Choice("Group", lambda: changes.append(choice.chosen), ["a", "b"])
    assert choice.chosen == "a"
    assert "hidden" not in choice.around.styles
    (select,) = choice.around.all("select")
    select.emit("change", "b")
    assert changes == ["b"]
    choice.offer(["b", "c"])
    assert choice.chosen == "b"
    assert [one.props.get("selected") for one in select.all("option")] == [True, None]
    choice.offer(["c"])
    assert (choice.chosen, "hidden" in choice.around.styles) == ("c", True)
    choice.offer([])
    assert choice.chosen == ""
    assert changes == ["b"]


def test_what_was_not_offered_cannot_be_chosen(page):
    choice = Choice("Group", lambda: 1 / 0, ["a", "b"])
    (select,) = choice.around.all("select")
    select.emit("change", "x")
    assert choice.chosen == "a"


def test_a_field_is_a_secret_that_is_forgotten(page):
    field = SecretField("Token")
    (entered,) = page.root.all("input")
    assert entered.props == {"type": "password", "autocomplete": "off"}
    entered.emit("change", "  pp_word\n")
    assert field.value == "pp_word"
    field.empty()
    assert field.value == ""
    assert page.scripts == ["getHtmlElement(7).value = ''"]


def test_a_check_is_wanted_until_it_is_not(page):
    check = Check("visits")
    (box,) = page.root.all("input")
    assert check.wanted
    box.emit("change", False)
    assert not check.wanted
