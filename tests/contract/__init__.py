"""What every statistic promises. To add a statistic, add one row to `cases.CASES`."""
