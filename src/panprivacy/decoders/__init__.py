"""From noised counts to estimates and intervals: what the decoders of all statistics share.

A model says what the noised counts are expected to be, and how far an estimate strays, when the
truth is given. Planning asks it before anything is collected, releases ask it after. Nothing here
sees the table: the inputs are released numbers and public parameters.

Notation: `c` is the contrast (for bits the mean of a present bit in units of ±1; `t` unless
intrusions were announced), `m` the number of cells, `n` the number of users, `q` a level's
probability.
"""
