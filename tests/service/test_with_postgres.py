"""The whole daemon with a real server of PostgreSQL, which goes away and comes back."""

from __future__ import annotations

import contextlib

import pytest

from panprivacy.service.config.loading import load
from panprivacy.service.dashboard.board import Board
from panprivacy.service.outgoing.records import StoreError
from tests.service.filled import fill
from tests.service.running import VISITS, Service, wait_until


@pytest.mark.long
def test_releases_go_to_a_server_and_wait_for_it_to_come_back(tmp_path, postgres):
    url = postgres.url()
    streams = f'[releases]\nstore = "{url}"\n' + VISITS.replace(
        "epsilon = 1", "epsilon = 1\nreleases = 4"
    )
    with Service(tmp_path, streams) as service:
        service.start()
        assert service.send(range(3_000)).status_code == 202
        assert service.release().status_code == 201
        (answer,) = service.releases()
        assert 1_000 < answer["value"] < 6_000
        postgres.stop("immediate")
        try:
            assert service.release().status_code == 503
            assert service.send(range(5)).status_code == 202
            wait_until(lambda: "release store" in service.health()["troubles"])
        finally:
            postgres.start()
        wait_until(lambda: service.status() == "ok")
        assert service.release().status_code == 201
        assert [row["number"] for row in service.releases()] == [1, 2]
    assert not list(tmp_path.glob("*.sqlite*"))


@pytest.mark.long
def test_the_dashboard_reads_a_server_that_goes_away_and_comes_back(tmp_path, postgres):
    file = tmp_path / "panprivacy.toml"
    file.write_text(f'[releases]\nstore = "{postgres.url()}"\n{VISITS}')
    fill(file, 3)
    with contextlib.closing(Board(load(file), file)) as board:
        board.follow()
        (look,) = board.looks.values()
        assert (look.history.known.answers, look.year.windows) == (3, 4)
        with pytest.raises(StoreError, match="read-only"), board._reader._transaction() as one:
            one.exec_driver_sql("DELETE FROM panprivacy_answers")
        postgres.stop("immediate")
        try:
            board.follow()
            assert board.trouble is not None
            assert look.history.known.answers == 3
        finally:
            postgres.start()
        board.follow()
        assert board.trouble is None
