"""What a cell holds, and the noise that makes each cell differentially private."""

from panprivacy.cells.bits import BitCells
from panprivacy.cells.law import Law
from panprivacy.cells.modular import BlockCells, ModularCells, ScaledCells
from panprivacy.cells.protocol import Cells
from panprivacy.cells.threshold import ThresholdCells

__all__ = [
    "BitCells",
    "BlockCells",
    "Cells",
    "Law",
    "ModularCells",
    "ScaledCells",
    "ThresholdCells",
]
