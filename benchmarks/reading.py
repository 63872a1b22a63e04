"""What an id of an HTTP body crosses on its way to the cells: files, calls between files, readings.

    python -m benchmarks.reading

A body of one id goes through the application of a service, in memory. A call from one file of the
package to another one counts once; so does each file that runs. The second table is for a body
that several statistics count: each reads the ids once more, or they share one reading.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import FrameType

import httpx

import panprivacy
from panprivacy.service.config.loading import load
from panprivacy.service.config.tokens import hash_of
from panprivacy.service.engine import LocalEngine
from panprivacy.service.web.app import application

_PACKAGE = str(Path(panprivacy.__file__).parent) + "/"
_TOKEN = "pp_reading"
_STATISTICS = {
    "distinct": 'expected = "1000:1e5"',
    "cropped-sum": 'tau = 10\nexpected = "1000:1e5"',
    "moment": "order = 2\nbound = 10",
}
_BODIES = {
    "int64": ("application/octet-stream", bytes([1] + [0] * 7)),
    "ndjson": ("application/x-ndjson", b'{"user": 1}\n'),
}


class Trace:
    """The calls of one pass: each with the files of the caller and of the function."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.crossings: Counter[tuple[str, str, str]] = Counter()
        self.calls: Counter[str] = Counter()

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Record a call, as `sys.setprofile` reports it."""
        if event != "call" or not frame.f_code.co_filename.startswith(_PACKAGE):
            return
        own = frame.f_code.co_filename.removeprefix(_PACKAGE)
        self.files.add(own)
        self.calls[frame.f_code.co_qualname] += 1
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(_PACKAGE):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != frame.f_code.co_filename:
            origin = caller.f_code.co_filename.removeprefix(_PACKAGE)
            self.crossings[origin, own, frame.f_code.co_qualname] += 1

    async def begin(self, body: bytes) -> AsyncIterator[bytes]:
        """Yield the body, and record the calls of this thread from then on."""
        sys.setprofile(self.note)
        yield body


def traced(names: Sequence[str], kind: str) -> Trace:
    """Return the calls for a body of one id that some statistics count."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "service.toml"
        path.write_text(_configuration(names))
        engine = LocalEngine(load(path))
        try:
            return asyncio.run(_traced(engine, *_BODIES[kind]))
        finally:
            engine.store.close()


def _configuration(names: Sequence[str]) -> str:
    tables = "".join(
        f'[[streams.visits.stat]]\nname = "{name}"\n{_STATISTICS[name]}\n' for name in names
    )
    return (
        "[server]\n"
        f'[[tokens]]\nname = "reading"\nmay = ["ingest"]\nsha256 = "{hash_of(_TOKEN)}"\n'
        f'[streams.visits]\nepsilon = {2 * len(names)}\nwindow = "300d"\nids = "integers"\n{tables}'
    )


async def _traced(engine: LocalEngine, media_type: str, body: bytes) -> Trace:
    headers = {"Authorization": f"Bearer {_TOKEN}", "Content-Type": media_type}
    transport = httpx.ASGITransport(application(engine))
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
        for trace in (Trace(), Trace()):  # the first one imports and compiles
            answer = await client.post(
                "/v1/streams/visits/updates", content=trace.begin(body), headers=headers
            )
            sys.setprofile(None)
            answer.raise_for_status()
    return trace


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", action="store_true", help="print each call between files")
    arguments = parser.parse_args()
    for kind in _BODIES:
        for several in range(1, len(_STATISTICS) + 1):
            trace = traced(list(_STATISTICS)[:several], kind)
            print(
                f"{kind}, {several} statistics: {len(trace.files)} files, "
                f"{trace.crossings.total()} calls between files, "
                f"{trace.calls['SharedColumn.ids']} readings of the ids"
            )
            if arguments.calls:
                for (origin, own, name), times in trace.crossings.items():
                    print(f"  {times:3} {origin} -> {own}: {name}")


if __name__ == "__main__":
    main()
