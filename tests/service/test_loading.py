"""Configurations: what they mean, what is refused, and on which line."""

from __future__ import annotations

from contextvars import Context
from fractions import Fraction

import pytest

from panprivacy.errors import PlanError
from panprivacy.intake.programs.intake import Columns, Nulls
from panprivacy.intake.sources import Column, Prefixes
from panprivacy.service.config.loading import load
from panprivacy.service.sockets import Address

RECIPIENT = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
HASH = "ab" * 32
TABLE = "[[streams.visits.stat]]\n"


def stream(text="", stat='name = "distinct"\n', *, epsilon="1"):
    """A stream with more keys, which begin on line 4, and a statistic, from the line after them."""
    return f'[streams.visits]\nepsilon = {epsilon}\nwindow = "1d"\n{text}{TABLE}{stat}'


STREAM = stream()
TOKEN = '[[tokens]]\nname = "a"\nmay = ["read"]\nsha256 = '


def refusal(path):
    with pytest.raises(PlanError) as refused:
        Context().run(load, path)  # as it is shipped: it refuses what is too small
    assert refused.type is PlanError
    message = str(refused.value)
    assert "\n" not in message
    return message


# What it means


def test_defaults_are_those_of_the_reference(read, tmp_path):
    config = read(STREAM)
    stream = config.streams["visits"]
    assert stream.columns(stream.make_counting()) == Columns(Column("user"))
    assert (stream.window_seconds, stream.every_seconds, stream.nulls) == (86_400, None, "error")
    assert (stream.releases, stream.retries) == (1, 8_192)
    assert config.server.address == Address("127.0.0.1", 8642)
    assert config.server.timeout_seconds == 30
    assert config.server.directory == str(tmp_path)
    assert config.releases.store == f"sqlite:///{tmp_path}/releases.sqlite"
    assert (config.checkpoint, config.tokens) == (None, ())


@pytest.mark.parametrize(
    ("written", "epsilon"),
    [("0.1", Fraction(1, 10)), ('"1/3"', Fraction(1, 3)), ("2", Fraction(2)), ("1.0", Fraction(1))],
)
def test_epsilon_is_exact(read, written, epsilon):
    stream = read(STREAM.replace("epsilon = 1", f"epsilon = {written}")).streams["visits"]
    assert stream.epsilon == epsilon
    assert stream.make_counting().ledger.total == epsilon


@pytest.mark.long
def test_columns_of_addresses_deltas_and_groups(read):
    text = 'user = "ip"\nids = "addresses"\nprefix = "24:56"\nnulls = "skip"\n'
    text += 'delta = "change"\nby = "page"\ngroups = ["a", "b"]\n'
    counted = 'name = "distinct"\ndeletions = true\nbound = 3\n'
    one = read(stream(text, counted)).streams["visits"]
    users = Column("ip", address=Prefixes(24, 56))
    assert one.columns(one.make_counting()) == Columns(
        users, Column("change", integers=True), Column("page")
    )
    assert one.nulls is Nulls.skip
    assert one.make_counting().guarantee.groups == 1


EVENTS = 'name = "running-count"\nhorizon = 100\n'


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", Columns()),
        ('user = "who"\n', Columns(Column("who"))),
        ('by = "page"\ngroups = ["a", "b"]\n', Columns(group=Column("page"))),
        ('delta = "change"\n', Columns(delta=Column("change", integers=True))),
    ],
)
def test_where_events_are_counted_a_user_is_read_only_if_one_is_named(read, text, columns):
    one = read(stream(text, EVENTS)).streams["visits"]
    assert one.columns(one.make_counting()) == columns


def test_a_zone_whose_clock_cuts_windows(read):
    zones = [read(stream(text)).streams["visits"].zone for text in ("", 'zone = "Asia/Tokyo"\n')]
    assert zones == ["UTC", "Asia/Tokyo"]


def test_each_counting_has_a_ledger_of_its_own(read):
    stream = read(STREAM).streams["visits"]
    first, second = stream.make_counting(), stream.make_counting()
    assert first.ledger is not second.ledger
    assert first.internals.memory.state_bytes == second.internals.memory.state_bytes


def test_whole_numbers_may_have_an_exponent(read):
    text = stream('ids = "integers"\n', 'name = "density"\nuniverse = 1e6\n')
    one = read(text).streams["visits"]
    (specification,) = one.specifications()
    assert specification.sizes.universe == 1_000_000
    assert one.columns(one.make_counting()).user.integers


@pytest.mark.parametrize("users", ['"1000:1e6"', "[1000, 1_000_000]", "[1e3, 1e6]"])
def test_a_range_of_users_may_be_a_text_or_a_list(read, users):
    text = stream(stat=f'name = "distinct"\nexpected = {users}\n')
    (specification,) = read(text).streams["visits"].specifications()
    assert specification.sizes.expected == (1_000, 1_000_000)


INCIDENCE = 'name = "incidence"\nexpected = 10_000\nbound = 9\n'


@pytest.mark.parametrize(
    "asked",
    [
        'exactly = "1:3"\nat_least = "2,5"\ncropped_sum = 4\ncropped_moment = "4**1,4**2"\n',
        "exactly = [1,2,3]\nat_least = [2, 5]\ncropped_sum = [4]\ncropped_moment = [[4,1],[4,2]]",
    ],
    ids=["texts", "lists"],
)
def test_an_incidence_count_is_asked_what_is_written(read, asked):
    one = read(stream(stat=INCIDENCE + asked)).streams["visits"]
    (query,) = (one.query for one in one.specifications())
    assert (query.exactly, query.at_least, query.cropped_sum) == ((1, 2, 3), (2, 5), (4,))
    assert query.cropped_moment == ((4, 1), (4, 2))
    released = one.make_counting().release()
    assert [str(name) for name in released] == [
        *("exactly 1", "exactly 2", "exactly 3", "at least 2", "at least 5"),
        *("cropped sum 4", "cropped moment 4**1", "cropped moment 4**2"),
    ]


@pytest.mark.long
def test_sums_and_thresholds_are_planned_as_written(read):
    cropped = 'name = "cropped-sum"\nexpected = 1000\ntau = 5\nbound = 40\n'
    heavy = f'{TABLE}name = "heavy-hitters"\nk = 1e3\ntotal = 1_000_000\n'
    text = stream(stat=cropped + heavy, epsilon="8")
    statistics = read(text).streams["visits"].make_counting().statistics
    assert list(statistics) == ["cropped-sum", "heavy-hitters"]
    cropped, heavy = (one.plan for one in statistics.values())
    assert (cropped.tau, cropped.bound, cropped.expected) == (5, 40, 1_000)
    assert (heavy.k, heavy.total) == (1_000, 1_000_000)
    assert {one.request.epsilon for one in (cropped, heavy)} == {4}


def test_a_soft_threshold_is_planned_as_written(read):
    busy = 'name = "threshold"\nuniverse = 1e5\nthreshold = 20\nmemory = 50_000\n'
    one = read(stream('ids = "integers"\n', busy)).streams["visits"]
    (busy,) = (one.plan for one in one.make_counting().statistics.values())
    assert (busy.threshold, busy.bound, busy.universe) == (20, 1_280, 100_000)
    assert busy.table.nbytes <= 50_000


@pytest.mark.parametrize(
    ("told", "below", "without"),
    [("", None, 0), ("below = 3\n", 3, 3), ("signed = true\n", None, None)],
)
def test_where_each_event_counts_once_nobody_is_below_0(read, told, below, without):
    table = f'name = "incidence"\nbound = 10\nuniverse = 100\n{told}'
    for columns, least in ('delta = "n"\n', below), ("", without):
        one = read(stream(f'ids = "integers"\n{columns}', table)).streams["visits"]
        (specification,) = one.specifications()
        assert specification.sizes.below == least


@pytest.mark.long
def test_one_statistic_may_be_counted_twice_with_other_sizes(read):
    sums = [
        f'name = "cropped-sum"\nexpected = 1e5\ntau = {tau}\nas = "sum{tau}"\n' for tau in (1, 9)
    ]
    text = stream(stat=TABLE.join(sums))
    statistics = read(text).streams["visits"].make_counting().statistics
    assert {label: one.plan.tau for label, one in statistics.items()} == {"sum1": 1, "sum9": 9}


def test_paths_do_not_depend_on_the_working_directory(read, tmp_path, monkeypatch):
    (tmp_path / "kept").mkdir()
    text = f'[server]\ndirectory = "kept"\n[checkpoint]\nrecipient = "{RECIPIENT}"\nevery = "5s"\n'
    config = read(text + '[releases]\nstore = "sqlite:////elsewhere/a.sqlite"\n' + STREAM)
    assert config.server.directory == str(tmp_path / "kept")
    assert config.checkpoint.path == str(tmp_path / "kept" / "panprivacy.sealed")
    assert config.checkpoint.every_seconds == 5
    assert config.releases.store == "sqlite:////elsewhere/a.sqlite"


def test_listeners_are_taken_apart(read):
    text = '[server]\nlisten = "unix:/run//http.sock"\n' + stream('user = "remote_addr"\n')
    text += '[[streams.visits.syslog]]\nlisten = "udp://[::1]:5514"\nmode = 0o600\n'
    config = read(text)
    (syslog,) = config.streams["visits"].syslog
    assert config.server.address == Address(path="/run/http.sock")
    assert (syslog.address, syslog.mode) == (Address("::1", 5514), 0o600)


# What is refused


def stat(name, *sizes, above=""):
    """A stream with a table of a statistic on line 4, its name on line 5, and then its sizes."""
    lines = "".join(f"{size}\n" for size in sizes)
    return (
        stream(stat=f'name = "{name}"\n{lines}')
        if not above
        else stream(above, f'name = "{name}"\n{lines}')
    )


def syslog(*listeners):
    tables = [f'[[streams.visits.syslog]]\nlisten = "{each}"\n' for each in listeners]
    return stream('user = "remote_addr"\n') + "".join(tables)


def token(text, before=""):
    """Line 1 is the header, and 2 to 4 are the name, what it may, and the hash."""
    return f'[[tokens]]\nname = "web"\nmay = ["ingest"]\nsha256 = "{HASH}"\n{text}{before}{STREAM}'


IN_STREAM = "streams.visits: "
IN_STAT = "streams.visits.stat: "
TABLES = "stat must be tables, one for each statistic: write [[streams.visits.stat]] with name = "
NO_NUMBER = " must be a whole number of at least 1"
OLD = STREAM.partition("[[")[0]
NEVER = "this looks like the private half of a key, which must not be on this machine"
NO_SOCKET = "listen must name a Unix socket by its whole path"
NOT_HTTP = "listen must be 127.0.0.1:8642"

BAD = [
    # keys
    (stream("epsilom = 2\n"), 4, IN_STREAM + 'there is no key "epsilom"; did you mean "epsilon"?'),
    (stream("zzz = 2\n"), 4, IN_STREAM + 'there is no key "zzz"; the keys are stat, epsilon,'),
    (stream("") + "[servr]\n", 6, 'there is no key "servr"; did you mean "server"?'),
    (stream('"a\\nb" = 2\n'), 4, IN_STREAM + 'there is no key "a b"'),
    ("# none\n", 1, "streams is missing; it is needed, such as [streams.visits]"),
    ("[streams]\n", 1, "name at least one stream: [streams.visits]"),
    (STREAM.replace("epsilon", "#"), 1, IN_STREAM + "epsilon is missing; it is needed, such as"),
    ("\n[checkpoint]\n" + STREAM, 2, "checkpoint: recipient is missing: `panprivacy init` makes"),
    # kinds
    (stream('stdin = "csv"\n'), 4, IN_STREAM + "stdin must be a table"),
    (stream('ids = "ip"\n'), 4, IN_STREAM + "ids must be one of text, integers, addresses"),
    (stream("groups = [1]\n"), 4, IN_STREAM + "each entry of groups must be a text in quotes"),
    (stream('[streams.visits.syslog]\nlisten = "udp://127.0.0.1:1"\n'), 4,
     IN_STREAM + "syslog may be there several times: write [[streams.visits.syslog]]"),
    ("streams = 1\n", 1, "streams must be a table"),
    ("[streams]\nvisits = 1\n", 2, "streams: visits must be a table"),
    # the server
    ('[server]\nlisten = "localhost:80"\n' + STREAM, 2, f"server: {NOT_HTTP}"),
    ('[server]\nlisten = "::1:80"\n' + STREAM, 2, f"server: {NOT_HTTP}"),
    ('[server]\nlisten = "[127.0.0.1]:80"\n' + STREAM, 2, f"server: {NOT_HTTP}"),
    ('[server]\nlisten = "127.0.0.1:65536"\n' + STREAM, 2, f"server: {NOT_HTTP}"),
    ('[server]\nlisten = "unix:a.sock"\n' + STREAM, 2, f"server: {NO_SOCKET}"),
    (f'[server]\nlisten = "unix:/{107 * "a"}"\n' + STREAM, 2, "server: listen must name a path of"),
    ('[server]\ntimeout = "0s"\n' + STREAM, 2, "server: timeout must be a length of time, such as"),
    ('[server]\ntimeout = "2d"\n' + STREAM, 2, "server: timeout must be at most 1d"),
    ("[server]\n\nmax_body_bytes = 0\n" + STREAM, 3, "server: max_body_bytes must be a whole"),
    ("[server]\nmax_waiting_bytes = 9\n" + STREAM, 2, "server: max_waiting_bytes must be at least"),
    ('[server]\ndirectory = "gone"\n' + STREAM, 2, "server: directory: there is no folder "),
    ('[releases]\nstore = "mysql://me:secret@db"\n' + STREAM, 2, "releases: store must be sqlite:"),
    ('[releases]\nstore = "sqlite:///:memory:"\n' + STREAM, 2, "releases: store must be sqlite:"),
    ('[checkpoint]\nrecipient = "age1x"\n' + STREAM, 2, "checkpoint: recipient must be a public"),
    (f'[checkpoint]\nrecipient = "{RECIPIENT}"\nevery = "x"\n' + STREAM, 3,
     "checkpoint: every must be a length of time"),
    # tokens
    (token("", '[[tokens]]\nname = "web"\nmay = ["read"]\nsha256 = "' + 64 * "0" + '"\n'), 6,
     "tokens: name must be another one: two tokens have it"),
    (token("", f'[[tokens]]\nname = "b"\nmay = ["read"]\nsha256 = "{HASH.upper()}"\n'), 8,
     "tokens: sha256 must be another one: it is that of 'web'"),
    (token('streams = ["visit"]\n'), 5, "tokens: streams names 'visit', which is none; "),
    (token("streams = []\n"), 5, "tokens: streams must name at least one stream"),
    (token("").replace('["ingest"]', "[]"), 3, "tokens: may must name at least one of ingest,"),
    (token("").replace('["ingest"]', '["write"]'), 3, "tokens: each entry of may must be one of"),
    (token("").replace(HASH, "pp_secret"), 4, "tokens: sha256 must be the 64 hexadecimal digits"),
    (token("").replace('"web"', '""'), 2, "tokens: name must not be empty"),
    # clocks
    (STREAM.replace("1d", "1 day"), 3, IN_STREAM + "window must be a length of time, such as 30s"),
    (STREAM.replace("1d", "9" * 400 + "d"), 3, IN_STREAM + "window must be a length of time"),
    (STREAM.replace("1d", "3661d"), 3, IN_STREAM + "window must be at most 3,660d"),
    (stream('every = "1h"\n'), 4, IN_STREAM + "every needs releases of at least 2"),
    (stream('releases = 2\nevery = "1d"\n'), 5, IN_STREAM + "every must be shorter"),
    (stream('releases = 3\nevery = "12h"\n'), 5, IN_STREAM + "every and releases do not fit: 2"),
    (stream("releases = 0\n"), 4, IN_STREAM + "releases must be a whole number of at least 1"),
    # what is counted
    (stream(epsilon="0"), 2, IN_STREAM + "epsilon must be a positive finite number"),
    (stream(epsilon="inf"), 2, IN_STREAM + "epsilon must be a positive finite number"),
    (stream(epsilon="1e400000000"), 2, IN_STREAM + "epsilon must be a positive finite"),
    (stream(epsilon='"1/0"'), 2, IN_STREAM + "epsilon must be a positive finite number"),
    (stream(epsilon="[]"), 2, IN_STREAM + "epsilon must be a positive finite number"),
    (stream(epsilon="1e7"), 2, IN_STREAM + "epsilon must be at most 1,000,000"),
    (stream("releases = 1e18\n"), 4, IN_STREAM + "releases must be at most 1,000,000,000"),
    (stream("confidence = 1\n"), 4, IN_STREAM + "confidence must lie strictly between 0 and 1"),
    (stream("retries = 1_000_001\n"), 4, IN_STREAM + "retries must be at most 1,000,000"),
    # how it is written
    (stream().partition("[[")[0], 1, IN_STREAM + "stat is missing; it is needed, such as "
     '[[streams.visits.stat]] with name = "distinct"'),
    (OLD + "stat = []\n", 4, IN_STREAM + TABLES + '"distinct", and below it the sizes'),
    (OLD + 'stat = ["distinct"]\n', 4, IN_STREAM + TABLES + '"distinct", and'),
    (OLD + 'stat = ["cropped-sum", "distinct"]\n', 4, IN_STREAM + TABLES + '"cropped-sum", and'),
    (OLD + 'stat = "density"\nuniverse = 9\n', 4, IN_STREAM + TABLES + '"density", and below it'),
    (OLD + 'stat = ["a\\nb"]\n', 4, IN_STREAM + TABLES + '"distinct", and'),
    (OLD + 'stat = [{name = "density"}, "distinct"]\n', 4, IN_STREAM + TABLES),
    (OLD + "stat = 1979-05-27\n", 4, IN_STREAM + TABLES),
    (OLD + '[streams.visits.stat]\nname = "distinct"\n', 4,
     IN_STREAM + "stat may be there several times: write [[streams.visits.stat]]"),
    (stream("\nuniverse = 9\n"), 5, IN_STREAM + "universe belongs to a statistic: say it in its "
     "table [[streams.visits.stat]]"),
    (stream("exactly = 1\n"), 4, IN_STREAM + "exactly belongs to a statistic: say it in its"),
    (stream(stat=""), 4, IN_STAT + 'name is missing; it is needed, such as name = "distinct"'),
    (stream("\n", "expected = 9\n"), 5, IN_STAT + "name is missing; it is needed, such as"),
    (stat("distnct"), 5, IN_STAT + "name: there is no statistic of that name: did you mean dis"),
    (stat("median"), 5, IN_STAT + "name: there is no statistic of that name: there are distinct, "
     "density, overlap, both, incidence, cropped-sum, threshold, heavy-hitters, "
     "moment, inner-product, running-count, running-distinct, running-cropped-sum, "
     "running-heavy-hitters and histogram"),
    (stream(stat="name = 5\n"), 5, IN_STAT + "name: there is no statistic of that name: there are"),
    (stream(stat='name = ["distinct"]\n'), 5, IN_STAT + "name: there is no statistic of that name"),
    (stat("cropped-sum", "tua = 9"), 6, IN_STAT + "cropped-sum has no tua: did you mean tau?"),
    (stat("distinct", "zzz = 9"), 6, IN_STAT + "distinct has no zzz: its sizes are expected, memo"),
    (stat("distinct", "epsilon = 9"), 6, IN_STAT + "distinct has no epsilon: its sizes are"),
    (stat("distinct", '"a\\nb" = 9'), 4, IN_STAT + "distinct has no a b: its sizes are expected"),
    (stat("cropped-sum", "expected = 9"), 4, IN_STAT + "cropped-sum needs tau: "
     "the most that a user counts for"),
    (stat("cropped-sum", "tau = 9", "signed = true"), 7, IN_STAT + "cropped-sum has no signed: "),
    (stat("distinct", 'as = "A b"'), 6, IN_STAT + "as must be 1 to 64 of a-z, 0-9, _ and -, first"),
    (stat("distinct", "as = 1"), 6, IN_STAT + "as must be 1 to 64 of a-z, 0-9, _ and -, first"),
    (stream(stat=f'name = "distinct"\n\n{TABLE}name = "distinct"\n'), 7,
     IN_STAT + "two statistics are called distinct: give one another name with as"),
    # kinds of values
    (stat("distinct", 'memory = "1"'), 6, IN_STAT + "memory" + NO_NUMBER),
    (stat("distinct", "memory = 1.5"), 6, IN_STAT + "memory" + NO_NUMBER),
    (stat("distinct", "memory = true"), 6, IN_STAT + "memory" + NO_NUMBER),
    (stat("distinct", "memory = 1979-05-27"), 6, IN_STAT + "memory" + NO_NUMBER),
    (stat("distinct", "memory = {a = 1}"), 6, IN_STAT + "memory" + NO_NUMBER),
    (stat("distinct", "memory = 0"), 6, IN_STAT + "memory" + NO_NUMBER),
    (stat("distinct", "memory = nan"), 6, IN_STAT + "memory" + NO_NUMBER),
    (stat("distinct", "memory = 1e400"), 6, IN_STAT + "memory" + NO_NUMBER),
    (stat("distinct", "memory = 1e13"), 6, IN_STAT + "memory must be at most 68,719,476,736"),
    (stat("distinct", "expected = true"), 6, IN_STAT + "expected" + NO_NUMBER),
    (stat("distinct", "expected = 1979-05-27"), 6, IN_STAT + "expected" + NO_NUMBER),
    (stat("distinct", 'expected = "many"'), 6, IN_STAT + "expected must be a number of users, or "),
    (stat("distinct", "expected = [1, 2, 3]"), 6, IN_STAT + "expected must be one number of users"),
    (stat("distinct", 'expected = "9:1"'), 6, IN_STAT + "expected must run from low to high"),
    (stat("distinct", "signed = 1"), 6, IN_STAT + "signed must be true or false"),
    (stat("distinct", 'deletions = "true"'), 6,
     IN_STAT + 'deletions must be true or false, or "strict"'),
    (stat("incidence", "bound = 9", "expected = 1e4", 'exactly = "x"'), 8,
     IN_STAT + "exactly must name states, such as 3, or 0,1,5, or 0:8 for 0 to 8"),
    (stat("incidence", "bound = 9", "expected = 1e4", "exactly = 1.5"), 8,
     IN_STAT + "exactly: name a state, or several, as whole numbers"),
    (stat("incidence", "bound = 9", "expected = 1e4", "at_least = [true]"), 8,
     IN_STAT + "at_least must be a whole number from 1 to 9, the bound"),
    (stat("incidence", "bound = 9", "expected = 1e4", 'exactly = "0:10"'), 8,
     IN_STAT + "exactly must lie within 0 to 9, the bound: raise the bound"),
    (stat("incidence", "bound = 9", "expected = 1e4", "exactly = 0"), 4,
     IN_STAT + "without universe nobody knows how many users came exactly 0 times"),
    (stat("incidence", "bound = 9", "expected = 1e4", 'cropped_moment = "9*2"'), 8,
     IN_STAT + "cropped_moment must name powers, such as 10**2, or 10**2,5**3"),
    (stat("incidence", "bound = 9", "expected = 1e4", 'law = "x"'), 8,
     IN_STAT + "law: no law has this recipe; str() of a law writes one, such as flat 7 1/2"),
    # what cannot be counted
    (stat("distinct", "deletions = true", "bound = 2"), 4,
     IN_STREAM + "distinct needs delta: the column that says"),
    (stat("distinct", "deletions = true"), 6, IN_STAT + "deletions needs bound: the largest sum"),
    (stat("distinct", 'deletions = "strict"', "bound = 2"), 7,
     IN_STAT + "bound and signed are for deletions = true; in a strict stream a user is in or out"),
    (stat("distinct", 'deletions = "strict"'), 4,
     IN_STREAM + "distinct needs delta: the column that says"),
    (stat("distinct", "bound = 2"), 6, IN_STAT + "bound and signed are for deletions"),
    (stat("density"), 4, IN_STAT + "density needs universe: how many users there could be"),
    (stat("density", "universe = 1000", above='ids = "text"\n'), 4,
     IN_STREAM + 'ids must be "integers": with a universe of N, they are 0 to N-1'),
    (stat("incidence"), 4, IN_STAT + "incidence needs bound: the largest sum of a user's deltas"),
    (stat("incidence", "bound = 2"), 4, IN_STAT + "say universe (how many users there could be), "
     "or for open-ended ids expected (the most that may come)"),
    (stat("incidence", "bound = 2", "universe = 9", "expected = 3"), 8,
     IN_STAT + "expected is for open-ended ids: a universe says how many"),
    (stat("threshold"), 4, IN_STAT + "threshold needs threshold: the state from"),
    (stat("threshold", "threshold = 9"), 6, IN_STAT + "threshold needs universe: how"),
    (stat("threshold", "universe = 9_000", "threshold = 9", "bound = 5"), 7,
     IN_STAT + "threshold (9) exceeds the bound (5)"),
    (stat("threshold", "universe = 9_000", "threshold = 1"), 7,
     IN_STAT + "threshold must be at least 2"),
    (stat("threshold", "universe = 9_000", "threshold = 2"), 1,
     IN_STREAM + 'ids must be "integers"'),
    (stat("cropped-sum", "tau = 9"), 4, IN_STAT + "say either universe (how many users there"),
    (stat("cropped-sum", "tau = 9", "bound = 5", "expected = 99"), 6,
     IN_STAT + "tau (9) exceeds the bound (5)"),
    (stat("cropped-sum", "tau = 9", 'expected = "9:99"', "cells = 9"), 8,
     IN_STAT + "a range of expected users is planned by memory, not by cells"),
    (stat("heavy-hitters", "k = 9"), 4, IN_STAT + "heavy-hitters needs total: what all deltas"),
    (stat("heavy-hitters", "k = 100", "total = 99"), 7, IN_STAT + "total (99) must be at least"),
    # noise
    (stat("threshold", "universe = 9", "threshold = 2"), 4,
     IN_STAT + "this plan gives a standard deviation of"),
    (stream(stat=f'name = "distinct"\n{TABLE}name = "distinct"\nas = "few"\nexpected = 5\n'), 6,
     IN_STAT + "this plan gives a standard deviation of"),
    (stream('by = "p"\ngroups = ["a", "b"]\n',
            f'name = "distinct"\n{TABLE}name = "distinct"\nas = "few"\nexpected = 5\n'), 8,
     IN_STAT + "this plan gives a standard deviation of"),
    # windows
    (stream('zone = "Europe/Pariss"\n'), 4,
     IN_STREAM + "zone must be the name of a time zone, such as Europe/Paris or UTC; did you mean "
     "Europe/Paris?"),
    (stream('zone = ""\n'), 4, IN_STREAM + "zone must be the name of a time zone"),
    (stream("zone = 1\n"), 4, IN_STREAM + "zone must be a text in quotes"),
    # columns and groups
    (stream('prefix = "24:56"\n'), 4, IN_STREAM + 'prefix is for ids = "addresses"'),
    (stream('ids = "addresses"\nprefix = "24:560"\n'), 5, IN_STREAM + "prefix must be how many"),
    (stream('delta = "user"\n'), 1, IN_STREAM + "column 'user' is asked for twice"),
    (stream('by = "page"\n'), 4, IN_STREAM + "by and groups go together"),
    (stream("per_user = 2\n"), 4, IN_STREAM + "per_user and ignore_others are for by and groups"),
    (stream('by = "p"\ngroups = ["a", ""]\n'), 5, IN_STREAM + "groups must not be empty texts"),
    (stream('by = "p"\ngroups = ["a"]\nper_user = 2\n'), 6, IN_STREAM + "per_user must be at most"),
    (STREAM.replace("visits", "Visits"), 1, "streams.Visits: the name of a stream must be 1 to 64"),
    # sources
    (syslog("udp://127.0.0.1:5514", "udp://127.0.0.1:05514"), 10,
     "streams.visits.syslog: listen must be another address"),
    ('[server]\nlisten = "unix:/a"\n' + syslog("unix:/x/../a"), 10,
     "streams.visits.syslog: listen must be another address"),
    (syslog("127.0.0.1:5514"), 8, "streams.visits.syslog: listen must be unix:/run"),
    (syslog("udp://localhost:5514"), 8, "streams.visits.syslog: listen must be unix:/run"),
    (syslog("unix:/a") + "mode = 0o1000\n", 9, "streams.visits.syslog: mode must be at most 511"),
    (syslog("unix:/a") + 'format = "csv"\n', 9, "streams.visits.syslog: format must be one of"),
    (syslog("unix:/a") + "pattern = 'x'\n", 9, "streams.visits.syslog: pattern goes with format"),
    (syslog("unix:/a").replace("remote_addr", "ip"), 7,
     "streams.visits.syslog: there is no column 'ip'; the fields of a line are 'remote_addr'"),
    (stream("[streams.visits.stdin]\nformat = 'parquet'\n"), 5,
     "streams.visits.stdin: format must be one of csv, tsv, ndjson"),
    (stream("[streams.visits.stdin]\nformat = 'lines'\npattern = '(?P<user>'\n"), 6,
     "streams.visits.stdin: the pattern is no regular expression"),
    (stream("[streams.visits.stdin]\nformat = 'csv'\n")
     + stream("[streams.b.stdin]\nformat = 'csv'\n").replace("visits", "b"), 11,
     "streams.b.stdin: only one stream can read standard input, and visits does"),
    # the file
    (f"{STREAM}# \n# age-secret-key-1qqq", 7, NEVER),
    (b"a = 1\n\nb = '\xff'", 3, "this is not UTF-8"),
    ("a = 1\nb = = 2\n", 2, "this is not TOML: Invalid value"),
    ("a = 1\na = 2\n", 2, "this is not TOML: Cannot overwrite a value"),
    ('a = 1\nb = """\n\n', 4, "this is not TOML: "),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "says"), BAD, ids=[says for _, _, says in BAD])
def test_what_is_wrong_is_told_with_its_line(write, text, line, says):
    assert refusal(write(text)).startswith(f"config.toml, line {line}: {says}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = " + 5_000 * "[", "config.toml: the lists or tables in it are nested too deeply"),
        ("a = 1e99999999999999999999", "config.toml: this is not TOML: a number is out of range"),
        ("#" * (1 << 24 | 1), "config.toml is no configuration: it is longer than 16 MiB"),
    ],
    ids=["nested", "number", "long"],
)
def test_what_has_no_line(write, text, says):
    assert refusal(write(text)) == says


def test_a_file_that_cannot_be_read(tmp_path):
    ends = "; `panprivacy init` writes a configuration"
    assert refusal(tmp_path / "a.toml") == f"cannot read a.toml: No such file or directory{ends}"
    assert refusal(tmp_path).startswith(f"cannot read {tmp_path.name}: Is a directory")
    assert refusal("a\0.toml").startswith("cannot read a .toml: ")


@pytest.mark.parametrize(
    "text",
    [
        "# AGE-SECRET-KEY-1SECRET\n",
        '[releases]\nstore = "postgres://me:SECRET@db"\n' + STREAM,
        TOKEN + '"SECRET"\n' + STREAM,
        '[checkpoint]\nrecipient = "SECRET"\n' + STREAM,
    ],
)
def test_no_message_shows_what_may_be_secret(write, text):
    assert "SECRET" not in refusal(write(text)).replace("AGE-SECRET-KEY-", "")


@pytest.mark.long
def test_an_impossible_budget_is_refused_when_the_file_is_read(read):
    bad = stream(stat='name = "distinct"\nexpected = 50\n', epsilon="0.01")
    with pytest.raises(PlanError, match=r"line 4: streams\.visits\.stat: this plan gives"):
        Context().run(read, bad)


# Lines
