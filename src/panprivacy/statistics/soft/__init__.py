"""Plans that weigh users by a score: shared by thresholds, heavy hitters and cropped sums.

`block_plans` count users by the block of their state, `scored_plans` read a score off each cell,
and `sloped_plans` do both. They know no statistic: the plans of these three derive from them.
"""
