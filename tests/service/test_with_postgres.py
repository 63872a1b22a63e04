"""The whole daemon with a real server of PostgreSQL, which goes away and comes back."""

from __future__ import annotations

from tests.service.running import VISITS, Service, wait_until


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
