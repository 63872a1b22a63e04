"""Options that several commands have."""

from __future__ import annotations

import sys
from contextlib import ExitStack

import pytest

from panprivacy.cli.options import check_output, check_picture, write_new, zones_like
from panprivacy.errors import PlanError


def test_a_picture_is_a_png_that_can_be_written(tmp_path):
    check_picture(None)
    picture = tmp_path / "seized.PNG"
    check_picture(picture)
    assert not picture.exists()  # an error later leaves no empty file
    picture.write_bytes(b"before")
    check_picture(picture)
    assert picture.read_bytes() == b"before"
    with pytest.raises(PlanError, match="--plot writes PNG: name a file that ends in"):
        check_picture(tmp_path / "seized.pdf")
    (tmp_path / "file").touch()
    with pytest.raises(PlanError, match=r"--plot cannot write .*: there is no folder .*; make it"):
        check_picture(tmp_path / "file" / "seized.png")
    with pytest.raises(PlanError, match="there is no folder"):
        check_picture(tmp_path / "new" / "seized.png")
    assert not (tmp_path / "new").exists()


def test_without_matplotlib_the_cure_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("panprivacy.statistics.plots.find_spec", lambda _name: None)
    with pytest.raises(
        PlanError, match=r"--plot needs Matplotlib: pip install '\.\[plot\]' in a clone"
    ):
        check_picture(tmp_path / "seized.png")


def test_answers_are_not_made_for_a_closed_output(monkeypatch):
    check_output()
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(PlanError, match="standard output is closed: the answers would be lost"):
        check_output()


def test_a_new_file_is_its_owners_alone_and_never_an_old_one(tmp_path):
    path = tmp_path / "secret"
    write_new(path, b"one")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"one", 0o600)
    with ExitStack() as undo, pytest.raises(PlanError, match="is there already: name another"):
        write_new(path, b"two", undo=undo)
    assert path.read_bytes() == b"one"
    with pytest.raises(PlanError, match=r"cannot write .*: there is no folder"):
        write_new(tmp_path / "missing" / "secret", b"one")


def test_a_file_of_a_command_that_fails_goes(tmp_path):
    path = tmp_path / "task"
    with ExitStack() as undo:
        write_new(path, b"one", mode=0o644, undo=undo)
        assert path.stat().st_mode & 0o777 == 0o644
    assert not path.exists()


def test_zones_are_completed_in_order():
    found = zones_like("Europe/B")
    assert "Europe/Berlin" in found
    assert found == sorted(found)
    assert all(name.startswith("Europe/B") for name in found)
    assert zones_like("Nowhere/") == []
