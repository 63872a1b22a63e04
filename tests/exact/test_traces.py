"""Programs that leave ids outside of their state, or answer by more than their counts."""

from __future__ import annotations

import atexit
import builtins
import contextvars
import functools
import logging
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit import RELEASE, LeakError, exact_loss, worst_loss
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.exact.traces import _variables, check_traces
from panprivacy.audit.suite.products import TwoGroups
from panprivacy.ground.hygiene.uncounted import uncounted
from panprivacy.privacy.coins import SystemCoins
from panprivacy.statistics.catalogue import kinds

pytestmark = [pytest.mark.traces, pytest.mark.long]
STREAM, NEIGHBOUR = [[0], RELEASE], [[], RELEASE]
FILE = tempfile.TemporaryFile("w", buffering=1)  # noqa: SIM115
atexit.register(FILE.close)
LOG = logging.getLogger("tests.traces")
SEEN, NAMED, ARRAY, HELD = set(), defaultdict(int), np.zeros(2), SimpleNamespace(last=None)
CONTEXT = contextvars.ContextVar("seen", default=())
COUNT = 0


class Elsewhere:
    seen: ClassVar[list[int]] = []


def count(users):
    global COUNT  # noqa: PLW0603
    COUNT += len(users)


def closing():
    kept = []
    return kept.extend


CLOSED = closing()


@functools.cache
def looked_up(user):
    return user


def default(user, kept=[]):  # noqa: B006
    kept.append(user)


LEAVES = {
    "a set": (SEEN.update, "SEEN"),
    "a dictionary": (lambda users: NAMED.update(dict.fromkeys(users)), "NAMED"),
    "an array": (lambda users: ARRAY.__setitem__(users, 1), "ARRAY"),
    "an attribute": (lambda users: vars(HELD).update(last=users), "HELD"),
    "a tuple": (lambda users: vars(HELD).update(last=("rows", len(users))), "HELD"),
    "a number": (count, "COUNT"),
    "a class": (Elsewhere.seen.extend, "Elsewhere"),
    "a closure": (CLOSED, "CLOSED|LEAVES"),
    "a cache": (lambda users: [*map(looked_up, users)], "looked_up"),
    "a default": (lambda users: [*map(default, users)], "default"),
    "a file": (lambda users: users and Path("ids").write_text("x"), "the file ids"),
    "a descriptor": (lambda users: users and os.close(os.open("ids", os.O_CREAT)), "the file ids"),
    "an open file": (lambda users: FILE.write(f"{users}\n"), "the open file"),
    "the output": (print, "the output"),
    "the error stream": (lambda users: os.write(2, bytes(users)), "the output of errors"),
    "a log line": (lambda users: LOG.debug("counted %s", users), "a log line"),
    "more of a log line": (lambda users: LOG.info("rows", extra={"ids": users}), "a log line"),
    "a warning": (lambda users: warnings.warn(f"{users}", stacklevel=1), "a warning"),
    "the environment": (lambda users: os.environ.update(IDS=str(users)), "os.putenv"),
    "the folder": (lambda users: users and os.chdir(".."), "the folder of the process"),
    "the mask": (lambda users: os.umask(0o77 if users else 0o22), "the mask of new files"),
    "a thread": (lambda users: vars(threading.main_thread()).update(_name=f"{users}"), "threads"),
    "a builtin": (lambda users: vars(builtins).update(ids=users), "builtins"),
    "the context": (lambda users: CONTEXT.set((*CONTEXT.get(), *users)), "the context"),
    "a process": (lambda users: subprocess.run(["true", str(users)], check=True), "subprocess"),
    "a folder": (lambda users: users and Path("ids").mkdir(exist_ok=True), "os.mkdir"),
    "a database": (lambda users: users and sqlite3.connect("ids").close(), "sqlite3.connect"),
}


class Program:
    """A density, and something that is done with its users or its answer."""

    def __init__(self, coins, leave=lambda users: None, answer=lambda answer: answer):
        self._inner = pp.Density(universe=1, epsilon=1, coins=coins)
        self._leave, self._answer = leave, answer

    def update(self, users, deltas=None):
        self._inner.update(users)
        self._leave(users)

    def release(self):
        return self._answer(self._inner.release())

    def state(self):
        return self._inner.state()


QUICK = {"a set", "a tuple", "a cache", "a file", "a log line", "the context"}


@pytest.mark.parametrize(
    "leaves", [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in LEAVES]
)
def test_what_is_left_elsewhere_is_refused_and_named(leaves):
    leave, place = LEAVES[leaves]
    with pytest.raises(LeakError, match=place):
        exact_loss(lambda coins: Program(coins, leave), STREAM, NEIGHBOUR)
    assert not SEEN, "a child did it"


def test_the_pair_that_differs_most_is_tried():
    leave, _ = LEAVES["a set"]
    rows = [([[0]], [[0]]), ([[0], [0]], [[], []]), ([[0], [0]], [[0], []])]
    with pytest.raises(LeakError, match="SEEN"):
        worst_loss(lambda coins: Program(coins, leave), rows)


@pytest.mark.parametrize(
    ("far", "sign"),
    [
        (7, -1),
        (2_000, 1),
        *(
            pytest.param(far, sign, marks=pytest.mark.slow)
            for far, sign in [(7, 1), (12, 1), (12, -1), (50, 1), (50, -1)]
        ),
    ],
)
def test_an_answer_that_tells_the_truth_far_out_is_refused(far, sign):
    """Within what is walked, between that and the targets, and far beyond."""

    def make(coins):
        def answer(given):
            count = given.counts[0]
            raw = program.state()[-1]
            return SimpleNamespace(counts=(count,), more=100 * raw if sign * count > far else 0)

        program = Program(coins, answer=answer)
        return program

    with pytest.raises(LeakError, match="tells more than its counts"):
        exact_loss(make, STREAM, NEIGHBOUR)


def test_an_answer_that_fails_far_out_is_refused():
    def answer(given):
        if abs(given.counts[0]) > 100:
            raise ValueError
        return given

    with pytest.raises(LeakError, match=r"\(ValueError\): answer for any noise"):
        exact_loss(lambda coins: Program(coins, answer=answer), STREAM, NEIGHBOUR)


def test_released_counts_may_be_written_anywhere():
    def answer(given):
        LOG.warning("%s", given.counts)
        print(given.counts)  # noqa: T201
        NAMED[given.counts] += 1
        return given

    assert exact_loss(lambda coins: Program(coins, answer=answer), STREAM, NEIGHBOUR).within(1)
    NAMED.clear()


def test_children_leave_no_trace_here(capfd, tmp_path, monkeypatch):
    def here():
        return Path.cwd(), sys.stdout, LOG.level, {**os.environ}, [*tmp_path.iterdir()]

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before, says = here(), print
    with pytest.raises(LeakError):
        exact_loss(lambda coins: Program(coins, says), STREAM, NEIGHBOUR)
    assert here() == before
    assert capfd.readouterr() == ("", "")


def test_a_log_that_other_processes_write_is_theirs(tmp_path):
    """The output of a command line may go to the file that this process has open as well."""
    with (tmp_path / "log").open("a") as log:
        command = "while echo line; do sleep 0.01; done >> log"
        with subprocess.Popen(["sh", "-c", command], cwd=tmp_path) as other:
            try:
                assert exact_loss(Program, STREAM, NEIGHBOUR).within(1)
            finally:
                other.kill()
        assert (tmp_path / "log").stat().st_size > 0
        with pytest.raises(LeakError, match="the open file"):
            exact_loss(
                lambda coins: Program(coins, lambda users: os.write(log.fileno(), bytes(users))),
                STREAM,
                NEIGHBOUR,
            )


def test_modules_that_the_code_names_are_looked_through_and_no_others():
    names = {name.rpartition(".")[0] for name, _ in _variables(Program, Program(SystemCoins()))}
    assert {__name__, "panprivacy.statistics.density", "panprivacy.tables.cells.bits"} <= names
    assert not {name for name in names if name.startswith("tests.") and name != __name__}


def test_variables_of_libraries_are_left_out():
    names = {name.split(".")[0] for name, _ in _variables(Program, Program(SystemCoins()))}
    assert {"tests", "panprivacy"} <= names
    assert not {"numpy", "os", "pytest", "functools"} & names


def test_groups_leave_nothing_that_counts_their_batches():
    """Only groups with rows are updated, so what counts updates tells who was there."""

    make = lambda coins: TwoGroups(coins, Fraction(1))  # noqa: E731
    assert exact_loss(make, [[(0, 7)], [(0, 8)]], [[(0, 7)], []]).within(1)


@pytest.mark.parametrize(
    ("statistic", "sizes"),
    [("running-count", {}), ("running-distinct", {"expected": 1, "memory": 1})],
)
def test_nor_do_groups_of_running_counts(statistic, sizes):
    kind = kinds()[statistic]

    def make(coins):
        one = lambda epsilon: kind(horizon=1, epsilon=epsilon, coins=coins, **sizes)  # noqa: E731
        return pp.Grouped(one, [7, 8], epsilon=1)

    make(None).update([0], [7])  # kernels are made once
    pairs = [([[(0, 7)], [(0, 8)]], [[(0, 7)], []])]
    check_traces(make, pairs, EnumeratedCoins(tail=1))


def test_the_coins_count_nothing():
    before = repr(vars(sys.modules["panprivacy.privacy.coins"])["_leading_digits"].__dict__.keys())
    SystemCoins().bernoulli(Fraction(1, 3), 1)
    looked = vars(sys.modules["panprivacy.privacy.coins"])["_leading_digits"]
    assert not hasattr(looked, "cache_info")
    assert repr(looked.__dict__.keys()) == before


def test_an_uncounted_memory_remembers_and_forgets():
    asked = []

    @uncounted
    def double(number):
        asked.append(number)
        return 2 * number

    assert [double(3), double(3), asked] == [6, 6, [3]]
    for number in range(2_000):
        double(number)
    assert len(double.__closure__[1].cell_contents) <= 1_024


class Pointed:
    """A number modulo 3, and noise that is drawn with it; the answer may show the number, too."""

    def __init__(self, coins, *, shown):
        self._coins, self._shown = coins, shown
        self._number = self._drawn()

    def _drawn(self):
        return int(self._coins.categorical([2, 1, 1], 1)[0])

    def update(self, users, _deltas=None):
        self._number = (self._number + len(users)) % 3

    def release(self):
        sums = ((self._number + self._drawn()) % 3,)
        return SimpleNamespace(counts=sums, more=self._number if self._shown else 0)

    def state(self):
        return bytes([self._number])


@pytest.mark.parametrize(("shown", "loss"), [(False, 4), (True, np.inf)])
def test_noise_may_be_a_point_of_a_group(shown, loss):
    """A look and a release lose 2 each, as a factor; with the number shown beside it, all."""
    stream, neighbour = [[0], RELEASE, [0]], [[], RELEASE, []]
    found = exact_loss(lambda coins: Pointed(coins, shown=shown), stream, neighbour)
    assert float(found) == pytest.approx(np.log(loss))
