"""A device with a file of its own: it observes what is on standard input, and prints what it sends."""

import sys
from pathlib import Path

from panprivacy.devices.aggregator.reports import upload
from panprivacy.devices.federated import Device, FileStorage, Task, TwoServers

if __name__ == "__main__":
    task, signer, file = sys.argv[1:]
    with FileStorage(file) as storage:
        device = Device(Task.read(Path(task).read_bytes(), bytes.fromhex(signer)), storage)
        for number, line in enumerate(sys.stdin, 1):
            if (tick := line.strip()) not in {"event", "none"}:
                sys.exit(f"line {number} is neither event nor none: mend it, and go on from there")
            if not device.reported:
                device.observe(tick == "event")
        report = device.report()
        two = isinstance(device.task.key, TwoServers)
        sys.stdout.buffer.write(upload([report], device.task) if two else report)
