"""What a leader asks its helper, over HTTP."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import threading

import httpx
import pytest

from panprivacy.devices.aggregator.peer import STRIPPED, Peer
from panprivacy.devices.aggregator.problems import PeerError
from tests.service.two_servers import task_of


@contextlib.contextmanager
def answering(body, status=200, encoding="identity"):
    """A helper that answers this, whatever is asked; its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PUT(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Type", STRIPPED)
            self.send_header("Content-Encoding", encoding)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:  # or it would turn on a closed socket for as long as the process lives
            server.shutdown()
            thread.join()


@pytest.mark.long
def test_a_helper_cannot_have_the_leader_take_in_very_much(monkeypatch):
    """Neither in little that is unpacked, nor plainly, nor in a problem that goes very deep."""
    task, packed = task_of(), gzip.compress(bytes(1 << 20))

    def answer(*given):
        with contextlib.ExitStack() as stack:
            peer = Peer(task, stack.enter_context(answering(*given)), "pp_x")
            stack.callback(peer.end)
            return peer.strip(bytes(16), b"")

    assert answer(packed, 200, "gzip") == packed
    monkeypatch.setattr("panprivacy.devices.aggregator.peer._MOST_ANSWER", 1_000)
    assert answer(bytes(1_000)) == bytes(1_000)
    with pytest.raises(PeerError, match="something else than was asked"):
        answer(bytes(1_001))
    monkeypatch.undo()
    deep = b'{"x":' * 100_000
    with pytest.raises(PeerError, match=r"refuses with 400$"):
        answer(deep, 400)
    with pytest.raises(PeerError, match=r"refuses with 400 because$"):
        answer(b'{"title": "no", "detail": "because"}', 400)


def test_an_answer_of_another_kind_is_none():
    task = task_of()
    peer = Peer(task, "http://helper", "pp_peer")

    def answered(request):
        assert request.headers["Authorization"] == "Bearer pp_peer"
        body = httpx.ByteStream(b"")
        return httpx.Response(200, headers={"Content-Type": "text/plain"}, stream=body)

    peer._client._transport = httpx.MockTransport(answered)
    with pytest.raises(PeerError, match="something else than was asked"):
        peer.verify(bytes(16), b"")
    peer.end()
