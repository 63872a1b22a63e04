"""What all statistics have that answer at every step: plans, tables, memory, releases.

`statistic` has the base classes, `event_plan` and `sketch` the plans, `nodes` and `counted` the
tables. It imports no kind.
"""
