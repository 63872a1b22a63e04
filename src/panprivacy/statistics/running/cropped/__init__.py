"""How much have all users done so far, if nobody counts for more than tau, told at every step?"""
