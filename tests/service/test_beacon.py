"""The table of a beacon: what is taken, and the one line for each mistake."""

from __future__ import annotations

import re
from ipaddress import ip_network
from pathlib import Path

import pytest

from panprivacy.errors import PlanError
from panprivacy.intake.sources import Prefixes
from panprivacy.service.config.beacon import BeaconConfig

STREAM = """
[streams.visits]
epsilon = 1
window = "1d"
{stream}
[[streams.visits.stat]]
name = "distinct"
expected = 1_000
[streams.visits.beacon]
{beacon}
"""
SITE = 'origins = ["https://example.org"]'


def text(beacon=SITE, stream="", stat='name = "distinct"\nexpected = 1_000'):
    known = 'name = "distinct"\nexpected = 1_000'
    return STREAM.format(beacon=beacon, stream=stream).replace(known, stat)


@pytest.mark.parametrize(
    ("beacon", "stream", "stat"),
    [
        (SITE, "", 'name = "distinct"\nexpected = 1_000'),
        (SITE, 'by = "page"\ngroups = ["/"]', 'name = "distinct"\nexpected = 1_000'),
        (SITE, 'by = "referrer"\ngroups = ["-"]', 'name = "distinct"\nexpected = 1_000'),
        (SITE, 'user = "visitor"', 'name = "incidence"\nbound = 5\nexpected = 100_000'),
        (SITE, "", 'name = "running-count"\nhorizon = 1_000'),
        ('proxies = ["10.1.2.0/24", "::1"]\nprefix = "24:48"\n' + SITE, "",
         'name = "distinct"\nexpected = "1000:1e6"'),
    ],
)  # fmt: skip
def test_what_can_be_counted_is_taken(read, beacon, stream, stat):
    assert read(text(beacon, stream, stat)).streams["visits"].beacon is not None


def test_what_is_left_out_has_a_value():
    plain = BeaconConfig(origins=("https://example.org",))
    assert plain.prefixes == Prefixes(32, 64)
    assert plain.networks == ()
    assert plain.admitted == {"https://example.org"}


def test_origins_are_as_browsers_write_them():
    given = ("HTTPS://Example.org:443/", "http://127.0.0.1:8000", "http://[::1]:80")
    found = BeaconConfig(origins=given).admitted
    assert found == {"https://example.org", "http://127.0.0.1:8000", "http://[::1]"}


def test_proxies_are_addresses_and_networks():
    found = BeaconConfig(origins=(), proxies=("127.0.0.1", "unix", "2001:db8::/32")).networks
    assert found == (ip_network("127.0.0.1/32"), ip_network("2001:db8::/32"))


STAT = "[[streams.visits.stat]]\nname = "
LONGER = "a beacon knows a visitor within one window"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (text(""), "streams.visits.beacon: origins is missing; it is needed, such as origins ="),
        (text("origins = []"), "streams.visits.beacon: origins must name a web site at least"),
        (text('origins = "https://example.org"'), "beacon: origins must be a list"),
        (text("origins = [1]"), "beacon: each entry of origins must be a text"),
        (text('origins = ["*"]'), "beacon: each of origins must be like https://numbers.example"),
        (text('origins = ["null"]'), "beacon: each of origins must be like https://"),
        (text('origins = ["example.org"]'), "beacon: each of origins must be like https://"),
        (text('origins = ["ftp://example.org"]'), "beacon: each of origins must be like https://"),
        (text('origins = ["https://example.org/shop"]'), "beacon: each of origins must end after"),
        (text('origins = ["https://a:x"]'), "beacon: each of origins must be like https://"),
        (text(SITE + '\nproxies = ["proxy"]'), "each of proxies must be an address, a network"),
        (text(SITE + '\nproxies = ["10.0.0.1/8"]'), "each of proxies must be an address"),
        (text(SITE + '\nprefix = "33:64"'), "beacon: prefix must be how many bits to keep"),
        (text(SITE + "\nprefix = 24"), "beacon: prefix must be a text"),
        (text(SITE + "\norigin = 1"), 'beacon: there is no key "origin"; did you mean "origins"?'),
        (text(stream='ids = "addresses"'), "beacon: a beacon counts visitors by address and user"),
        (text(stream='ids = "integers"'), "beacon: a beacon counts visitors by address and user"),
        (text(stream='by = "shop"\ngroups = ["a"]'), "beacon: by must be page or referrer"),
        (text(stat='name = "overlap"\nexpected = 1_000'), f"beacon: {LONGER}"),
        (text(stat='name = "running-distinct"\nexpected = 1_000\nhorizon = 100'),
         f"beacon: {LONGER}"),
        (text(stat='name = "histogram"\nlow = 0\nhigh = 1'), "beacon: a beacon counts visitors"),
        (text() + '[streams.visits.stdin]\nformat = "ndjson"', "take syslog and stdin into"),
        (text() + '[[streams.visits.syslog]]\nlisten = "udp://127.0.0.1:1"\nformat = "lines"\n'
         "pattern = '(?P<user>.)'", "a visitor has another id in log lines than in a beacon"),
        ('[server]\nlisten = "unix:/run/http.sock"\n' + text(), 'proxies must have "unix"'),
        (text(SITE + '\nproxies = ["unix"]'), 'proxies must not have "unix"'),
        (text(SITE + '\nproxies = ["0.0.0.0/0"]'), "each of proxies must be"),
        (text(SITE + '\nproxies = ["::ffff:10.0.0.9"]'), "each of proxies must be"),
        (text('origins = ["https://*.example.org"]'), "write the host as browsers send it"),
        (text('origins = ["https://b\u00fccher.example"]'), "write the host as browsers send it"),
        (text('origins = ["https://a:0"]'), "each of origins must be like"),
        (text().replace("[streams.visits.beacon]", "[[streams.visits.beacon]]"), "beacon"),
    ],
)  # fmt: skip
def test_each_mistake_is_one_line(read, wrong, says):
    with pytest.raises(PlanError) as caught:
        read(wrong)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("config.toml, line ")


def test_a_column_that_no_beacon_tells_is_refused(read):
    stat = 'name = "distinct"\nexpected = 1_000\ndeletions = true\nbound = 10'
    with pytest.raises(PlanError, match="leave out delta, side and value"):
        read(text(stream='delta = "change"', stat=stat))


def test_the_page_shows_a_table_that_is_taken(read):
    page = Path(__file__).parents[2] / "docs/beacon.md"
    (shown,) = re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL)
    beacon = read(shown).streams["pages"].beacon
    assert beacon.admitted == {"https://example.org"}


def test_a_unix_socket_behind_a_proxy_is_taken(read):
    read('[server]\nlisten = "unix:/run/http.sock"\n' + text(SITE + '\nproxies = ["unix"]'))
