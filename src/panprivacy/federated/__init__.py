"""Statistics over devices, each of which keeps only ciphertexts that it cannot open.

A `Task` says what devices observe and what is promised to them; a `Device` observes and reports; a
`Collector` with the secret key (`panprivacy.federated.elgamal.DecryptionKey`) gathers reports, and
answers once. `TwoServers` in the place of the key share what devices report, so that neither sees
a report. Ciphertexts need pip install "panprivacy[federated]".
"""

from panprivacy.federated.collector import Collector, ReplayError
from panprivacy.federated.count_nonzero import CountNonZero
from panprivacy.federated.device import Device
from panprivacy.federated.histogram import Histogram
from panprivacy.federated.mean import Mean
from panprivacy.federated.promise import Promise
from panprivacy.federated.storage import FileStorage, Storage
from panprivacy.federated.task import Task
from panprivacy.federated.two_servers import TwoServers

__all__ = [
    "Collector",
    "CountNonZero",
    "Device",
    "FileStorage",
    "Histogram",
    "Mean",
    "Promise",
    "ReplayError",
    "Storage",
    "Task",
    "TwoServers",
]
