"""How many events have there been so far, told at the end of each of many steps?"""
