"""Streams of the recipes of `panprivacy init`: what a website, an app, a hotline or a shop counts.

Each recipe states the total loss of one window of each of its streams, which a test compares with
the guarantees of the loaded configuration.
"""

from __future__ import annotations

from typing import Final

_WEBSITE: Final = r"""
# A website behind nginx. Mend the names of the pages and the numbers that are expected.
#
# Total: a visitor loses epsilon 3 in one window of each stream, and one visit epsilon 1 besides.
#
# For nginx, in place of its log; only what is counted leaves it. Write $request_uri, not $uri: the
# latter turns / into /index.html, which is no declared group and counts nowhere. Nobody is told of
# rows without a group, as that would tell of them: compare the names once, before you start.
#
#     log_format visitor '$remote_addr';
#     log_format reader '$remote_addr $request_uri';
#     access_log syslog:server=127.0.0.1:5514,nohostname,tag=nginx visitor;
#     access_log syslog:server=127.0.0.1:5515,nohostname,tag=nginx reader;
#     access_log syslog:server=127.0.0.1:5516,nohostname,tag=nginx visitor;
#     access_log syslog:server=127.0.0.1:5517,nohostname,tag=nginx visitor;
#     error_log /dev/null emerg;

# Visitors of each day.
[streams.visitors]
epsilon = 1  # hides one visitor with all requests of a day
window = "1d"
ids = "addresses"
prefix = "24:56"  # a household, nearly

[[streams.visitors.stat]]
name = "distinct"
expected = [300, 30_000]

[[streams.visitors.syslog]]
listen = "udp://127.0.0.1:5514"
format = "lines"
pattern = '^(?P<user>\S+)$'

# Readers of each page, a week at a time: each page has fewer of them than the site.
[streams.pages]
epsilon = 1  # hides one reader with all pages of a week, of those below
window = "1w"
ids = "addresses"
prefix = "24:56"
by = "page"
groups = ["/", "/about", "/contact"]  # as they stand in $request_uri, up to the first ?
per_user = 3  # pages that one reader may open: all of them
ignore_others = true  # pictures, scripts and pages that are not declared

[[streams.pages.stat]]
name = "distinct"
expected = [300, 30_000]

[[streams.pages.syslog]]
listen = "udp://127.0.0.1:5515"
format = "lines"
pattern = '^(?P<user>\S+) (?P<page>[^ ?]*)'

# Visitors of each week. Add up the visitors of its seven days: what is more than the visitors of
# the week are returns on another day.
[streams.returning]
epsilon = 1  # hides one visitor with all requests of a week
window = "1w"
ids = "addresses"
prefix = "24:56"

[[streams.returning.stat]]
name = "distinct"
expected = [300, 100_000]

[[streams.returning.syslog]]
listen = "udp://127.0.0.1:5516"
format = "lines"
pattern = '^(?P<user>\S+)$'

# Visits so far, at the end of each day: all requests since the count began.
[streams.visits]
epsilon = 1  # hides one visit, once for as long as it counts; not all visits of a person
window = "1d"

[[streams.visits.stat]]
name = "running-count"
horizon = 3_650

[[streams.visits.syslog]]
listen = "udp://127.0.0.1:5517"
format = "lines"
pattern = '^(?P<user>\S+)$'
"""

_APP: Final = """
# An app whose server sends {"user": "..."} when somebody opens it, and {"user": "...", "feature":
# "..."} when somebody uses a feature: POST /v1/streams/NAME/updates.
#
# Total: a user loses epsilon 3 in one window of each stream.

# Users of each day.
[streams.daily]
epsilon = 1  # hides one user with everything of a day
window = "1d"

[[streams.daily.stat]]
name = "distinct"
expected = [300, 100_000]

# Users of each week. Send the same events as to daily.
[streams.weekly]
epsilon = 1  # hides one user with everything of a week
window = "1w"

[[streams.weekly.stat]]
name = "distinct"
expected = [1_000, 300_000]

# Users of each feature.
[streams.features]
epsilon = 1  # hides one user with all features of a week
window = "1w"
by = "feature"
groups = ["search", "share", "export"]
per_user = 3  # features that one user may use: all of them
# Features that are not declared are refused, and the sender is told.

[[streams.features.stat]]
name = "distinct"
expected = [300, 100_000]
"""

_HOTLINE: Final = """
# A hotline: a row for each call, {"user": "a hash of the number"}. Few people call, so calls of a
# day are counted as events, and callers by the month.
#
# Total: a caller loses epsilon 1 in one window of callers, and one call epsilon 1 besides.

# Calls of each day: right within about 4, whether 10 people call or 1,000.
[streams.calls]
epsilon = 1  # hides one call, once and for all; not all calls of a person
window = "1d"

[[streams.calls.stat]]
name = "running-count"
horizon = 1  # each day has a count of its own

# People who called, of each four weeks.
[streams.callers]
epsilon = 1  # hides one caller with all calls of four weeks
window = "4w"

[[streams.callers.stat]]
name = "distinct"
expected = [300, 10_000]
"""

_SHOP: Final = """
# A shop whose server sends {"user": "..."} for each order: POST /v1/streams/NAME/updates.
#
# Total: a customer loses epsilon 2 in one window of each stream, and one order epsilon 1 besides.

# Orders of each day: right within about 4.
[streams.orders]
epsilon = 1  # hides one order, once and for all; not all orders of a customer
window = "1d"

[[streams.orders.stat]]
name = "running-count"
horizon = 1  # each day has a count of its own

# Customers of each week.
[streams.customers]
epsilon = 1  # hides one customer with all orders of a week
window = "1w"

[[streams.customers.stat]]
name = "distinct"
expected = [300, 30_000]

# Customers of four weeks. Add up the customers of the four weeks: what is more than these are
# returns in another week.
[streams.returning]
epsilon = 1  # hides one customer with all orders of four weeks
window = "4w"

[[streams.returning.stat]]
name = "distinct"
expected = [300, 100_000]
"""

RECIPES: Final = {"website": _WEBSITE, "app": _APP, "hotline": _HOTLINE, "shop": _SHOP}
"""Tables of streams by the name of the recipe."""
