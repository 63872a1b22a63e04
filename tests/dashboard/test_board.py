"""The state that all pages share, and what becomes of it when the store is gone."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3

import pytest

from panprivacy.service.config.loading import load
from panprivacy.service.dashboard.board import Board
from panprivacy.service.outgoing import databases
from panprivacy.service.outgoing.records import StoreError
from tests.dashboard.rows import TOKENS, days, published


def test_the_board_says_that_the_store_is_gone_and_goes_on_when_it_is_back(tmp_path, store, file):
    published(store, days(2))
    config = load(file)
    store.close()
    board = Board(config, file)
    board.follow()
    assert board.trouble is None
    kept = shutil.move(tmp_path / "releases.sqlite", tmp_path / "away")
    board.follow()
    assert "database" in board.trouble
    assert board.looks["shop"].history.known.answers == 2
    shutil.move(kept, tmp_path / "releases.sqlite")
    board.follow()
    assert board.trouble is None
    board.close()


def test_a_locked_store_is_told_and_what_is_known_stays(tmp_path, store, file, monkeypatch):
    monkeypatch.setitem(databases._SQLITE_PATIENCE, "timeout", 0.05)
    published(store, days(2))
    board = Board(load(file), file)
    board.follow()
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "releases.sqlite")) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        board.follow()
    assert "locked" in board.trouble
    assert board.looks["shop"].history.known.answers == 2
    board.close()


def test_it_can_write_nothing(store, file):
    board = Board(load(file), file)
    with pytest.raises(StoreError, match="readonly"), board._reader._transaction() as connection:
        connection.exec_driver_sql("DELETE FROM panprivacy_answers")
    board.close()


def test_a_spoilt_configuration_changes_nothing(store, file):
    board = Board(load(file), file)
    board.follow()
    file.write_text("nonsense [")
    board.follow()
    assert board.trouble is None
    assert board.readers.streams(TOKENS["board"]) == ["shop", "calls"]
    board.close()


def test_answers_have_the_unit_of_their_question(store, file):
    published(store, days(1))
    board = Board(load(file), file)
    board.follow()
    look = board.looks["shop"]
    units = {one: look.unit("visits", one) for one in ("exactly", "quantile", "mean")}
    board.close()
    assert units == {
        "exactly": "users by how often they came",
        "quantile": "visits",
        "mean": "events per user",
    }
