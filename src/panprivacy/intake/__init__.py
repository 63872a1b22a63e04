"""From bytes to one typed batch: sources read rows, programs count them.

It imports `statistics` and everything below.
No socket, no clock and no store comes here.
"""
