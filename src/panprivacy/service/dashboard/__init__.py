"""The dashboard: pages of published answers, in a process that can change nothing.

Its data is plain: `history` follows the release store, `promise` computes the guarantee and the
spent budget, `seized` fills synthetic states, and a `board` keeps all of it up to date. `charts`
draws it. `guard` admits holders of a token that may read. `pages` are built in a `frame`, which has
the button of `announcing`, from `parts` and `elements`. `server` runs them.
"""

import os

# NiceGUI would load Matplotlib for plots of its own, which fails where no folder can be written.
os.environ.setdefault("MATPLOTLIB", "false")
