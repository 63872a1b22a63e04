"""How much have all users added up to, or what is the sum of the squares of that?"""
