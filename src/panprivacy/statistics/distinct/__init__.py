"""How many different users appeared, or are left after deletions, when nobody knows who might?"""
