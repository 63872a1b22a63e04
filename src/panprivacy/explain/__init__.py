"""What a seized state can say about anybody, for those who decide about it.

Everything here follows from the public front of a state; its key and its table are not read.
"""

from panprivacy.explain.bounds import PRIORS, Bound, float_above, float_below
from panprivacy.explain.description import KINDS, Description, Kind, Progress, Sizes
from panprivacy.explain.document import Shared, as_document, ledgers, promised, so_far
from panprivacy.explain.parameters import describe
from panprivacy.explain.reading import Alike, read_states

__all__ = [
    "KINDS",
    "PRIORS",
    "Alike",
    "Bound",
    "Description",
    "Kind",
    "Progress",
    "Shared",
    "Sizes",
    "as_document",
    "describe",
    "float_above",
    "float_below",
    "ledgers",
    "promised",
    "read_states",
    "so_far",
]
