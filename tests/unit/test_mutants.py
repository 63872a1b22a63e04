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

import msgspec
import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit.ideal import MemoryStorage
from panprivacy.continual import Counter
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.device import Device
from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.task import Task
from panprivacy.devices.federated.two_servers import TwoServers
from panprivacy.errors import InputError
from panprivacy.intake.sources import Column, open_source
from panprivacy.privacy import coins
from panprivacy.privacy.guarantee import exp_bounds, losses
from panprivacy.privacy.noise import leading_digits
from panprivacy.service.outgoing import announcements, payment
from panprivacy.service.stream import Stream
from panprivacy.statistics.catalogue import kinds
from panprivacy.statistics.grid import Grid
from panprivacy.tables.addressing import (
    FEISTEL_BITS,
    FEISTEL_ROUNDS,
    Dealt,
    Direct,
    Independent,
    Levelled,
    Sampled,
)
from panprivacy.tables.cells.difference_sets import residues
from panprivacy.tables.cells.law import Law, high_and_low, hit_and_miss
from panprivacy.tables.hashing import may_be_number
from panprivacy.tables.ids import read_ids, rows_by_code
from panprivacy.tables.slices import Slice
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

    make().internals.memory.check_state(state(modulus - 1))
    with pytest.raises(InputError, match="damaged"):
        make().internals.memory.check_state(state(modulus))


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
    "Body", "ClusterRecord", "CounterState", "Cut", "EnumeratedCoins", "Pending", "PlannedCoins",
    "ShiftedCoins", "State", "StreamRecord", "_Attempt", "_Bracket", "_Consumer", "_Problem",
    "_Run", "_Shard", "_Turn",
}  # fmt: skip
"""States, coins of the audit, what is known of others, a search. The rest is public and shared."""


DERIVED = {
    "DecompoundedReading", "HeavyCount", "LeavingPlan", "SoftThreshold", "_JoinedSlices",
    "_SeveralModels",
}  # fmt: skip
"""Of fields of others alone, which cannot be changed there either."""


def test_what_is_public_cannot_be_changed():
    found = {}
    for module in pkgutil.walk_packages(pp.__path__, "panprivacy."):
        for kind in vars(importlib.import_module(module.name)).values():
            if not isinstance(kind, type) or kind.__module__ != module.name:
                continue
            if issubclass(kind, msgspec.Struct):
                found[kind] = kind.__struct_config__.frozen
            elif is_dataclass(kind) and kind.__name__ not in DERIVED:
                parameters = vars(kind).get("__dataclass_params__")
                found[kind] = parameters is not None and parameters.frozen
    assert {kind.__name__ for kind, frozen in found.items() if not frozen} == CHANGING
    assert len(found) > 150


@pytest.mark.parametrize("place", ["told", "known"])
def test_a_table_of_steps_is_none_if_a_number_of_either_kind_is_none(place):
    cells = pp.RunningCount(horizon=16, bound=1, epsilon=1).plan.table
    table = cells.initial(SeededCoins(1))
    assert cells.is_table(table)
    _, told, known = cells._parts(table)
    numbers = {"told": told, "known": known}[place]
    numbers.flat[0] = np.inf
    assert not cells.is_table(table)


def test_where_a_tree_began_is_read_whatever_else_is_damaged():
    cells = pp.RunningCount(horizon=16, bound=1, epsilon=1).plan.table
    for damaged in (0, 1):
        table = cells.initial(SeededCoins(1))
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
    monkeypatch.setattr(coins, "_getrandom", None)
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
    monkeypatch.setattr(losses, "exp_bounds", lambda _: (Fraction(2), Fraction(3)))
    loss = losses.joint_loss.__wrapped__(Fraction(1, 2), Fraction(10))
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
    address = np.uint64(text.ctypes.data)
    assert [bool(may_be_number(address, np.uint64(n))) for n in (0, 1)] == [False, True]


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
    "the events of a histogram": (
        lambda most: DeviceHistogram(most=most, epsilon_0=Fraction(1)),
        1_000,
    ),
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
    for use in (statistic.internals.memory.check_state, statistic.resume):
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


SIZES = {
    "moment": {
        "bound": (1, 1 << 20), "cells": (1, 1 << 27), "memory": (1, 1 << 36), "clip": (0, 1 << 40),
        "order": (1, 2),
    },
    "inner-product": {
        "bound": (1, 1 << 20), "cells": (1, 1 << 27), "memory": (1, 1 << 36), "clip": (0, 1 << 40),
    },
    "distinct": {"memory": (1, 1 << 36), "bound": (1, 1 << 23)},
    "density": {"universe": (1, 1 << 62), "cells": (1, 1 << 39), "memory": (1, 1 << 36)},
    "incidence": {"bound": (1, (1 << 21) - 1), "universe": (1, 1 << 62), "cells": (1, 1 << 36)},
    "cropped-sum": {"tau": (1, 1 << 22), "bound": (1, 1 << 22), "universe": (1, 1 << 62)},
    "threshold": {"threshold": (1, 1 << 22), "bound": (1, 1 << 22), "cells": (1, 1 << 36)},
    "heavy-hitters": {"k": (1, 1 << 15), "total": (1, 1 << 60), "cells": (1, 1 << 36)},
    "running-count": {"horizon": (1, 10**9), "bound": (1, 1 << 20)},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "least", "most"),
    [(kind, name, *ends) for kind, sizes in SIZES.items() for name, ends in sizes.items()],
)
def test_a_size_is_taken_up_to_either_end(kind, name, least, most):
    field = kinds()[kind].entry.sizes.fields()[name]
    for taken in (least, most):
        assert field.value(taken) == taken
    for refused in (least - 1, most + 1):
        with pytest.raises(pp.PlanError, match=name):
            field.value(refused)


def test_a_constructor_says_all_that_it_takes_and_each_once():
    """`epsilon` first, then what is its own, then what all have."""
    for kind in kinds().values():
        named = inspect.signature(kind).parameters
        own = [*kind.entry.sizes.fields()]
        common = [*named][1 + len(own) :]
        assert [*named][: 1 + len(own)] == ["epsilon", *own]
        assert common == ["releases", "intrusions", "budget", "ledger", "coins", "key"]
        assert {one.kind for one in named.values()} == {inspect.Parameter.KEYWORD_ONLY}
        for name, field in kind.entry.sizes.fields().items():
            told = named[name].default
            assert told is inspect.Parameter.empty if field.required else told == field.default


def test_a_slice_has_a_key_of_its_own():
    part = Slice(0, 2, bytes(16))
    pp.DistinctCount(epsilon=1, expected=100, slice_=part)
    with pytest.raises(pp.PlanError, match="leave out key="):
        pp.DistinctCount(epsilon=1, expected=100, slice_=part, key=bytes(16))
    pp.DistinctCount(epsilon=1, expected=100, key=bytes(16))
    with pytest.raises(pp.PlanError, match="key must be 16 random bytes or more"):
        pp.DistinctCount(epsilon=1, expected=100, key=bytes(15))
    with pytest.raises(pp.PlanError, match="key must be 16 random bytes or more"):
        pp.DistinctCount(epsilon=1, expected=100, key="sixteen letters!")


SAYS = {
    "density": "noisy bits",
    "distinct": "noisy bits",
    "incidence": "noisy counters modulo 4",
}


@pytest.mark.parametrize("name", SAYS)
def test_a_table_says_what_its_cells_are(name):
    made = {
        "density": lambda: pp.Density(universe=8, epsilon=1),
        "distinct": lambda: pp.DistinctCount(expected=100, epsilon=1),
        "incidence": lambda: pp.Incidence(universe=8, bound=3, epsilon=1),
    }[name]()
    assert made.plan.table.says == SAYS[name]


@pytest.mark.parametrize(
    "chance", [Fraction(-1, 10**9), Fraction(-1, 2), 1 + Fraction(1, 10**9), Fraction(2)]
)
def test_no_coin_has_a_probability_that_is_none(chance):
    with pytest.raises(ValueError, match="between 0 and 1"):
        leading_digits(chance)


def test_a_probability_has_its_first_three_digits_and_what_is_left():
    for chance, values, rests in (
        (Fraction(0), [0], (0,)),
        (Fraction(1), [], ()),
        (Fraction(1, 3), [85] * 3, (Fraction(1, 3),) * 3),
        (Fraction(5, 256), [5], (0,)),
        (Fraction(5 * 256**2 + 7, 256**3), [5, 0, 7], (Fraction(7, 256**2), Fraction(7, 256), 0)),
    ):
        found = leading_digits(chance)
        assert (found.values.tolist(), found.rests) == (values, rests)
        assert found.values.dtype == np.uint8


def test_moments_are_counted_from_1970():
    """A checkpoint is read by another version, and by another machine."""
    assert announcements._EPOCH.timestamp() == payment._EPOCH.timestamp() == 0


@pytest.mark.parametrize(
    "within", [Direct(20), Sampled(20, 20, bytes(16))], ids=["direct", "sampled"]
)
def test_slots_leave_the_last_word_of_their_block(within, monkeypatch):
    """The C library does not overwrite that word when a block is freed."""
    made, empty = [], np.empty
    monkeypatch.setattr(np, "empty", lambda size, kind: made.append(empty(size, kind)) or made[-1])
    numbers, names = read_ids(np.arange(3)), read_ids(["a", "b", "c"])
    ways = [
        (Dealt(40, 2, within), numbers),
        (Sampled(20, 10, bytes(16)), numbers),
        (Levelled(3, 5, bytes(16)), numbers),
        (Levelled(3, 5, bytes(16)), names),
        (Independent(9, bytes(40)), numbers),
        (Independent(9, bytes(40)), names),
    ]
    for addressing, ids in ways:
        made.clear()
        (slots,) = addressing.slots(ids)
        assert len(slots) == 3
        assert {len(one) for one in made if one.dtype == np.int64} == {4}


def test_a_sample_is_drawn_in_eight_rounds_of_halves_of_four_bits_or_more():
    """A state whose users have other cells is lost."""
    (slots,) = Sampled(40, 40, bytes(range(16))).slots(read_ids(np.arange(12)))
    assert slots.tolist() == [30, 29, 20, 0, 9, 33, 27, 18, 12, 23, 37, 26]


def test_a_table_of_steps_without_noise_is_checked_at_a_small_spectrum():
    flat = Law("custom", np.array([3, 2, 2, 3]))
    with pytest.raises(pp.PlanError, match="cannot be undone: it leaves no signal"):
        flat.kernel()
    even = Law("custom", np.array([2, 2, 2]))
    with pytest.raises(pp.PlanError, match="a custom law cannot be undone"):
        even.check_readable()
    Law("custom", np.array([3, 2, 2])).check_readable()


@pytest.mark.parametrize(("epsilon", "unit"), [(1, 1 << 24), (Fraction(1, 1 << 9), 1 << 25)])
def test_weights_are_as_large_as_they_were_planned_once(epsilon, unit):
    """A state is read by the law that its noise was drawn from."""
    high, low = high_and_low(11, Fraction(epsilon))
    assert high == math.floor(unit * math.exp(epsilon))
    assert low == -(-high // exp_bounds(Fraction(epsilon))[0])
    assert low in {unit, unit - 1}


LEFT_OUT = {
    "adjacency": "user", "added": 1, "announced": 0, "at_any_time": False, "at_birth": True,
    "at_closing": True, "below": 0, "bound": 1, "by_rho": False, "clip": 0, "combined": False,
    "confidence": 0.95, "durable": False, "epoch": 0, "error": 0.0, "fourth": 0.0, "grain": 0.0,
    "hidden": 0.0, "intrusions": 0, "looks": True, "missing": 0.0, "open_steps": False,
    "origin": 345_600, "paid": False, "pan_private": True, "processes": 1, "released": 0,
    "slack": 0.0, "tables": 1, "tick": 0, "value": 0.0, "variance": 0.0, "wait": True,
    "with_delta": False, "zone": "UTC",
}  # fmt: skip


WHERE_LEFT_OUT = (
    "continual.counter", "continual.methods", "devices.federated.collector",
    "devices.federated.distributions", "devices.federated.elgamal", "devices.federated.shares",
    "privacy.guarantee.promise", "service.outgoing.payment", "service.stream",
    "statistics.additive_plans", "statistics.checkpoint", "statistics.composites.together",
    "statistics.composites.windowed", "statistics.density.decoder", "statistics.grid",
    "statistics.running.stepwise.statistic", "statistics.statistic", "tables.cells.additive",
    "tables.cells.bits", "tables.cells.law", "tables.counters.accumulator",
    "tables.counters.delayed", "tables.counters.endless", "tables.counters.factorised",
    "tables.counters.mechanism", "tables.counters.naive", "tables.counters.running",
    "tables.counters.shapes", "tables.counters.tree", "tables.decoders.intervals",
    "tables.planning.additive",
)  # fmt: skip


def callables_of(module):
    for name, thing in vars(module).items():
        if getattr(thing, "__module__", None) != module.__name__:
            continue
        if isinstance(thing, type):
            for part, method in vars(thing).items():
                yield f"{name}.{part}", getattr(method, "__func__", method)
        else:
            yield name, thing


def test_what_is_left_out_means_the_same_everywhere_and_ever():
    seen = set()
    for where in WHERE_LEFT_OUT:
        for name, function in callables_of(importlib.import_module(f"panprivacy.{where}")):
            if not inspect.isroutine(function):
                continue
            for one in inspect.signature(function).parameters.values():
                if one.name in LEFT_OUT and one.default not in {inspect.Parameter.empty, None}:
                    assert one.default == LEFT_OUT[one.name], name
                    seen.add(one.name)
    assert seen == LEFT_OUT.keys()


def test_a_step_adds_nothing_and_an_event_one_unless_told():
    counter = Counter(3, epsilon=10**6, open_steps=True)
    counter.step()
    assert counter.value == 0
    counter.add()
    counter.step()
    assert counter.value == 1
    assert pp.Density(universe=8, epsilon=1).plan.request.releases == 1
