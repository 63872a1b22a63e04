"""How many users appeared in two streams of one window, and what share of one in the other?"""
