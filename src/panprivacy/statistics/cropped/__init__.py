"""How much have all users done, if nobody counts for more than tau?"""
