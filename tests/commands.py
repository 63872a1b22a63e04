"""Run the command line within the test process."""

from __future__ import annotations

import contextlib
import contextvars
import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from panprivacy.cli import main


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str


def run_command(*arguments, cwd=None):
    """Call `panprivacy` with these arguments."""
    stdout, stderr, before = io.StringIO(), io.StringIO(), Path.cwd()
    words = ["panprivacy", *map(str, arguments)]
    try:
        os.chdir(cwd or before)
        with (
            mock.patch.object(sys, "argv", words),
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
        ):
            try:
                contextvars.Context().run(main)  # as it is shipped: it refuses what is too small
            except SystemExit as stop:
                code = stop.code or 0
    finally:
        os.chdir(before)
    return Result(code, stdout.getvalue(), stderr.getvalue())
