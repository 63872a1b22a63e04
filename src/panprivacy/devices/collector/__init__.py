"""Collects the reports of devices over HTTP, in a database, and answers once."""
