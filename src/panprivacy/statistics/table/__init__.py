"""The parts of a table statistic: its memory, learning windows, contributions and releases.

It imports plans, sizes and everything below; `statistic` joins the parts into one class.
What differs from one statistic to the next never comes here: its plan says it.
"""
