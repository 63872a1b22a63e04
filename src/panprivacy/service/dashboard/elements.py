"""Elements of the pages: plain HTML, which works with keyboards, phones and screen readers.

Texts are set as texts, so nothing in them is ever read as HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

PageElement = Any
"""An element of NiceGUI."""


def tag(name: str, text: str = "", style: str = "", **attributes: str) -> PageElement:
    """Return an element with a text.

    Args:
        name: name of the tag.
        text: its text.
        style: its classes in the style sheet.
        attributes: attributes, with _ for -; a last _ is removed, as in `for_`.
    """
    made = TextElement(tag=name, text=text) if text else ui.element(name)
    for key, value in attributes.items():
        made.props[key.rstrip("_").replace("_", "-")] = value
    return made.classes(style)


def at(path: str) -> str:
    """Return the URL path for the browser, including the path prefix of a proxy."""
    request = ui.context.client.request
    return (request.scope["root_path"] if request else "") + path


def link(text: str, path: str, style: str = "") -> PageElement:
    """Return a link to another page of the dashboard."""
    return tag("a", text, style, href=at(path))


def button(text: str, pressed: Callable[..., Any], style: str = "plain") -> PageElement:
    """Return a button."""
    return tag("button", text, style, type="button").on("click", pressed)


class Choice:
    """Selection of one of several labels.

    Args:
        label: description of the selection.
        changed: called when another label is selected.
        options: the labels; `offer` replaces them.
    """

    def __init__(
        self, label: str, changed: Callable[[], None], options: Sequence[str] = ()
    ) -> None:
        self.chosen, self._options, self._changed = "", [""], changed
        self.around = tag("label", style="choice hidden")
        with self.around:
            tag("span", label)
            self._select = tag("select", aria_label=label)
        self._select.on("change", self._choose, js_handler="(e) => emit(e.target.value)")
        if options:
            self.offer(options)

    def offer(self, options: Sequence[str]) -> None:
        """Set the labels, and keep the selection if possible; a single label is hidden."""
        if list(options) == self._options:
            return
        self._options = list(options)
        if self.chosen not in self._options:
            self.chosen = self._options[0] if self._options else ""
        self._select.clear()
        with self._select:
            for option in self._options:
                made = tag("option", option, value=option)
                if option == self.chosen:
                    made.props["selected"] = True
        self.around.classes(**{"remove" if len(self._options) > 1 else "add": "hidden"})

    def _choose(self, event: Any) -> None:
        if event.args in self._options:
            self.chosen = event.args
            self._changed()


class SecretField:
    """Field for a secret, which the browser does not store.

    Args:
        label: description of the secret.
    """

    def __init__(self, label: str) -> None:
        self.value = ""
        with tag("label"):
            tag("span", label)
            self._input = tag("input", style="field", type="password", autocomplete="off")
        self._input.on("change", self._take, js_handler="(e) => emit(e.target.value)")

    def empty(self) -> None:
        """Forget the secret."""
        self.value = ""
        ui.run_javascript(f"getHtmlElement({self._input.id}).value = ''")

    def _take(self, event: Any) -> None:
        self.value = str(event.args).strip()


class Check:
    """Check box.

    Args:
        label: description of the box.
    """

    def __init__(self, label: str) -> None:
        self.wanted = True
        with tag("label", style="check"):
            box = tag("input", type="checkbox", checked="checked")
            tag("span", label)
        box.on("change", self._take, js_handler="(e) => emit(e.target.checked)")

    def _take(self, event: Any) -> None:
        self.wanted = bool(event.args)
