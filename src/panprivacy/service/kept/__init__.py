"""Stored counts: sealed checkpoints, and how a service resumes from one."""
