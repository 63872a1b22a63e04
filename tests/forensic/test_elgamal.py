"""No nonce is left in memory once a ciphertext is made: it would open that ciphertext.

The program re-randomises 100 ciphertexts 20 times, tells each nonce as it draws it, and is then
held still. All its memory and registers are searched for every 8-byte piece of every nonce, of
which one occurs by chance in 3e8 random bytes with probability 9e-7. The same program that keeps
its last nonces shows that the search finds them.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.testing import SeededCoins
from panprivacy_launcher import hardened

from .memory import Needles, needs_administrator, pieces, search_process, search_registers

ROWS, TIMES, NONCE_BYTES = 100, 20, 32
PROGRAM = """
import os, sys
from panprivacy.privacy.coins import SystemCoins
from panprivacy.devices.federated.elgamal import EncryptionKey
from panprivacy.ground.hygiene.protection import protect
from panprivacy.ground.hygiene.wiping import wipe_traces

class Telling(SystemCoins):
    kept = None
    def secret(self, nbytes):
        drawn = super().secret(nbytes)
        os.write(1, drawn)
        self.kept = drawn if KEEPS else None
        return drawn

def work():
    key = EncryptionKey(bytes.fromhex(sys.argv[1]))
    row = key.encrypt([0, 1] * (ROWS // 2), coins)
    for _ in range(TIMES):
        row = key.rerandomise(row, coins)
    wipe_traces()
    return row

protect()
coins = Telling()
row = work()
os.write(1, b"end")
sys.stdin.read()
"""


@pytest.mark.long
@needs_administrator
@pytest.mark.parametrize("keeps", [False, True])
def test_nonces_are_gone_once_a_ciphertext_is_made(keeps):
    key = bytes(DecryptionKey.generate(SeededCoins(1)).public).hex()
    program = f"KEEPS, ROWS, TIMES = {keeps}, {ROWS}, {TIMES}\n{PROGRAM}"
    drawn = (TIMES + 1) * ROWS * NONCE_BYTES
    with subprocess.Popen(
        [sys.executable, "-c", program, key],
        env=hardened(dict(os.environ)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        told = process.stdout.read(drawn + len(b"end"))
        assert told.endswith(b"end")
        nonces = np.frombuffer(told[:drawn], np.uint8).reshape(-1, NONCE_BYTES)
        needles = Needles.of(pieces([row.tobytes() for row in nonces]))
        found = search_process(process.pid, needles) + search_registers(process.pid, needles)
        process.stdin.close()
    assert process.returncode == 0
    assert (found > 0) is keeps
