"""The daemon: it counts streams, releases on a clock, and serves what was released.

Only what was released leaves it, and each release is in a durable ledger before it does.
"""
