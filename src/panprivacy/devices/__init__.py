"""Devices that keep ciphertexts, their collector, and two servers that verify shares.

It imports the service (sockets, databases, tokens) and everything below.
No statistic of a service, and nothing of a cluster, comes here.
"""
