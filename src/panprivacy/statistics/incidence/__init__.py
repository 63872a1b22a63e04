"""How many users have a total of exactly t, for every t?"""
