"""Running counts: the state between two steps, and the output at the end of each."""
