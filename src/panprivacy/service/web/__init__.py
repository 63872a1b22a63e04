"""HTTP: requests to the service, their limits, and its answers."""
