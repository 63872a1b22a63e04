"""How many users appeared exactly t times, for every t?"""
