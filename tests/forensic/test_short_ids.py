"""Nothing is left of ids so short that they fit into the last word of a block.

glibc does not overwrite that word when the block is freed. Bodies of all lengths end with an id
here, so that some of what is made of them fills its block to the end.
"""

from __future__ import annotations

import sys
import time

import pytest

from panprivacy import SystemCoins
from tests.service.running import HARDENED, PLAIN, VISITS, Service

from .memory import count_in_process, needs_administrator

pytestmark = needs_administrator

IDLE_SECONDS = 2.0
LETTERS = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefgh"
WITHOUT_SPARE_WORDS = """
from panprivacy.ground.hygiene import protection
from panprivacy_launcher import main

protection.leave_spare_words = lambda: None
main()
"""
"""Hardened but for the last words of blocks."""


def drawn_mark():
    """Six letters: in the cells, which are random, once in 2**30 for each MiB."""
    return bytes(LETTERS[byte % 32] for byte in SystemCoins().key(6)).decode()


def bodies(mark):
    """Texts that end with an id, or shortly after, and some that are refused for how they end."""
    for length in range(64):
        user = f"{'x' * (length % 16)}{mark}{length % 10}"
        rows = [f"{mark}{row % 10}" for row in range(length)]
        lines = "".join(f"{row}\n" for row in rows)
        objects = [f'{{"user":"{row}"}}' for row in [*rows, user]]
        yield from (("text/csv", f"user\n{lines}{end}") for end in (user, f'"{user}', f"{user},"))
        fields = f"user\n{lines}{'x,' * (length % 32)}{user}"
        yield from (("text/csv", f"{fields}{end}") for end in (",", ",x"))
        yield from (("application/x-ndjson", "\n".join(objects)[:stop]) for stop in (None, -2))
        yield from (("application/json", f"[{','.join(objects)}]"[:stop]) for stop in (None, -3))


def left_in(command, folder):
    """How often a service has short ids in memory once it is idle, and what it answered."""
    mark = drawn_mark()
    answers = set()
    streams = VISITS.replace('"integers"', '"text"').replace('"1d"', '"3650d"')
    with Service(folder, streams, command=command) as service:
        service.start()
        for kind, body in bodies(mark):
            answer = service.client.post(
                f"{service.url()}/v1/streams/visits/updates",
                content=body.encode(),
                headers={"Authorization": "Bearer pp_ingest", "Content-Type": kind},
            )
            answers.add(answer.status_code)
        time.sleep(IDLE_SECONDS)
        return count_in_process(service.pid, mark.encode()), answers


@pytest.mark.long
def test_nothing_is_left_of_short_ids(tmp_path):
    assert left_in(HARDENED, tmp_path) == (0, {202, 400})


@pytest.mark.slow
@pytest.mark.parametrize("command", [PLAIN, [sys.executable, "-c", WITHOUT_SPARE_WORDS]])
def test_without_hardening_or_spare_words_some_are_found(command, tmp_path):
    """About every second service shows some: twenty show none once in a million runs."""
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        found, answers = left_in(command, folder)
        assert answers == {202, 400}
        if found:
            return
    pytest.fail("the search finds no ids where they were not wiped")
