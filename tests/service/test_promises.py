"""Every surface prints the figures of one object, for every kind of stream.

The object is `Guarantee`. The rows are kinds of streams; each test reads one surface.
"""

from __future__ import annotations

import contextlib
import io
import json
from datetime import UTC, datetime
from fractions import Fraction
from types import SimpleNamespace

import pyrage
import pytest
from prometheus_client.parser import text_string_to_metric_families as families_of

from panprivacy.cli.contributing import Contributing, ContributionFile
from panprivacy.cli.output import LossOverWindows, Printed, print_json, print_text
from panprivacy.cli.publishing import InWindows, Schedule
from panprivacy.cluster.gateway import ClusterStream
from panprivacy.cluster.releaser import _Costs
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.task import Task
from panprivacy.privacy.guarantee import DAY_SECONDS, float_above, format_rounded_up
from panprivacy.service.config.loading import load
from panprivacy.service.dashboard.parts import gauges
from panprivacy.service.dashboard.promise import StreamPromise
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.stream import Stream
from panprivacy.service.web.metrics import exposition
from panprivacy.service.web.openapi import document as openapi
from panprivacy.statistics.explain.document import as_document
from panprivacy.statistics.explain.reading import states_in
from panprivacy.statistics.explain.sentences import explained
from panprivacy.statistics.release import Answers
from panprivacy.tables.slices import Slice
from tests.dashboard.conftest import page
from tests.service.two_servers import honest, task_of

__all__ = ["page"]

KEY = str(pyrage.x25519.Identity.generate().to_public())
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
DISTINCT = '[[streams.s.stat]]\nname = "distinct"\nexpected = "100:10000"\n'
DENSITY = '[[streams.s.stat]]\nname = "density"\nuniverse = 1000\n'
INTEGERS = 'ids = "integers"\n'
THIRD = 'epsilon = "1/3"\n'
KINDS = {
    "plain": THIRD + INTEGERS + DENSITY,
    "groups": 'epsilon = 2\nby = "page"\ngroups = ["a", "b", "c"]\nper_user = 2\n'
    + INTEGERS + DENSITY,
    "several": "epsilon = 2\n" + INTEGERS + DENSITY + DISTINCT,
    "deletions": 'epsilon = 2\ndelta = "d"\n' + DISTINCT + "deletions = true\nbound = 3\n",
    "condition": 'epsilon = 2\ndelta = "d"\n' + INTEGERS
    + '[[streams.s.stat]]\nname = "moment"\nexpected = 100_000\nbound = 3\norder = 2\n',
    "moves": 'epsilon = 2\nreleases = 3\nevery = "1m"\nmoves = 400\n' + INTEGERS + DENSITY,
    "moving threshold": 'epsilon = 2\nreleases = 2\nevery = "1m"\nmoves = 50_000\n' + INTEGERS
    + '[[streams.s.stat]]\nname = "threshold"\nthreshold = 10\nuniverse = 100_000\n',
    "moving sum": 'epsilon = 2\nreleases = 3\nevery = "1m"\nmoves = 50_000\n' + INTEGERS
    + '[[streams.s.stat]]\nname = "cropped-sum"\ntau = 10\nuniverse = 100_000\n',
    "learn": THIRD + '[[streams.s.stat]]\nname = "distinct"\nexpected = "learn"\n',
    "contribute": THIRD + f'contribute = "{KEY}"\n' + INTEGERS + DENSITY,
    "running": THIRD + '[[streams.s.stat]]\nname = "running-count"\nhorizon = 100\n',
    "announced": 'epsilon = "13/3"\nintrusions = 2\n' + INTEGERS + DENSITY,
}  # fmt: skip


QUICK = "plain", "groups", "contribute", "running"


@pytest.fixture(
    params=[one if one in QUICK else pytest.param(one, marks=pytest.mark.long) for one in KINDS]
)
def config(request, tmp_path):
    path = tmp_path / "service.toml"
    path.write_text(f'[streams.s]\nwindow = "1d"\n{KINDS[request.param]}')
    return load(path).streams["s"]


@pytest.fixture
def promise(config):
    """The object."""
    return config.promised(config.make_counting().guarantee)


@pytest.fixture
def store(tmp_path):
    made = ReleaseStore(f"sqlite:///{tmp_path}/releases.sqlite")
    yield made
    made.close()


@pytest.fixture
def stream(config, store, tmp_path):
    return Stream("s", config, store, folder=tmp_path, clock=NOW.timestamp)


def loss_of(found):
    return found["epsilon"], found["delta"]


def printed(loss):
    return float_above(loss.epsilon), float_above(loss.delta)


def test_the_object_has_what_each_kind_asks_for(config, promise):
    """The figures that go wrong where a surface derives its own."""
    windows, year = promise.year(config.window_seconds)
    assert windows == 365
    expected = {
        "contribute": config.contribute is not None and year.epsilon == 365 * promise.epsilon,
        "running": promise.adjacency == "event" and year == promise.loss,
        "moves": year.delta == Fraction(365, 10**9) and year == promise.over(365),
    }
    kind = [
        "contribute" if config.contribute else None,
        "running" if promise.adjacency == "event" else None,
        "moves" if config.moves else None,
    ]
    assert all(expected[one] for one in kind if one)
    if not any(kind):
        assert year == promise.loss + promise.unseen_loss.times(364)
        assert year.epsilon < 100 * promise.epsilon


@pytest.mark.long
def test_plans_whose_states_cost_the_same_have_years_of_their_own(tmp_path, store):
    """What a window pays for is not told apart by the epsilon of its state."""
    kinds = "moving threshold", "moving sum"
    countings = [load_one(kind, tmp_path).make_counting() for kind in kinds]
    assert len({one.internals.releasing.state_epsilon for one in countings}) == 1
    years = [StreamPromise("s", load_one(kind, tmp_path)).year(store, NOW) for kind in kinds]
    whole = [one.whole_loss for one in years]
    assert whole == [one.guarantee.over(365) for one in countings]
    assert whole[0] != whole[1]


def check_document(said, promise, year):
    assert loss_of(said) == printed(promise.loss)
    assert Fraction(said["epsilon"]) >= promise.epsilon
    assert said["adjacency"] == promise.adjacency
    assert said["conditions"] == list(promise.conditions)
    assert loss_of(said["replace"]) == printed(promise.replaced)
    assert said["unseen"] == float_above(promise.unseen_loss.epsilon)
    assert said["crash"] == float_above(promise.crash)
    assert said["crash_again"] == float_above(promise.additional_crash)
    if year is not None:
        assert loss_of(said["year"]) == printed(year)
        assert said["year"]["windows"] == 365


def test_streams_are_described_by_it(config, stream, promise):
    said = json.loads(json.dumps(stream.described()))
    check_document(said, promise, promise.year(config.window_seconds)[1])
    assert said["guarantee"] == str(promise)
    schema = openapi()["paths"]["/v1/streams"]["get"]["responses"]["200"]
    (found,) = schema["content"].values()
    properties = found["schema"]["items"]["properties"]
    assert {*found["schema"]["items"]["required"], *properties} <= said.keys()
    assert promise.document().keys() <= properties.keys()


def test_metrics_are_read_from_it(config, stream, store, promise):
    engine = SimpleNamespace(
        store=store, streams={"s": stream}, waiting=False, keeper=SimpleNamespace(written=None)
    )
    families = {one.name: one for one in families_of(exposition(engine, []).decode())}
    year = promise.year(config.window_seconds)[1]
    for name, bound in [
        ("epsilon", promise.epsilon), ("delta", promise.delta),
        ("year_epsilon", year.epsilon), ("year_delta", year.delta),
    ]:  # fmt: skip
        (sample,) = families[f"panprivacy_stream_{name}"].samples
        assert sample.value == float_above(bound) >= bound
        assert sample.labels == {"stream": "s", "adjacency": promise.adjacency}
    told = families["panprivacy_stream_info"].samples
    assert [one.labels["condition"] for one in told] == list(promise.conditions or [""])
    assert {(one.value, one.labels["adjacency"]) for one in told} == {(1.0, promise.adjacency)}


def test_the_dashboard_reads_it(config, store, promise):
    shown_there = StreamPromise("s", config)
    assert shown_there.guarantee == promise
    assert shown_there.year(store, NOW).whole_loss == promise.year(config.window_seconds)[1]
    assert shown_there.year(store, NOW).loss == promise.over(1)
    spent = shown_there.spent(store, NOW, 0)
    assert spent.loss.delta == promise.delta


def test_the_gauges_of_the_dashboard_say_it(config, store, promise, page):
    there = StreamPromise("s", config)
    look = SimpleNamespace(
        spent=there.spent(store, NOW, 0), year=there.year(store, NOW), promise=there
    )
    gauges(look)
    said = " ".join(page.root.said)
    assert f"for one {promise.adjacency}" in said
    assert f"odds change by at most {promise.loss.says_of_odds(3)}" in said
    year = promise.year(config.window_seconds)[1]
    total = f"up to epsilon {year.text(3)}." if year.weak else f"of {year.text(3)}, with one seized"
    assert (total in said) == (promise.adjacency == "user")


def test_a_running_count_has_made_all_its_answers(tmp_path, store):
    """They go on from window to window, and so does their number."""
    path, now = tmp_path / "service.toml", [NOW.timestamp()]
    path.write_text(f'[streams.s]\nwindow = "1m"\n{KINDS["running"]}')
    config = load(path).streams["s"]
    promise = StreamPromise("s", config)
    stream = Stream("s", config, store, folder=tmp_path, clock=lambda: now[0])
    for made in range(1, 61):
        now[0] += 60
        stream.advance()
        (newest,) = store.answers(limit=1)
        spent = promise.spent(store, datetime.fromtimestamp(now[0], UTC), newest.number)
        assert (spent.releases.made, spent.releases.planned) == (made, 100)


def test_what_a_window_pays_for_has_its_promise(config, stream, store, promise):
    """So a later configuration does not change what it cost."""
    counting = config.make_counting()
    stream._releases.payment.make(NOW, NOW, counting.internals.releasing, 1)
    (begun,) = store.begun("s", NOW)
    assert (begun.promise.loss, begun.promise.unseen_loss) == (promise.loss, promise.unseen_loss)
    assert (begun.windows, begun.seen) == (1, 0)


def test_an_explanation_of_its_state_says_it(stream, promise):
    states = states_in(io.BytesIO(stream.state()))
    said = as_document(states)
    assert loss_of(said["together"]["promised"]) == printed(promise.loss)
    assert {one["adjacency"] for one in said["states"]} == {promise.adjacency}
    conditions = {each for one in said["states"] for each in one["conditions"]}
    assert {one["crash"] for one in said["states"]} == {float_above(promise.crash)}
    handed_out = "a contribution is the look at its window"  # which no state says
    assert conditions == {*promise.conditions} - {handed_out}
    told = [
        text
        for section in explained(states, [])
        for part in section.parts
        for text in (*part.sentences, *part.after)
    ]
    said_odds = format_rounded_up(promise.loss.odds, 4)
    assert any(f"factor of {said_odds}" in text for text in told) or len(states) > 1
    assert any("But for outcomes of probability" in one for one in told) == (promise.delta > 0)


def test_the_command_line_prints_it(config, promise):
    several = LossOverWindows(*promise.year(config.window_seconds))
    window = SimpleNamespace(start=NOW, end=NOW, complete=True)
    one = Printed(Answers([]), promise, 9, 0.95, window=window, loss=several)
    out, text = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out):
        print_json(one)
    said = json.loads(out.getvalue())
    check_document(said, promise, None)
    assert loss_of(said["loss"]) == printed(several.loss)
    with contextlib.redirect_stdout(text):
        print_text(one)
    assert f"over 365 windows, one of them seen, {several.loss}" in " ".join(
        text.getvalue().split()
    )


def test_the_windows_of_a_pipe_say_it(config):
    schedule = Schedule(releases=1, every=None, window=float(DAY_SECONDS))
    (said,) = InWindows(config.make_counting, schedule, 0.95).last()
    own = config.make_counting().guarantee
    assert said.loss == LossOverWindows(*own.year(DAY_SECONDS))
    assert said.guarantee == own
    seven = InWindows(config.make_counting, Schedule(1, None, float(DAY_SECONDS), 7), 0.95).last()
    assert [one.loss for one in seven] == [LossOverWindows(7, own.over(7))]


def test_a_shard_that_contributes_says_it(tmp_path):
    counting = load_one("plain", tmp_path).make_counting()
    place = ContributionFile(tmp_path / "part.age", KEY, None)
    (said,) = Contributing(counting, place, 0.95).last()
    assert said.guarantee.over(365).epsilon == 365 * counting.guarantee.epsilon


def load_one(kind, folder):
    path = folder / "one.toml"
    path.write_text(f'[streams.s]\nwindow = "1d"\n{KINDS[kind]}')
    return load(path).streams["s"]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["plain", "groups", "several", "deletions", "announced"])
def test_a_cluster_reads_its_own(kind, tmp_path, store):
    """What slices promise, with the intrusions of the configuration."""
    config = load_one(kind, tmp_path)
    counting = config.make_counting(Slice(0, 2, bytes(16)))
    releaser = SimpleNamespace(name="s", config=config, began=NOW, ends=NOW, made=0)
    releaser.announced = lambda: 0
    cluster = ClusterStream(
        None, counting, SimpleNamespace(shards=2), releaser, store, exposed=False
    )
    own = counting.guarantee
    assert cluster.guarantee.loss == own.loss
    assert cluster.guarantee.intrusions == config.intrusions
    check_document(
        json.loads(json.dumps(cluster.described())),
        cluster.guarantee,
        own.year(config.window_seconds)[1],
    )
    assert _Costs.of(counting, 1).state_epsilon == counting.internals.releasing.state_epsilon


DEVICES = {
    "each by itself": Promise(epsilon=Fraction(1, 3)),
    "in a sum": Promise(epsilon=Fraction(7, 3), delta=Fraction(1, 70), devices=2),
}


def check_devices(said, promise):
    """What a server of devices prints: every bound rounded up, and what it is about."""
    own = promise.guarantee
    assert loss_of(said) == printed(own.loss)
    assert Fraction(said["epsilon"]) >= promise.epsilon
    assert Fraction(said["delta"]) >= promise.delta
    assert (said["adjacency"], said["conditions"]) == ("device", list(own.conditions))
    assert loss_of(said["replace"]) == printed(own.replaced)
    assert said["guarantee"] == str(promise)
    assert str(own.loss) in said["guarantee"]


@pytest.mark.parametrize("kind", DEVICES)
def test_the_leader_of_two_servers_prints_it(kind, world):
    promise = DEVICES[kind]
    servers = task_of(batch=2).key
    both = world(Task.new(CountNonZero.planned(promise), promise, horizon=1, key=servers))
    both.leader.take([honest(both.task, [1]) for _ in range(3)])
    both.run()
    answer = both.leader.release()
    said = json.loads(answer)
    check_devices(said, promise)
    (row,) = said["answers"]
    assert row["low"] <= row["value"] <= row["high"]
    assert Fraction(row["epsilon"]) >= promise.epsilon
    assert both.leader.release() == answer
