"""Programs that claim more than they keep: the audit has to catch each of them.

The published algorithms as they are printed, with the constants that do not hold, and ordinary
mistakes around our own classes. They are here to be caught; nobody should run them.
"""

from panprivacy.audit.controls.continual import CONTINUAL
from panprivacy.audit.controls.control import Control
from panprivacy.audit.controls.counters import COUNTERS
from panprivacy.audit.controls.density import DENSITY
from panprivacy.audit.controls.devices import DEVICES
from panprivacy.audit.controls.programs import PROGRAMS
from panprivacy.audit.controls.sketches import SKETCHES
from panprivacy.audit.controls.traces import TRACES

CONTROLS: tuple[Control, ...] = (
    *DENSITY,
    *COUNTERS,
    *SKETCHES,
    *CONTINUAL,
    *DEVICES,
    *PROGRAMS,
    *TRACES,
)

__all__ = ["CONTROLS", "Control"]
