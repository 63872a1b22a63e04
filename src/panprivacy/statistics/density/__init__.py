"""What share of a known universe appeared?"""
