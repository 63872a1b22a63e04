"""The pages that people read, and the commands that they are shown."""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from unittest import mock

from tests.commands import run_command

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md")),
    *(ROOT / folder / "README.md" for folder in ("examples", "reproductions")),
    *sorted(ROOT.glob("docs/**/*.md")),
]
NUMBER = re.compile(r"[\d,.]*\d")
NOT_RUN = re.compile(r"<!-- not run: (.+) -->\s*\Z")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name(page):
    """How a page is named."""
    return str(page.relative_to(ROOT))


def blocks(page):
    """Each block of code: its language, its text, and why it is not run, if it is not."""
    text = page.read_text()
    for found in _FENCE.finditer(text):
        reason = NOT_RUN.search(text[: found.start()])
        yield found[1], found[2], reason and reason[1]


def commands(block):
    """The commands of a console, each with the lines that it is said to print."""
    found = []
    for line in block.splitlines():
        if found and unfinished(found[-1][0]):
            found[-1][0] += f"\n{line}"
        elif line.startswith("$ "):
            found.append([line.removeprefix("$ "), []])
        else:
            found[-1][1].append(line)
    return found


def unfinished(command):
    """Whether a shell would wait for another line."""
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return True
    return command.endswith("\\")


def shape(line):
    """A line with its numbers and its spacing taken out."""
    return " ".join(NUMBER.sub("#", line).split())


def typed(command, folder):
    """What a command of a page prints, in a folder that knows `examples`.

    What feeds a pipe for ever is ended. What takes minutes is not run: a target of `make` and a
    module have to exist.
    """
    *feeding, words = (
        shlex.split(part, comments=True) for part in command.replace("\\\n", " ").split(" | ")
    )
    program, *arguments = words
    if words == [".", ".venv/bin/activate"]:
        return ""
    if program == "make":
        assert f"\n{arguments[0]}: " in (ROOT / "Makefile").read_text()
        return ""
    if words[:2] == ["python", "-m"]:
        module = ROOT.joinpath(*words[2].split("."))
        assert module.with_suffix(".py").exists() or (module / "__main__.py").exists()
        return ""
    if program == "python":
        here = [sys.executable, *arguments]
        run = subprocess.run(here, cwd=folder, check=True, capture_output=True, text=True)
        return run.stdout
    assert program == "panprivacy", f"not a command of the package: {command}"
    with contextlib.ExitStack() as last:
        for feeder in feeding:
            feed = last.enter_context(subprocess.Popen(feeder, cwd=folder, stdout=subprocess.PIPE))
            if feeder[0] != "cat":  # which ends by itself
                timer = threading.Timer(3, feed.terminate)
                last.callback(timer.cancel)
                timer.start()
            last.enter_context(mock.patch.object(sys, "stdin", feed.stdout))
        result = run_command(*arguments, cwd=folder)
    assert result.code == 0, result.stderr
    return result.stdout
