"""Cells of a table, and the noise that makes each cell differentially private."""
