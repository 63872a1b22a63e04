"""Estimates and intervals from noisy counts: the parts that the decoders of all statistics share.

A model gives the expected noisy counts, and the error of an estimate, when the
truth is given. Planning asks it before anything is collected, releases ask it after. Nothing here
sees the table: the inputs are released numbers and public parameters.

Notation: `c` is the contrast (for bits the mean of a present bit in units of ±1; `t` unless
intrusions were announced), `m` the number of cells, `n` the number of users, `q` a level's
probability.
"""
