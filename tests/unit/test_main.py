"""`python -m panprivacy` is the command, from a process that starts anew."""

from __future__ import annotations

import runpy
import sys

import panprivacy_launcher


def test_the_package_is_the_command(monkeypatch):
    called = []
    monkeypatch.setattr(panprivacy_launcher, "main", lambda: called.append(sys.argv[1:]))
    monkeypatch.setattr(sys, "argv", ["panprivacy", "--version"])
    runpy.run_module("panprivacy", run_name="__main__", alter_sys=False)
    assert called == [["--version"]]


def test_to_import_it_starts_nothing(monkeypatch):
    called = []
    monkeypatch.setattr(panprivacy_launcher, "main", lambda: called.append(0))
    runpy.run_module("panprivacy.__main__", run_name="imported")
    assert called == []
