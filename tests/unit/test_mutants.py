"""Small things that privacy and exactly-once rest on, each of which no other test would miss."""

from __future__ import annotations

import importlib
import inspect
import math
import os
import pkgutil
import sys
from dataclasses import is_dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import panprivacy as pp
from panprivacy import guarantee
from panprivacy.addressing import FEISTEL_BITS, FEISTEL_ROUNDS, Sampled
from panprivacy.audit.ideal import MemoryStorage
from panprivacy.cells.difference_sets import residues
from panprivacy.cells.law import Law, high_and_low, hit_and_miss
from panprivacy.continual import Counter
from panprivacy.errors import InputError
from panprivacy.federated.count_nonzero import CountNonZero
from panprivacy.federated.device import Device
from panprivacy.federated.elgamal import DecryptionKey
from panprivacy.federated.histogram import Histogram
from panprivacy.federated.mean import Mean
from panprivacy.federated.promise import Promise
from panprivacy.federated.task import Task
from panprivacy.federated.two_servers import TwoServers
from panprivacy.hashing import may_be_number
from panprivacy.ids import read_ids, rows_by_code
from panprivacy.service.stream import Stream
from panprivacy.sources import Column, open_source
from panprivacy.statistics.grid import Grid
from panprivacy.testing import SeededCoins

MASK = (1 << 64) - 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: pp.Incidence(universe=40, bound=3, epsilon=1),
        lambda: pp.CroppedSum(universe=40, tau=3, epsilon=1),
        lambda: pp.HeavyHitterCount(k=4, total=400, epsilon=1),
    ],
)
def test_a_counter_as_large_as_its_modulus_is_no_state(make):
    """A histogram would write beyond its end."""
    statistic = make()
    width = statistic.plan.table.nbytes // statistic.plan.table.cells
    modulus = statistic.plan.table.law.modulus
    front = statistic.state()[: -statistic.plan.table.nbytes]

    def state(counter):
        return front + counter.to_bytes(width, "little") * statistic.plan.table.cells

    make().check_state(state(modulus - 1))
    with pytest.raises(InputError, match="damaged"):
        make().check_state(state(modulus))


COMMON = b'::1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 304 - '


@pytest.mark.parametrize("after", [b"", COMMON + b'"-" "b"\n', b'" "b"\n'])
def test_a_backslash_before_a_newline_escapes_nothing(after, tmp_path):
    """Two lines stay two, and the scan does not pass the end of a block."""
    file = tmp_path / "access.log"
    file.write_bytes(COMMON + b'"-" "b"\n' + COMMON + b'"a\\\n' + after)
    columns = [Column("remote_addr")]
    with (
        open_source(str(file), columns=columns, format="combined") as source,
        pytest.raises(InputError) as refused,
    ):
        list(source.batches())
    assert refused.value.row == 2


def fold(one, other):
    product = one * other
    return (product & MASK) ^ (product >> 64)


def permuted(value, universe, key):
    """The permutation as its page describes it, with Python's integers."""
    bits = max(FEISTEL_BITS, (universe - 1).bit_length())
    right_bits = bits >> 1
    right_mask, left_mask = (1 << right_bits) - 1, (1 << (bits - right_bits)) - 1

    def round_of(half, number):
        whitened = half ^ key[0] ^ (number * 0x9E3779B97F4A7C15 & MASK)
        return fold(whitened, (key[1] ^ (number * 0xD1B54A32D192ED03 & MASK)) | 1)

    while True:
        left, right = value >> right_bits, value & right_mask
        for number in range(0, FEISTEL_ROUNDS, 2):
            left ^= round_of(right, number) & left_mask
            right ^= round_of(left, number + 1) & right_mask
        value = left << right_bits | right
        if value < universe:
            return value


@pytest.mark.parametrize("universe", [200, 1_000, 70_000])
def test_a_sample_is_drawn_with_a_key_of_each_round(universe):
    key = bytes(range(1, 17))
    words = [int.from_bytes(key[at : at + 8], "little") for at in (0, 8)]
    users = np.arange(0, universe, universe // 50)
    (slots,) = Sampled(universe, universe, key).slots(read_ids(users))
    assert slots.tolist() == [permuted(int(user), universe, words) for user in users]


def test_a_cropped_sum_without_noise_reaches_half_a_count_around_it():
    """What is left is that counts are whole, and a normal law says nothing of that."""
    statistic = pp.CroppedSum(universe=40, tau=1, epsilon=100)
    statistic.update(list(range(13)))
    answer = statistic.release()
    assert answer.value == pytest.approx(13)
    assert answer.low <= 12.51
    assert answer.high >= 13.49


CHANGING = {
    "Body", "EnumeratedCoins", "Memory", "PlannedCoins", "ShiftedCoins", "State", "_Attempt",
    "_Reader", "_Shard",
}  # fmt: skip
"""States, coins of the audit, what is known of others. The rest is public, cached, and shared."""


def test_what_is_public_cannot_be_changed():
    found = {}
    for module in pkgutil.walk_packages(pp.__path__, "panprivacy."):
        for kind in vars(importlib.import_module(module.name)).values():
            if isinstance(kind, type) and kind.__module__ == module.name and is_dataclass(kind):
                parameters = vars(kind).get("__dataclass_params__")
                found[kind] = parameters is None or parameters.frozen
    assert {kind.__name__ for kind, frozen in found.items() if not frozen} == CHANGING
    assert len(found) > 150


@pytest.mark.parametrize("place", ["told", "known"])
def test_a_table_of_steps_is_none_if_a_number_of_either_kind_is_none(place):
    cells = pp.RunningCount(horizon=16, bound=1, epsilon=1).plan.table
    table = cells.born(SeededCoins(1))
    assert cells.is_table(table)
    _, told, known = cells._parts(table)
    numbers = {"told": told, "known": known}[place]
    numbers.flat[0] = np.inf
    assert not cells.is_table(table)


def test_where_a_tree_began_is_read_whatever_else_is_damaged():
    cells = pp.RunningCount(horizon=16, bound=1, epsilon=1).plan.table
    for damaged in (0, 1):
        table = cells.born(SeededCoins(1))
        known = cells._parts(table)[2]
        known[:2] = 3
        known[damaged] = np.nan
        (running,) = cells.sums(table, 7, SeededCoins(1))
        assert running._memory.tick == (7 if damaged == 0 else 4)


def test_who_ends_at_the_bound_is_not_beyond_it():
    plan = pp.FrequencyMoment(order=2, bound=5, signed=True, epsilon=1).plan
    assert plan.facts(np.array([5, -5, 0])) == []
    (told,) = plan.facts(np.array([5, 6, -6]))
    assert told.startswith("2 users")


@pytest.mark.parametrize(("signed", "least"), [(False, 0), (True, -5)])
def test_states_reach_down_to_nothing_or_to_minus_the_bound(signed, least):
    plan = pp.FrequencyMoment(order=2, bound=5, signed=signed, epsilon=1).plan
    assert plan.states == (least, 5)
    assert f"add up to {least} to 5 at" in plan.conditions[0]


def test_cells_and_signs_of_four_users_are_independent():
    """A polynomial of four coefficients, and a point."""
    assert pp.FrequencyMoment(order=2, bound=5, epsilon=1).plan.key_bytes == 8 * (4 + 1)


def test_a_task_has_a_version_and_no_more_than_so_many_ticks():
    promise = Promise(epsilon=Fraction(1))
    sizes = {"key": b"\x02" + bytes(32)}
    task = Task.new(CountNonZero.planned(promise), promise, horizon=2**31, **sizes)
    assert task.version == 1, "devices know it by that"
    with pytest.raises(pp.PlanError, match="horizon"):
        Task.new(CountNonZero.planned(promise), promise, horizon=2**31 + 1, **sizes)


def test_a_counter_has_seen_no_more_than_so_many_intrusions():
    """It is refused before the state is read: noise for so many would take for ever."""
    with pytest.raises(pp.PlanError, match="announced must be"):
        Counter(10, epsilon=1).resume(b"no state", released=0, announced=2**31 + 1)
    with pytest.raises(InputError):
        Counter(10, epsilon=1).resume(b"no state", released=0, announced=2**31)


def test_a_device_says_what_all_know():
    promise = Promise(epsilon=Fraction(1))
    key = DecryptionKey.generate(pp.SystemCoins())
    task = Task.new(CountNonZero.planned(promise), promise, horizon=1, key=bytes(key.public))
    device = Device(task, MemoryStorage())
    assert (device.task, device.tick, device.reported) == (task, 0, False)
    device.observe(True)
    assert (device.task, device.tick, device.reported) == (task, 1, False)
    device.report()
    assert (device.task, device.reported) == (task, True)


def test_each_tree_of_a_count_without_an_end_has_eight_times_the_steps_of_the_one_before():
    mechanism = Counter(epsilon=1)._kept.mechanism
    assert [mechanism._trees(tick)[0] for tick in (0, 255, 256, 2_303, 2_304, 18_688)] == [
        0, 0, 256, 256, 2_304, 18_688,
    ]  # fmt: skip


@pytest.mark.parametrize("came", [0, 31])
def test_a_key_that_comes_short_is_none(came, monkeypatch):
    """The rest of it would be zeros."""
    monkeypatch.setattr(os, "readv", lambda device, parts: came)
    with pytest.raises(OSError, match="too few random bytes"):
        pp.SystemCoins().bernoulli(Fraction(1, 3), 1)


@pytest.mark.parametrize("horizon", [1, 2, 7, 100, 1_000])
@pytest.mark.parametrize("open_steps", [False, True])
def test_the_largest_scale_is_that_of_some_step(horizon, open_steps):
    mechanism = Counter(horizon, epsilon=1, open_steps=open_steps)._kept.mechanism
    scales = [one for tick in range(horizon) for one in mechanism.scales(tick) if one is not None]
    assert mechanism.largest_scale == max(scales)


@pytest.mark.parametrize("epsilon", [Fraction(1, 1_000), Fraction(1, 10**6)])
def test_a_small_epsilon_is_spent_by_weights_that_many_steps_lie_between(epsilon):
    high, low = high_and_low(10, epsilon)
    assert high - low > (1 << 16) - 2


def test_a_clock_that_is_set_by_whole_windows_cuts_none():
    """In Newfoundland it was set forward by an hour at 0:01."""
    change = 1_268_537_460  # 2010-03-14, 3:31 UTC
    grid = Grid(1_800, "America/St_Johns")
    for second in (change - 1, change, change + 1_000):
        assert grid.around(second) == (change - 60, change - 60 + 1_800)


def test_a_delta_is_used_by_a_single_device_too():
    promise = Promise(epsilon=Fraction(1), delta=Fraction(1, 100), devices=1)
    assert CountNonZero.planned(promise).epsilon_0 == Fraction(519, 512)


def test_a_joint_loss_rests_on_the_upper_bound_of_an_exponential(monkeypatch):
    """Both are the same in 59 digits, so that no number of ours can tell."""
    monkeypatch.setattr(guarantee, "exp_bounds", lambda _: (Fraction(2), Fraction(3)))
    loss = guarantee.joint_loss.__wrapped__(Fraction(1, 2), Fraction(10))
    assert math.log(2) <= loss < math.log(2) + 1e-12


def test_rows_are_ordered_by_their_code_each_once():
    rows, ends = rows_by_code(np.array([2, 0, 2, 1, 0], np.int32), 4)
    assert (rows.tolist(), ends.tolist()) == ([1, 4, 3, 0, 2], [2, 3, 5, 5])


def test_a_state_is_checked_as_it_is_resumed():
    checked, resumed = (inspect.signature(one) for one in (Stream.check_state, Stream.resume))
    assert checked.parameters == resumed.parameters


def test_a_law_is_read_as_one_of_epsilon_27_beyond_that():
    most = hit_and_miss(residues(11), Fraction(27), 0)
    for epsilon in (Fraction(55, 2), Fraction(40)):
        assert hit_and_miss(residues(11), epsilon, 0) == most
    assert hit_and_miss(residues(11), Fraction(26), 0) < most


def test_a_range_that_takes_longer_than_a_minute_is_not_searched():
    key = DecryptionKey.generate(pp.SystemCoins())
    assert len(key.small_sums(b"", 1, 1 << 40)) == 0
    with pytest.raises(pp.PlanError, match="low to high"):
        key.small_sums(b"", 0, 1 << 40)


def test_a_law_of_the_largest_sum_is_one_however_floats_round():
    weights = np.full(12, 2**61 // 12)
    weights[0] += 2**61 - weights.sum()
    assert weights.sum(dtype=float) > 2**61 == weights.sum()
    assert Law("custom", weights).weights.sum() == 2**61
    weights[0] += 1
    with pytest.raises(pp.PlanError, match="at most 2"):
        Law("custom", weights)


def test_no_text_is_no_number_whatever_comes_after_it():
    text = np.frombuffer(b"7", np.uint8)
    assert [bool(may_be_number(text, 0, end)) for end in (0, 1)] == [False, True]


@pytest.mark.parametrize(("named", "most"), [("releases", 10**9), ("intrusions", 100)])
def test_a_plan_covers_no_more_than_so_many_releases_and_intrusions(named, most):
    with pytest.raises(pp.PlanError, match=f"^{named} must be"):
        pp.Density(universe=8, epsilon=10**6, **{named: most + 1})
    pp.Density(universe=8, epsilon=10**6, **{named: most})


SERVERS = {"leader": "02" * 33, "helper": "03" * 33, "collusion": "none"}
LIMITS = {
    "the users of a density": (lambda most: pp.Density(universe=most, epsilon=1), 1 << 62),
    "a state of a moment": (
        lambda most: pp.FrequencyMoment(order=2, bound=most, epsilon=1),
        1 << 20,
    ),
    "steps": (lambda most: Counter(most, epsilon=1), 1 << 40),
    "steps by segments": (lambda most: Counter(most, epsilon=1, method="segments"), 1 << 24),
    "what one event adds": (lambda most: Counter(1, epsilon=1, bound=most), 1 << 40),
    "all events": (lambda most: Counter(1 << 20, epsilon=1, bound=most), 1 << 34),
    "all events of many": (lambda most: Counter(epsilon=1, bound=most), 1 << 24),
    "an event that is answered": (
        lambda most: Counter(9, epsilon=1, bound=most, method="response"),
        1 << 12,
    ),
    "an event that is told late": (
        lambda most: Counter(9, epsilon=1, bound=most, method="delayed"),
        1 << 12,
    ),
    "an event of a factorised count": (lambda most: Counter(9, rho=1, bound=most), 1_000),
    "the events of a mean": (lambda most: Mean(most=most, variance=Fraction(1)), 1_000),
    "the noise of a mean": (lambda most: Mean(most=1, variance=Fraction(most)), 10**8),
    "the events of a histogram": (lambda most: Histogram(most=most, epsilon_0=Fraction(1)), 1_000),
    "the epsilon of a promise": (lambda most: Promise(epsilon=Fraction(most)), 100),
    "the devices of a promise": (lambda most: Promise(epsilon=Fraction(1), devices=most), 10**7),
    "reports to two servers": (lambda most: TwoServers(batch=most, **SERVERS), 10**7),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_the_last_that_is_taken(name):
    """What was planned up to it once is planned for ever, and what no test has seen is not."""
    make, most = LIMITS[name]
    make(most)
    with pytest.raises(pp.PlanError):
        make(most + 1)


@pytest.mark.parametrize("named", ["released", "announced"])
def test_no_fewer_than_none_have_left_or_were_announced(named):
    statistic = pp.Density(universe=8, epsilon=4, intrusions=1, releases=2)
    for use in (statistic.check_state, statistic.resume):
        with pytest.raises(pp.PlanError, match=named):
            use(statistic.state(), **{named: -1})


ROWS = 1 << 13
IDS, DELTAS = np.arange(ROWS), np.where(np.arange(ROWS) % 3, 1, -1)
OFTEN = {"epsilon": 9, "releases": 2}
AT_ONCE = {
    "coins": lambda: pp.SystemCoins().bernoulli(Fraction(1, 3), ROWS),
    "one of three": lambda: pp.SystemCoins().categorical([1, 2, 3], ROWS),
    "noise": lambda: pp.SystemCoins().discrete_laplace(Fraction(20), ROWS),
    "a share": lambda: (pp.Density(universe=ROWS, **OFTEN), IDS),
    "a share of a sample": lambda: (pp.Density(universe=1 << 40, **OFTEN), IDS),
    "users": lambda: (pp.DistinctCount(expected=ROWS, **OFTEN), IDS),
    "users by name": lambda: (
        pp.DistinctCount(expected=ROWS, **OFTEN),
        [b"user %d" % number for number in range(ROWS)],
    ),
    "users who leave": lambda: (
        pp.DistinctCount(expected=ROWS, deletions="strict", **OFTEN),
        IDS,
        DELTAS,
    ),
    "counters": lambda: (pp.Incidence(universe=ROWS, bound=3, **OFTEN), IDS),
    "deltas": lambda: (pp.Incidence(universe=ROWS, bound=3, **OFTEN), IDS, DELTAS),
    "a cropped sum": lambda: (pp.CroppedSum(universe=ROWS, tau=3, **OFTEN), IDS),
    "heavy hitters": lambda: (pp.HeavyHitterCount(k=4, total=10 * ROWS, **OFTEN), IDS),
    "a moment": lambda: (pp.FrequencyMoment(order=2, bound=5, **OFTEN), IDS),
}


def lines_run(work):
    """How many lines of the package Python itself runs."""
    seen, before = 0, sys.gettrace()

    def traced(frame, event, _):
        nonlocal seen
        seen += event == "line"
        return traced if "panprivacy" in frame.f_code.co_filename else None

    sys.settrace(traced)
    try:
        work()
    finally:
        sys.settrace(before)
    return seen


@pytest.mark.parametrize("what", AT_ONCE)
def test_what_is_secret_is_no_object_of_python_for_each_row(what):
    """Such objects are freed without being wiped."""
    make = AT_ONCE[what]

    def counted(statistic, *columns):
        statistic.update(*columns)
        statistic.release()

    def ready():
        made = make()
        return partial(counted, *made) if isinstance(made, tuple) else make

    ready()()  # kernels are compiled, and decoders planned, once
    assert lines_run(ready()) < ROWS // 2
