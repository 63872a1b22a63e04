"""Information about people in a seized state, for those who decide about it.

Everything here follows from the public header of a state; its key and its table are not read.
"""
