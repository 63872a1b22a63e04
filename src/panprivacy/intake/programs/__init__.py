"""Shared parts of the programs: statistics from specifications, batches from rows, and pictures."""
