"""What a program keeps of a stream, and how it is read: ids, cells, counters, decoders, planning.

It imports `privacy` and `ground`.
Nothing here knows a statistic by name.
"""
