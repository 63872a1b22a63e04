"""Folders below which something outlives a process, in the first place that can be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import panprivacy
from panprivacy.ground.caching import sources, user_folders, writable_folder

PLACES = "CACHE_DIRECTORY", "XDG_CACHE_HOME", "HOME"


def test_systemd_comes_before_the_desktop_and_the_home_directory(tmp_path, monkeypatch):
    for name in PLACES:
        tmp_path.joinpath(name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    found = [folder.relative_to(tmp_path) for folder in user_folders()]
    assert found == [
        Path("CACHE_DIRECTORY"),
        Path("XDG_CACHE_HOME/panprivacy"),
        Path("HOME/.cache/panprivacy"),
    ]


@pytest.mark.parametrize("given", ["relative", "/is/not/there"])
def test_what_is_no_folder_is_none(given, monkeypatch):
    for name in PLACES:
        monkeypatch.setenv(name, given)
    assert list(user_folders()) == []


def test_the_first_that_can_be_written_has_a_folder_of_the_version_and_the_digest(tmp_path):
    tmp_path.joinpath("file").write_text("")
    bases = tmp_path / "file", tmp_path / "first", tmp_path / "second"
    found = writable_folder(bases, "plans", "12ab")
    assert found == tmp_path / "first" / f"plans-{panprivacy.__version__}-12ab"
    assert found.is_dir()
    assert not bases[2].exists()
    assert writable_folder(bases[:1], "plans", "12ab") is None


def test_folders_of_the_same_kind_are_removed_a_day_after_their_last_use(tmp_path):
    old, recent, other = (tmp_path / name for name in ("plans-0", "plans-1", "kernels-0"))
    for folder in (old, recent, other):
        folder.mkdir()
        folder.joinpath("one").write_text("")
    for folder in (old, other):
        os.utime(folder, (0, 0))
    found = writable_folder([tmp_path], "plans", "2")
    assert set(tmp_path.iterdir()) == {found, recent, other}


def test_sources_come_in_order(tmp_path):
    for name in ("b/one.py", "a/two.py", "a/one.py", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    assert list(sources(tmp_path)) == [b"a/one.py", b"a/two.py", b"b/one.py"]
