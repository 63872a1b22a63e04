"""Statistics over devices, each of which keeps only ciphertexts that it cannot open.

A `Task` says what devices observe and what is promised to them; a `Device` observes and reports; a
`Collector` with the secret key (`DecryptionKey` of `elgamal.py`) gathers reports, and answers once.
`TwoServers` in the place of the key share what devices report, so that neither sees a report.
Ciphertexts need the extra `federated`.
"""

from panprivacy.devices.federated.collector import Collector, ReplayError
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.device import Device
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.storage import FileStorage, Storage
from panprivacy.devices.federated.task import Task
from panprivacy.devices.federated.two_servers import TwoServers

__all__ = [
    "Collector",
    "CountNonZero",
    "Device",
    "DeviceHistogram",
    "FileStorage",
    "Mean",
    "Promise",
    "ReplayError",
    "Storage",
    "Task",
    "TwoServers",
]
