"""What is kept of what was counted: sealed checkpoints, and how a service goes on from one."""
