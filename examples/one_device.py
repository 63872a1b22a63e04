"""A device with a file of its own: it observes what is on standard input, and prints what it sends."""

import sys
from pathlib import Path

from panprivacy.aggregator.reports import upload
from panprivacy.federated import Device, FileStorage, Task, TwoServers

if __name__ == "__main__":
    task, signer, file = sys.argv[1:]
    with FileStorage(file) as storage:
        device = Device(Task.read(Path(task).read_bytes(), bytes.fromhex(signer)), storage)
        for line in sys.stdin:
            if not device.reported:
                device.observe(line.strip() == "event")
        report = device.report()
        two = isinstance(device.task.key, TwoServers)
        sys.stdout.buffer.write(upload([report], device.task) if two else report)
