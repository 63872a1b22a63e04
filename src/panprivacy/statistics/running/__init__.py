"""Statistics that answer at the end of every step; each kind is one module.

Each of `count`, `distinct`, `cropped` and `heavy` has its sizes, its plan and its class. Nothing
that two of them need is in one of them: that is in `stepwise`. What is hidden is one event, not one
user; no plan here divides a table among shards.

How such a statistic works:

- Table: the noisy sum of the open node of each level of a tree of steps (`stepwise.nodes`). To
  count users it has cells too, and the sums count how the cells change (`stepwise.counted`).
- Step: `update` counts in the open step. `release` ends the step, adds the noise of its nodes, and
  answers (`StepwiseReleasing`). Trees and their state are in `tables.counters`.
- Ledger: the whole epsilon is charged when the statistic is made (`AtBirth`). A release costs
  nothing, and an announced intrusion costs noise only.
- Sealing: the state is that of a table statistic (`statistics.table.memory`). The number of steps
  is in its public header, and its size never changes.
- Restart: a state that is older than the last release goes on with new nodes, on top of the last
  answer that it knows (`StepwiseMemory.catch_up`). No node leaves twice.

`stepwise.step_counter` does the same for counts outside of the catalogue: `pp.continual.Counter`,
and the algorithms of `pp.online`.
"""
