"""What a cell holds, and the noise that makes each cell differentially private."""

from panprivacy.cells.bits import BitCells
from panprivacy.cells.law import Law
from panprivacy.cells.modular import BlockCells, ModularCells, ScaledCells
from panprivacy.cells.protocol import Cells

__all__ = ["BitCells", "BlockCells", "Cells", "Law", "ModularCells", "ScaledCells"]
