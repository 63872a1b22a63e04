"""The server of the dashboard says where it is, and whether anybody can enter."""

from __future__ import annotations

import pytest

from panprivacy.service.config.loading import load
from panprivacy.service.dashboard import server
from panprivacy.service.dashboard.server import serve


@pytest.fixture
def ran(monkeypatch):
    found = []
    monkeypatch.setattr(server, "_pages", lambda board, service: (board, service))

    class Server:
        def __init__(self, app, said):
            self.app, self.said = app, said

        def take_signals(self):
            pass

        def run(self, sockets):
            found.append((*self.app.app, self.said, sockets[0].getsockname()))
            if found[0][1] == "http://fails":
                raise RuntimeError

    monkeypatch.setattr(server, "_Server", Server)
    return found


def test_it_says_where_it_is_and_asks_the_service_of_the_configuration(ran, store, file):
    config = load(file)
    serve(config, file, "127.0.0.1:0", None)
    ((_, service, said, (host, port)),) = ran
    assert service == config.server.address.url("http")
    assert said == f"panprivacy: the dashboard is at http://{host}:{port}\n"


def test_where_nobody_may_read_that_is_said(ran, store, file):
    text = file.read_text().replace('may = ["read"]', 'may = ["ingest"]')
    file.write_text(text)
    serve(load(file), file, f"unix:{file.parent}/board.sock", "http://elsewhere")
    ((_, service, said, name),) = ran
    assert (service, name) == ("http://elsewhere", f"{file.parent}/board.sock")
    assert "no token may read, so nobody can enter" in said


def test_the_store_is_closed_whatever_happens(ran, store, file, monkeypatch):
    closed = []
    close = server.Board.close
    monkeypatch.setattr(server.Board, "close", lambda self: (closed.append(0), close(self)))
    with pytest.raises(RuntimeError):
        serve(load(file), file, "127.0.0.1:0", "http://fails")
    assert closed == [0]
