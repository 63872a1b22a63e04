"""The statistics: one folder per question, with its sizes, plan, decoder and class.

It imports `tables` and everything below. `catalogue` lists all statistics; `composites`, `merging`,
`checkpoint` and `explain` work on any of them.
No source, no socket, no clock and no command comes here.
"""
