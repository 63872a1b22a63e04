"""Three devices in three processes count their events; what each keeps, it cannot open itself."""

import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from panprivacy.devices import federated
from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.privacy.coins import SystemCoins

EVENTS = {"phone": [True, False, True], "watch": [False, False, False], "car": [False, True, False]}


def live(folder: Path, name: str, task: bytes, signer: bytes) -> bytes:
    """A device: it reads the task, observes a tick after another, and reports."""
    with federated.FileStorage(folder / name) as storage:
        device = federated.Device(federated.Task.read(task, signer), storage)
        for event in EVENTS[name]:
            device.observe(event)
        return device.report()


if __name__ == "__main__":
    promise = federated.Promise(epsilon=Fraction(sys.argv[1] if sys.argv[1:] else "4"))
    key, signer = DecryptionKey.generate(SystemCoins()), Ed25519PrivateKey.generate()
    kind = federated.DeviceHistogram.planned(promise, most=2)
    task = federated.Task.new(kind, promise, horizon=3, key=bytes(key.public))
    rest = task.signed(signer), signer.public_key().public_bytes_raw()
    collector = federated.Collector(task, key)
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(len(EVENTS)) as processes:
        for work in [processes.submit(live, Path(folder), name, *rest) for name in EVENTS]:
            collector.add(work.result())
    for name, answer in collector.release().items():
        print(f"{name}: {answer}")
