"""Randomness and its price: coins, samplers without floats, guarantees and the ledger.

It imports `ground`. Every loss that any surface prints is computed and rounded here.
No id, no cell and no statistic comes here.
"""
