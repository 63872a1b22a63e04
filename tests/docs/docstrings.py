"""Docstrings as pages show them: examples are code, and what is promised stands out."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_PROMISE = re.compile(r"^(Guarantee|Accuracy|Reference): ", re.MULTILINE)


class Shown(Extension):
    """Fences examples, and sets the words before a promise in bold."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite a docstring before it is parsed."""
        if obj.docstring:
            fenced = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
            obj.docstring.value = _PROMISE.sub(r"**\1:** ", fenced)
