"""HTTP: what is asked of the service, how much at once, and how it answers."""
