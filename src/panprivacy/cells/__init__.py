"""What a cell holds, and the noise that makes each cell differentially private."""

from panprivacy.cells.bits import BitCells

__all__ = ["BitCells"]
