"""The audit itself: its products hold, its controls are caught, and it is not fooled."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import typer

import panprivacy as pp
from panprivacy.audit import ANNOUNCE, RELEASE, EnumeratedCoins, LeakError, exact_loss, worst_loss
from panprivacy.audit.controls import CONTROLS
from panprivacy.audit.exact import Loss, chain
from panprivacy.audit.exact.laws import _is_above
from panprivacy.audit.neighbours import add_remove, pairs, replace, short_streams
from panprivacy.audit.subject import ADJACENCIES, Row
from panprivacy.audit.suite.products import products
from panprivacy.cli.audit import line
from tests.commands import run_command
from tests.service.running import PLAIN

PAGE = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()

SLOW = {
    "density-4-cells",
    "distinct-count",
    "distinct-count-announced",
    "strict-count",
    "strict-count-announced",
    "incidence-named-7",
    "incidence-named-11",
    "incidence-histogram-3",
    "incidence-announced-2",
    "heavy-hitters-announced",
    "groups",
    "moving-answer",
    "multi-counter",
    "list-update",
}
"""Products that take more than a few seconds each; `test_groups` walks groups as well."""
LONG = {
    "calibrated-total",
    "cropped-moment",
    "cropped-sum",
    "density",
    "dwork-density",
    "experts-advice",
    "incidence-named-3",
    "inner-product",
    "laplace-norm-announced",
    "running-distinct",
    "shared-ledger",
}
"""Products that take seconds, or nearly."""


@functools.cache
def subjects(epsilon):
    return {subject.name: subject for subject in products(Fraction(epsilon))}


NAMES = list(subjects(1))


def marked(name, epsilon):
    slow = name in SLOW or epsilon != 1
    longer = pytest.mark.long if name in LONG else ()
    return pytest.param(name, epsilon, marks=pytest.mark.slow if slow else longer)


TRIED = [marked(name, epsilon) for epsilon in (1, Fraction(1, 3)) for name in NAMES]


REFUSED = [control for control in CONTROLS if control.refused]
LOSING = [control for control in CONTROLS if not control.refused]


def audited(subject):
    return subject.row()


@pytest.mark.parametrize(("name", "epsilon"), TRIED)
def test_a_product_keeps_its_claim(name, epsilon):
    subject = subjects(epsilon)[name]
    row = audited(subject)
    assert row.holds
    assert row.is_right
    assert row.verdict == "holds"
    assert row.set_aside < 1
    assert float(row.worst) > 0.1 * float(subject.claimed), "the streams try nothing"
    if epsilon == 1:
        assert line(row).rstrip() in PAGE


@pytest.mark.long
@pytest.mark.traces
@pytest.mark.parametrize("control", REFUSED, ids=lambda control: control.name)
def test_a_control_that_no_loss_shows_is_refused(control):
    with pytest.raises(LeakError, match=control.refused):
        control.shown()
    row = audited(control)
    assert not row.holds
    assert row.is_right
    assert row.verdict == "refused"
    assert control.refused in row.says
    assert line(row).rstrip() in PAGE
    assert f"\n| `{control.name}` |" in PAGE


ELSEWHERE = {"raw-interval"}
"""Of those that no walk alone shows as the page does."""


@pytest.mark.parametrize(
    "control",
    [
        pytest.param(one, marks=[pytest.mark.traces, pytest.mark.long])
        if one.name in ELSEWHERE
        else one
        for one in LOSING
    ],
    ids=lambda control: control.name,
)
def test_a_control_is_caught_with_the_loss_that_it_has(control):
    assert float(control.shown()) == pytest.approx(control.true_loss, rel=2e-3)
    row = audited(control)
    assert not row.holds
    assert row.is_right
    assert row.verdict == "caught"
    assert not row.worst.within(control.limit(control.adjacency))
    assert float(row.worst) >= 0.999 * control.true_loss
    assert line(row).rstrip() in PAGE
    assert f"\n| `{control.name}` |" in PAGE


@pytest.mark.parametrize(("times", "loss"), [(1, 0.74), (5, 3.7), (20, 14.9)])
def test_distinct_sampling_loses_more_with_every_appearance(times, loss):
    (control,) = [one for one in CONTROLS if one.name == "d3"]
    found = exact_loss(control.make, [[0]] * times, [[]] * times)
    assert float(found) == pytest.approx(loss, rel=1e-2)


def test_every_printed_error_of_loss_is_a_control():
    names = {control.name.split("-")[0] for control in CONTROLS}
    assert {"d1", "d2", "d3", "f1", "f2", "f3", "m3", "m7", "m8", "m9", "n1", "r1"} <= names
    assert sum(control.name.startswith("d1-") for control in CONTROLS) == 2


# It is not fooled


def bits(coins, universe=1):
    return pp.Density(universe=universe, epsilon=1, coins=coins)


class Wrapper:
    def __init__(self, coins):
        self._inner = bits(coins)

    def update(self, users, deltas=None):
        self._inner.update(users)

    def release(self):
        return self._inner.release()

    def state(self):
        return self._inner.state()


class HiddenMemory(Wrapper):
    """What the state does not show comes out with the next answer."""

    def __init__(self, coins):
        super().__init__(coins)
        self._came = False

    def update(self, users, deltas=None):
        super().update(users)
        self._came |= bool(users)

    def release(self):
        answer = self._inner.release()
        return Shown(answer.counts, self._came)


class Shown:
    def __init__(self, counts, more):
        self.counts, self.more = counts, more


def test_what_is_hidden_from_the_state_is_found_in_the_answer():
    hidden = [[0], RELEASE], [[], RELEASE]
    loss = exact_loss(HiddenMemory, *hidden)
    assert loss.epsilon == math.inf
    assert exact_loss(HiddenMemory, [[0]], [[]]).within(1), "the state does not show it"


class InClosure(Wrapper):
    """The same, kept where no attribute is."""

    def __init__(self, coins):
        super().__init__(coins)
        rows = 0

        def update(users, deltas=None):
            nonlocal rows
            rows += len(users)
            self._inner.update(users)

        self.update = update
        self.release = lambda: Shown(self._inner.release().counts, rows)


def test_what_a_closure_keeps_is_found_too():
    assert exact_loss(InClosure, [[0], RELEASE], [[], RELEASE]).epsilon == math.inf


def test_answers_that_far_noise_reaches_are_set_aside():
    loss = exact_loss(bits, [[0], RELEASE], [[], RELEASE])
    assert 0 < loss.set_aside < Fraction(1, 10)
    assert "were set aside" in str(loss)


class Odd(Wrapper):
    """A program that the audit cannot compare, so that it has to say so."""

    seen: ClassVar[list[object]] = []

    def __init__(self, coins):
        super().__init__(coins)
        self._coins = coins


class Clipped(Odd):
    def release(self):
        return Shown((max(self._inner.release().counts[0], 0),), None)


class Truncated(Odd):
    """The ends of the noise tell the count, and any further noise leads there."""

    def release(self):
        noise = int(self._coins.discrete_laplace(Fraction(1), 1)[0])
        return Shown((self.state()[-1] + max(-2, min(2, noise)),), None)


class Rounded(Odd):
    def release(self):
        return Shown((5 * (self._inner.release().counts[0] // 5),), None)


class TwoNoises(Odd):
    def release(self):
        noise = self._coins.discrete_laplace(Fraction(1), 1)
        return Shown((self._inner.release().counts[0] + int(noise[0]),), None)


class Gaussian(Odd):
    def release(self):
        noise = self._coins.discrete_gaussian(Fraction(100), 1)
        return Shown((self.state()[-1] + int(noise[0]),), None)


class DrawsInState(Odd):
    def state(self):
        return super().state() + self._coins.bernoulli(Fraction(1, 2), 1).tobytes()


class InAClassVariable(Odd):
    def update(self, users, deltas=None):
        super().update(users)
        self.seen.extend(users)

    def release(self):
        return Shown(self._inner.release().counts, len(self.seen))


class AGeneratorOfItsOwn(Odd):
    def update(self, users, deltas=None):
        if users:
            self.drawn = np.random.default_rng().random()


class NoCounts(Odd):
    def release(self):
        return 7


class Quarters(Odd):
    def release(self):
        return Shown((self._inner.release().counts[0] / 4,), None)


class ArrayState(Odd):
    def state(self):
        return np.zeros(1)


ODD = {
    Clipped: "noise must be added to whole numbers",
    Truncated: "noise must be added to whole numbers",
    Rounded: "noise must be added to whole numbers",
    TwoNoises: "noise must be added to whole numbers",
    Gaussian: "Gaussian noise has no finite loss",
    DrawsInState: "comes out otherwise although its coins fall as before",
    InAClassVariable: "something of the rows is left in the variable tests.exact.test_audit.Odd",
    AGeneratorOfItsOwn: "comes out otherwise although its coins fall as before",
    NoCounts: "must have `counts`",
    Quarters: "must have `counts`",
    ArrayState: "must return bytes, not ndarray",
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.traces) if kind is InAClassVariable else kind
        for kind in ODD
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(kind):
    Odd.seen.clear()
    with pytest.raises(pp.PlanError, match=ODD[kind]):
        exact_loss(kind, [[0], [0], RELEASE], [[], [0], RELEASE])


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ([7], "a stream is a list of steps"),
        (["relase"], "not 'relase'"),
        ([[0, (1, 1)]], "all users, or all pairs"),
    ],
)
def test_streams_that_are_none_are_refused(stream, message):
    with pytest.raises(pp.PlanError, match=message):
        exact_loss(bits, stream, stream)


class ArrayCounts(Wrapper):
    def release(self):
        return Shown(np.array(self._inner.release().counts), None)


def test_counts_may_be_arrays():
    pair = [[0], RELEASE], [[], RELEASE]
    assert float(exact_loss(ArrayCounts, *pair)) == float(exact_loss(bits, *pair))


def test_batches_may_be_arrays():
    loss = exact_loss(bits, [np.array([0])], [np.array([], int)])
    assert float(loss) == float(exact_loss(bits, [[0]], [[]]))


class Named(HiddenMemory):
    """Two answers with the same counts, one of which names a user."""

    def release(self):
        return Told(self._inner.release().counts, "ada" if self._came else "nobody")


@dataclasses.dataclass(frozen=True)
class Told:
    counts: tuple[int, ...]
    who: str


def test_words_show_what_tells_beyond_the_counts():
    loss = exact_loss(Named, [[0], RELEASE], [[], RELEASE])
    assert float(loss) == math.inf
    assert "who='ada'" in str(loss) or "who='nobody'" in str(loss)


class Tally(Wrapper):
    """An exact count that nobody sees, and noise of scale 1 on it when it is asked for."""

    def __init__(self, coins):
        super().__init__(coins)
        self._coins, self._count = coins, 0

    def update(self, users, deltas=None):
        self._count += len(users)

    def state(self):
        return b""

    def release(self):
        return Shown((self._count + int(self._coins.discrete_laplace(Fraction(1), 1)[0]),), None)


def test_the_loss_of_one_noise_is_its_epsilon():
    loss = exact_loss(Tally, [[0], RELEASE], [[], RELEASE])
    assert float(loss) == pytest.approx(1, rel=1e-12)
    assert "a state that holds nothing" in str(loss).replace("the state that", "a state that")


def test_a_look_right_after_an_announcement_is_tried():
    make = lambda coins: pp.Density(universe=1, epsilon=1, intrusions=1, coins=coins)  # noqa: E731
    loss = exact_loss(make, [[0], ANNOUNCE], [[], ANNOUNCE])
    state = make(None).plan.split.budget.state
    assert float(loss) == pytest.approx(float(state), rel=1e-6)


@pytest.mark.parametrize(
    ("larger", "smaller"),
    [
        ((1, 10**400), (1, 10**399)),
        ((10**400, 1), (1, 3)),
        ((10**500, 10**500 + 1), (10**500, 10**500)),
        ((0, 1), (1, 10**400)),
        ((2, 1), (0, 0)),
    ],
)
def test_ratios_are_compared_whatever_floats_can_hold(larger, smaller):
    assert _is_above(larger, smaller)
    assert not _is_above(smaller, larger)
    assert not _is_above(larger, larger)


def known(epsilon):
    """A loss that an audit found, made up."""
    larger = Fraction(math.exp(epsilon))
    return Loss(epsilon, [], [], 0, (), (Fraction(1), larger), Fraction(round(epsilon * 10), 100))


@pytest.mark.parametrize(
    ("losses", "holds"),
    [
        ((0.9, 1.9, 0.9), True),
        ((1.1, 1.9, 0.9), False),
        ((0.9, 2.1, 0.9), False),
        ((0.9, 1.9, 1.1), False),
    ],
)
def test_a_claim_is_of_every_adjacency(losses, holds):
    subject = subjects(1)["density"]
    row = Row(subject, dict(zip(ADJACENCIES, map(known, losses), strict=True)))
    assert row.holds is row.is_right is holds
    assert row.set_aside == Fraction(round(max(losses) * 10), 100)
    control = dataclasses.replace(subject, kind="control")
    assert Row(control, row.losses).is_right is not holds


def test_noise_that_is_walked_less_far_than_counts_lie_apart_is_refused():
    with pytest.raises(ValueError, match=r"EnumeratedCoins\(tail=2\)"):
        exact_loss(
            lambda coins: bits(coins, 2),
            [[0], RELEASE],
            [[], RELEASE],
            coins=EnumeratedCoins(tail=1),
        )


@pytest.mark.parametrize("tail", [4, 6, 9])
def test_the_loss_does_not_depend_on_the_tail(tail):
    stream, neighbour = [[0], RELEASE, [0]], [[], RELEASE, []]
    loss = exact_loss(bits, stream, neighbour, coins=EnumeratedCoins(tail=tail))
    assert float(loss) == pytest.approx(float(exact_loss(bits, stream, neighbour)), rel=1e-12)


def brute_force(make, stream, neighbour, coins):
    """The worst ratio of a whole view, every outcome walked from the start, nothing merged."""
    laws = [{}, {}]
    for law, steps in zip(laws, (stream, neighbour), strict=True):
        for _ in coins:
            statistic = make(coins)
            views, released = [statistic.state()], []
            for step in steps:
                if step == RELEASE:
                    released.append(statistic.release().counts)
                else:
                    statistic.update(step)
                views.append(statistic.state())
            for time, state in enumerate(views):
                mass, far = law.get((time, state, *released), (Fraction(0), False))
                law[time, state, *released] = mass + coins.probability, far or coins.far
    shared = [view for view in laws[0] if not laws[0][view][1] and not laws[1][view][1]]
    return max(max(r, 1 / r) for r in (laws[0][v][0] / laws[1][v][0] for v in shared))


@pytest.mark.parametrize(
    ("stream", "neighbour"),
    [
        ([[0], RELEASE, [0]], [[], RELEASE, []]),
        ([RELEASE, [0, 1], RELEASE], [RELEASE, [1], RELEASE]),
    ],
)
def test_merging_changes_nothing(stream, neighbour):
    coins = EnumeratedCoins(tail=2)
    make = lambda coins: pp.Density(universe=2, epsilon=1, releases=2, coins=coins)  # noqa: E731
    loss = exact_loss(make, stream, neighbour, coins=EnumeratedCoins(tail=2))
    smaller, larger = sorted(loss.probabilities)
    assert larger / smaller == brute_force(make, stream, neighbour, coins)


def test_the_worst_of_several_pairs_is_the_worst_of_each():
    tried = list(pairs(short_streams([[0], [1]], 2), lambda stream: add_remove(stream, 0)))
    make = lambda coins: bits(coins, 2)  # noqa: E731
    worst = worst_loss(make, tried)
    assert float(worst) == max(float(exact_loss(make, *pair)) for pair in tried)


def test_nothing_to_compare_is_refused():
    with pytest.raises(ValueError, match="no pairs"):
        worst_loss(bits, [])


def test_a_loss_says_what_attains_it():
    words = str(exact_loss(bits, [[0], RELEASE], [[], RELEASE]))
    assert "reads the state …0" in words
    assert "is told (" in words
    assert "after [0] release" in words
    assert "after [] release" in words
    announced = exact_loss(
        lambda coins: pp.Density(universe=1, epsilon=1, intrusions=1, coins=coins),
        [[0], ANNOUNCE, [0]],
        [[], ANNOUNCE, []],
    )
    assert "read the state …0" in str(announced)


# Streams


def test_short_streams_have_every_order_of_their_public_steps():
    streams = list(short_streams([[0]], 2, releases=1, announced=1))
    assert [[0], RELEASE, ANNOUNCE] in streams
    assert [ANNOUNCE, [0], RELEASE, [0]] in streams
    assert len(streams) == 3 * 2 + 12
    assert len({repr(stream) for stream in streams}) == len(streams)


def test_neighbours_keep_deltas_and_public_steps():
    stream = [[(0, 2), (1, 1)], RELEASE, [(0, -1)]]
    moved = [[[(1, 2), (1, 1)], RELEASE, [(1, -1)]]]
    assert list(add_remove(stream, 0))[-1] == [[(1, 1)], RELEASE, []]
    assert list(replace(stream, 0, by=1))[-1:] == moved


def test_of_many_rows_the_first_and_the_last_ones_are_removed():
    removed = [sum(map(len, neighbour)) for neighbour in add_remove([[0]] * 20, 0)]
    assert sorted(set(removed)) == list(range(20))
    assert len(removed) < 100


# The command


def audit_command(*arguments):
    return run_command("audit", *arguments)


def test_the_command_prints_rows_that_machines_read(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # other processes import all that is here
    result = audit_command("net-count", "d2", "row-counter", "--epsilon", "0.5", "--json")
    assert result.code == 0, result.stderr
    product, control, leak = json.loads(result.stdout)
    keys = ["name", "kind", "claimed", *ADJACENCIES, "verdict"]
    assert list(product) == list(control) == keys
    assert product["kind"] == "product"
    assert product["claimed"] == 0.5
    assert 0 < product["add_remove"] <= 0.5
    assert product["verdict"] == "holds"
    assert control["add_remove"] == pytest.approx(4.58, rel=1e-3)
    assert control["verdict"] == "caught"
    assert leak["add_remove"] == "inf"
    assert leak["kind"] == "control"


def test_the_command_says_in_words_what_attains_the_loss():
    result = audit_command("r1")
    assert result.code == 0
    assert "caught" in result.stdout
    assert "reads the state" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 of 1 controls caught."


OWN = """
from fractions import Fraction
import panprivacy as pp
from panprivacy.audit import Subject

SEEN = []

class Remembers(pp.Density):
    def update(self, users, deltas=None):
        super().update(users)
        SEEN.extend(users)

def subject(make):
    return Subject("mine", "product", "a class of my own", make, Fraction(1), [[[0]]])

good = subject(lambda coins: pp.Density(universe=2, epsilon=1, coins=coins))
bad = subject(lambda coins: Remembers(universe=2, epsilon=1, coins=coins))
"""


@pytest.mark.long
@pytest.mark.traces
def test_a_program_of_ones_own_is_audited_as_module_and_variable(tmp_path):
    (tmp_path / "my_audit.py").write_text(OWN)
    good = run_command("audit", "my_audit:good", cwd=tmp_path)
    assert good.code == 0, good.stderr
    assert good.stdout.splitlines()[-1] == "1 of 1 products hold."
    bad = run_command("audit", "my_audit:bad", "--json", cwd=tmp_path)
    assert bad.code == 1
    assert json.loads(bad.stdout)[0]["verdict"] == "refused"
    assert json.loads(bad.stdout)[0]["replace"] is None
    words = run_command("audit", "my_audit:bad", cwd=tmp_path).stdout
    assert "the variable my_audit.SEEN" in words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["densty"], "there is nothing of this name"),
        (["--epsilon", "0"], "--epsilon"),
        (["no_such_module:thing"], "write it as module:variable"),
        (["json:dumps"], "write it as module:variable"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(arguments, message):
    result = audit_command(*arguments)
    assert result.code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert message in result.stderr


def test_the_command_fails_when_a_product_leaks(monkeypatch, capsys):
    product = subjects(1)["density-sample"]
    twice = lambda coins: pp.Density(universe=3, cells=2, epsilon=2, coins=coins)  # noqa: E731
    leaky = dataclasses.replace(product, make=twice)
    command = sys.modules["panprivacy.cli.audit"]
    monkeypatch.setattr(command, "known_names", lambda: [leaky.name])
    monkeypatch.setattr(command, "rows", lambda *_: [audited(leaky)])
    with pytest.raises(typer.Exit) as stopped:
        command.audit([leaky.name], epsilon="1", json=False)
    assert stopped.value.exit_code == 1
    assert "0 of 1 products hold: not density-sample." in capsys.readouterr().out


@pytest.mark.long
def test_a_reader_who_leaves_is_not_taken_for_a_leak():
    """With exit 1 a closed pipe would look like a product that exceeds its claim.

    What the command started ends with it: the pipe of errors closes, or this would wait for ever.
    """
    command = '"$0" -c "$1" audit r1 d2 | head -1; echo ${PIPESTATUS[0]}'
    words = ["bash", "-c", command, sys.executable, PLAIN[-1]]
    run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=100)
    assert run.stdout.splitlines()[-1] == "141"
    assert run.stderr == ""


def test_a_long_walk_is_told(monkeypatch):
    monkeypatch.setattr(chain, "_MANY_RUNS", 20)
    with pytest.warns(UserWarning, match="outcomes have been walked and there are more"):
        exact_loss(bits, [[0], RELEASE], [[], RELEASE])
