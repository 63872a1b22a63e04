"""Two servers that add up reports of which neither can read one.

The leader takes reports from devices over HTTP, the helper verifies each with it, and both keep
shares of sums; a release joins them once. Messages are those of the IETF's Distributed Aggregation
Protocol (draft-ietf-ppm-dap-17). `panprivacy aggregator` runs either.
"""
