"""Plans that weigh users by a score: shared by thresholds, heavy hitters and cropped sums."""
