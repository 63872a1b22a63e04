"""What somebody sees who reads two devices after every tick: one had an event, the other none.

python -m reproductions.devices_seen
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.device import Device
from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.messages import DeviceState
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.task import Task
from panprivacy.privacy.coins import SecretCoins
from reproductions import COINS, FOLDER

TICKS, EVENT = 16, 6


class Seen:
    """A storage that somebody reads after every write."""

    def __init__(self) -> None:
        self.looks: list[bytes] = []

    def read(self) -> bytes | None:
        """The state that was written last."""
        return self.looks[-1] if self.looks else None

    def write(self, state: bytes) -> None:
        """Keep it beside all others."""
        self.looks.append(state)


def looks(event: int | None, key: DecryptionKey, coins: SecretCoins) -> list[bytes]:
    """All states of a device with an event at a tick, or without any."""
    promise, storage = Promise(epsilon=Fraction(1)), Seen()
    kind = CountNonZero.planned(promise)
    task = Task.new(kind, promise, horizon=TICKS, key=bytes(key.public), coins=coins)
    device = Device(task, storage, coins=coins)
    for tick in range(1, TICKS + 1):
        device.observe(tick == event)
    return storage.looks


def ciphertexts(states: list[bytes]) -> NDArray[np.uint8]:
    """The bytes that differ from tick to tick, uint8[states, 66]."""
    return np.array([list(DeviceState.read(state).row) for state in states], np.uint8)


def main() -> None:
    """Draw both, and what the holder of the secret key could see in them."""
    key = DecryptionKey.generate(COINS)
    figure = Figure(figsize=(9.6, 5.4), layout="constrained", dpi=90)
    grid = figure.subplots(2, 2, width_ratios=[12, 1])
    names = {None: "no event", EVENT: f"an event at tick {EVENT}"}
    for (picture, values), (event, name) in zip(grid, names.items(), strict=True):
        states = looks(event, key, COINS)
        seen = ciphertexts(states)
        picture.imshow(seen, cmap="gray", aspect="auto", interpolation="nearest", vmin=0, vmax=255)
        picture.set(ylabel="after tick", xlabel="byte of the ciphertext")
        picture.set_title(f"{name}: what is on the device")
        opened = key.bits(seen.tobytes())
        values.imshow(opened[:, np.newaxis], cmap="gray", aspect="auto", vmin=0, vmax=1)
        for axis in (picture, values):
            axis.set_yticks(range(0, TICKS + 1, 4))
        values.set(xticks=[])
        values.set_title("opened", fontsize=9)
        print(name, len(states), "states of", {len(state) for state in states}, opened.tolist())
    figure.savefig(FOLDER / "devices_seen.png", metadata={"Software": None})


if __name__ == "__main__":
    main()
