"""No nonce or share of a tick is left in a device: it would tell which row was taken.

Whoever saw the storage before and after a tick, and finds the nonces of the tick, learns whether
there was an event. A device observes 20 ticks and reports, tells each secret as it draws it, and is
then held still. Its memory, registers and files are searched for every 8-byte piece of every
secret, of which one occurs by chance in 3e8 random bytes with probability 4e-8. The same program
that keeps its last secrets shows that the search finds them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.task import DeviceHistogram, Task
from panprivacy.devices.federated.two_servers import TwoServers
from panprivacy.testing import SeededCoins
from panprivacy_launcher import hardened

from .memory import (
    Needles,
    needs_administrator,
    pieces,
    search_files,
    search_process,
    search_registers,
)

TICKS, MOST, SECRET_BYTES = 20, 1, 32


def told_by(fresh, again):
    """Bytes that are told, of so many for a fresh value and for one that is re-randomised.

    At birth, at each tick for what is fresh and for the row, and for a report likewise.
    """
    return 4 * fresh + TICKS * (2 * fresh + 4 * again) + 2 * fresh + 2 * again


OF_ONE = told_by(32, 32)
OF_TWO = told_by(64 + 48 + 4 * 32, 4 * 32)
"""A fresh value has the seeds of its shares, the leader's share, and four nonces."""


PROGRAM = """
import os, sys
from pathlib import Path
from panprivacy.privacy.coins import SystemCoins
from panprivacy.devices.federated import shares
from panprivacy.devices.federated.device import Device
from panprivacy.devices.federated.storage import FileStorage
from panprivacy.devices.federated.task import Task
from panprivacy.ground.hygiene.protection import protect
from panprivacy.devices.vdaf import Prio3Count

class Telling(SystemCoins):
    kept = None
    def secret(self, nbytes):
        drawn = super().secret(nbytes)
        os.write(1, drawn)
        self.kept = drawn if KEEPS else None
        return drawn

class TellingShares(Prio3Count):
    def shard(self, measurements, random):
        leader, helper = super().shard(measurements, random)
        os.write(1, leader)
        return leader, helper

shares.Prio3Count = TellingShares
protect()
folder, signer = Path(sys.argv[1]), bytes.fromhex(sys.argv[2])
task = Task.read((folder / "task.json").read_bytes(), signer)
storage = FileStorage(folder / "state")
coins = Telling()
device = Device(task, storage, coins=coins)
for tick in range(task.horizon):
    device.observe(tick % 3 == 0)
device.report()
os.write(1, b"end")
sys.stdin.read()
"""


ONE, OTHER = (bytes(DecryptionKey.generate(SeededCoins(seed)).public) for seed in (1, 2))
TWO = TwoServers(leader=ONE.hex(), helper=OTHER.hex(), collusion="one-server", batch=1)


@pytest.mark.long
@needs_administrator
@pytest.mark.parametrize(
    ("key", "size", "keeps"),
    [
        pytest.param(ONE, OF_ONE, False, id="one server"),
        pytest.param(ONE, OF_ONE, True, id="one server, kept"),
        pytest.param(TWO, OF_TWO, False, id="two servers"),
        pytest.param(TWO, OF_TWO, True, id="two servers, kept"),
    ],
)
def test_nonces_and_shares_are_gone_once_a_tick_is_over(key, size, keeps, tmp_path):
    promise = Promise(epsilon=Fraction(1))
    kind = DeviceHistogram.planned(promise, most=MOST)
    task = Task.new(kind, promise, horizon=TICKS, key=key)
    signing = Ed25519PrivateKey.generate()
    (tmp_path / "task.json").write_bytes(task.signed(signing))
    signer = signing.public_key().public_bytes_raw().hex()
    with subprocess.Popen(
        [sys.executable, "-c", f"KEEPS = {keeps}\n{PROGRAM}", str(tmp_path), signer],
        env=hardened(dict(os.environ)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        told = process.stdout.read(size + len(b"end"))
        assert told.endswith(b"end")
        secrets = np.frombuffer(told[:size], np.uint8).reshape(-1, SECRET_BYTES)
        needles = Needles.of(pieces([row.tobytes() for row in secrets]))
        found = search_process(process.pid, needles) + search_registers(process.pid, needles)
        assert search_files(tmp_path, needles) == 0
        process.stdin.close()
    assert process.returncode == 0
    assert (found > 0) is keeps
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"task.json", "state", "state.lock"}
