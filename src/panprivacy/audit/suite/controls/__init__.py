"""Programs that claim more than they keep: the audit has to catch each of them.

The published algorithms as they are printed, with the constants that do not hold, and ordinary
mistakes around our own classes. They are here to be caught; nobody should run them.
"""

from panprivacy.audit.suite.controls.control import Control
from panprivacy.audit.suite.controls.counters import COUNTERS
from panprivacy.audit.suite.controls.density import DENSITY
from panprivacy.audit.suite.controls.programs import PROGRAMS

CONTROLS: tuple[Control, ...] = (*DENSITY, *COUNTERS, *PROGRAMS)

__all__ = ["CONTROLS", "Control"]
