"""The dashboard: pages of what was released, in a process that can change nothing.

What is read is plain data: `history` follows the release store, `promise` says what was promised
and spent, `seized` fills throw-away states, and a `board` keeps all of it up to date. What is drawn
of it are `charts`. `guard` lets in who has a token that may read. `pages` stand in a `frame`, which
has the button of `announcing`, and are made of `parts` and `elements`. `server` runs them.
"""
