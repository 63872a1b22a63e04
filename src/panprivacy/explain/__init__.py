"""What a seized state can say about anybody, for those who decide about it.

Everything here follows from the public front of a state; its key and its table are not read.
"""
