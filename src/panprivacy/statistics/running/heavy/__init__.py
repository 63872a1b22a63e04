"""How many users hold at least 1/k of a public total by now, told at every step?"""
