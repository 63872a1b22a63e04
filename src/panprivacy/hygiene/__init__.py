"""What keeps ids out of freed memory, dumps and swap, and what finds out whether it is on."""
