"""How many different users so far, at the end of every step?"""
