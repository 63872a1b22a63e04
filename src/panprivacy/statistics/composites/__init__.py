"""Statistics of statistics: groups, several at once, windows, answers that stand."""
