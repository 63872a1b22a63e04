"""Web sites that browsers in tests visit."""

from __future__ import annotations

import functools
import http.server
import threading
from contextlib import contextmanager


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Log nothing."""


@contextmanager
def serving(handler):
    """The origin of a site, while a handler answers for it."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def site(folder):
    """The origin of a folder, while it is served."""
    return serving(functools.partial(_Quiet, directory=folder))
