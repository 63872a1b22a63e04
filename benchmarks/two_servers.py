"""What two servers cost a device and themselves, beside one.

    python -m benchmarks.two_servers

Prints the tables of docs/two-servers.md: processor time of a `Device` on one core, the median of
seven runs. A tick computes the row of an event whether there is one or not, re-randomises all, and
overwrites what it leaves in memory; the storage is memory.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

from panprivacy.audit.ideal import MemoryStorage
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.device import Device
from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.shares import Sharing, open_helper, open_leader, split
from panprivacy.devices.federated.task import AnyKind, Task
from panprivacy.devices.federated.two_servers import Collusion, TwoServers
from panprivacy.privacy.coins import SystemCoins

RUNS, TICKS, BITS = 7, 20, 100

PROMISE = Promise(epsilon=Fraction(1))
KINDS: dict[str, AnyKind] = {
    "`CountNonZero`": CountNonZero.planned(PROMISE),
    "`DeviceHistogram`, `most=10`": DeviceHistogram.planned(PROMISE, most=10),
}
COINS = SystemCoins()
LEADER, HELPER = DecryptionKey.generate(COINS), DecryptionKey.generate(COINS)


def two(collusion: Collusion) -> TwoServers:
    """Two servers."""
    leader, helper = (bytes(key.public).hex() for key in (LEADER, HELPER))
    return TwoServers(leader=leader, helper=helper, collusion=collusion, batch=1)


ASKED: dict[str, bytes | TwoServers] = {
    "one": bytes(LEADER.public),
    "two": two("none"),
    "two, joint key": two("one-server"),
}


def microseconds(work: Callable[[], object], times: int) -> float:
    """Processor time of one of so many that the work does, the median."""
    spent = []
    for _ in range(RUNS):
        start = time.process_time()
        work()
        spent.append(1e6 * (time.process_time() - start) / times)
    return statistics.median(spent)


def of_devices() -> Iterator[str]:
    """A row of the table for each kind and who is asked."""
    for name, kind in KINDS.items():
        for servers, key in ASKED.items():
            storage = MemoryStorage()
            device = Device(Task.new(kind, PROMISE, horizon=2**31, key=key), storage)
            _tick(device)  # makes the tables of the keys
            cost = microseconds(partial(_tick, device), TICKS)
            yield f"| {name} | {servers} | {len(storage.state or b''):,} | {cost:,.0f} |"


def _tick(device: Device) -> None:
    for tick in range(TICKS):
        device.observe(tick % 2 == 0)


def of_servers() -> Iterator[str]:
    """A row of the table for each thing that a server does with a bit."""
    first, second = split(Sharing(b"a benchmark", two("none")).encrypt([1] * BITS, COINS))
    for name, work in {
        "opens a share of the leader": partial(open_leader, first, LEADER),
        "opens a seed of the helper": partial(open_helper, second, HELPER),
        "takes its layer off": partial(HELPER.strip, first),
    }.items():
        yield f"| {name} | {microseconds(work, BITS):,.0f} |"


def main() -> None:
    """Print both tables."""
    print("| kind | servers | bytes of the state | us a tick |\n|---|---|--:|--:|")
    print(*of_devices(), sep="\n")
    print("\n| what a server does with a bit | us |\n|---|--:|")
    print(*of_servers(), sep="\n")


if __name__ == "__main__":
    main()
