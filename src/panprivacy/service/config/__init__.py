"""The configuration of a service: its options, and how it is read."""
