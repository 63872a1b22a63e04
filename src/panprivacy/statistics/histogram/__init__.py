"""How are the values of events distributed?"""
