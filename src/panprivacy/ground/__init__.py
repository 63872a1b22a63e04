"""Files, sealing, parsing, checks of arguments, compiled loops, and hygiene of memory.

It imports nothing but libraries, `errors` and the version.
Nothing here knows what privacy is: no coin, no noise, no epsilon.
"""
