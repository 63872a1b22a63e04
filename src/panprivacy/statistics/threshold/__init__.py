"""How many users are in a state of about a threshold or more?"""
