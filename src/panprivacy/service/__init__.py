"""The daemon: it counts streams, releases on a clock, and serves what was released.

Only what was released leaves it, and each release is in a durable ledger before it does.

What comes in is taken by `incoming` and counted by a `stream`. What has to outlive a crash is
`kept` on disk, sealed. Answers are paid for and published by `outgoing`. On top, `web` speaks HTTP.
`engine` puts the parts of a `config` together, and `server` runs them. The `dashboard` reads the
release store in a process of its own.

It imports `intake` and everything below. Nothing of a cluster or a device comes here.
"""
