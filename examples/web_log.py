"""How many clients a site has a day, of each of its pages, from the log of its web server.

    python examples/make_visits.py && python examples/web_log.py access.log

It reads the log as a program of one's own would. `panprivacy run --format combined` does the same,
and keeps addresses out of what libraries leave in memory as well.
"""

from __future__ import annotations

import ipaddress
import re
import sys
from itertools import islice
from pathlib import Path

import panprivacy as pp

LINE = re.compile(r'(?P<address>\S+) \S+ \S+ \[.*?\] "GET (?P<page>[^ ?"]+)')
PAGES = ["/", "/help", "/shop"]


def of_a_page(epsilon: float) -> pp.DistinctCount:
    """Its clients."""
    return pp.DistinctCount(expected=(100, 100_000), epsilon=epsilon)


pages = pp.Grouped(of_a_page, PAGES, epsilon=1, per_user=2)  # of more, a client loses more
with Path(sys.argv[1]).open() as log:
    requests = filter(None, map(LINE.match, log))
    while batch := list(islice(requests, 10_000)):
        wanted = [one for one in batch if one["page"] in PAGES]
        clients = [ipaddress.ip_address(one["address"]).packed for one in wanted]
        pages.update(clients, [one["page"] for one in wanted])
answers = pages.release()
for page in PAGES:
    print(page, answers.where(group=page).only())
