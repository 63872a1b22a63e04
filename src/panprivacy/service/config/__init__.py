"""The configuration of a service: what it may say, and how it is read."""
