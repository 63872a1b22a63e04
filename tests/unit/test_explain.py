"""What a state says about anybody: the bounds by other means, and no answer to bad input."""

from __future__ import annotations

import io
import json
import re
import time
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pyrage
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.errors import InputError
from panprivacy.privacy.guarantee import (
    PrivacyLoss,
    float_above,
    float_below,
    format_rounded_up,
    randomised_response,
    rounded_up,
)
from panprivacy.statistics.containers import Container
from panprivacy.statistics.explain import reading
from panprivacy.statistics.explain.document import PRIORS, as_document, promised, so_far
from panprivacy.statistics.explain.reading import read_states
from panprivacy.statistics.explain.sentences import _at_most, _rounded_down
from panprivacy.statistics.header import Header, read_header
from panprivacy.statistics.plan_search import plan
from panprivacy.tables.cells.bits import keep_probability
from panprivacy.tables.cells.law import Law
from tests.commands import run_command

ROOT = Path(__file__).parents[2]

STATISTICS = {
    "density": partial(pp.Density, universe=501, epsilon=1),
    "sample": partial(pp.Density, universe=501, cells=101, epsilon="0.3"),
    "distinct": partial(pp.DistinctCount, expected=(100, 10_000), memory=256, epsilon=1),
    "one level": partial(pp.DistinctCount, expected=300, memory=256, epsilon=Fraction(7, 3)),
    "deletions": partial(
        pp.DistinctCount, expected=300, memory=512, deletions=True, bound=5, epsilon=2
    ),
    "strict": partial(pp.DistinctCount, expected=300, memory=64, deletions="strict", epsilon=2),
    "signed": partial(
        pp.DistinctCount,
        expected=300,
        memory=999,
        deletions=True,
        bound=300,
        signed=True,
        epsilon=2,
    ),
    "incidence": partial(pp.Incidence, universe=501, bound=7, epsilon=1),
    "incidence sample": partial(
        pp.Incidence, universe=901, cells=101, bound=300, signed=True, epsilon=1
    ),
    "hashed": partial(pp.Incidence, expected=60_000, bound=2, epsilon=1),
    "custom law": partial(pp.Incidence, universe=501, bound=2, law=Law.of([3, 1, 1]), epsilon=2),
    "named law": partial(
        pp.Incidence, universe=501, bound=1, law=Law("a, weights 9 to 1\n", [2, 1]), epsilon=1
    ),
    "cropped": partial(pp.CroppedSum, universe=501, tau=10, bound=100, epsilon=1),
    "cropped sample": partial(pp.CroppedSum, universe=901, cells=101, tau=7, epsilon=1),
    "cropped levels": partial(
        pp.CroppedSum, expected=(300, 30_000), memory=4_096, tau=10, bound=100, epsilon=1
    ),
    "cropped hashed": partial(pp.CroppedSum, expected=300, tau=10, bound=100, epsilon=1),
    "heavy": partial(pp.HeavyHitterCount, k=10, total=1_000, epsilon=1),
    "threshold": partial(pp.ThresholdCount, threshold=10, bound=100, universe=901, epsilon=1),
    "heavy rounded": partial(pp.HeavyHitterCount, k=10, total=1_000, resolution=7, epsilon=1),
    "budget": partial(pp.Density, universe=501, epsilon=1, budget=pp.Budget("0.6", "0.2")),
}
LIVED = {"releases": 3, "intrusions": 2}
HEAD = 36
"""Bytes before the public parameters."""
SMALL = STATISTICS["density"](universe=9).state()
COUNTERS = STATISTICS["deletions"](memory=8).state()


def explained(path, *states):
    path.write_bytes(b"".join(states))
    return read_states(path)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "seized.state"


@pytest.mark.parametrize("name", STATISTICS)
def test_a_state_is_described_as_it_was_planned(name, file):
    statistic = STATISTICS[name]()
    (alike,) = explained(file, statistic.state())
    described, plan = alike.description, statistic.plan
    assert described.kind is type(statistic)
    assert described.sizes == statistic.internals.memory.sizes or "law" in name
    assert described.version == pp.__version__
    assert described.epsilon == plan.request.epsilon == described.ledger
    assert described.budget == plan.split.budget
    assert described.state_bytes == statistic.internals.memory.state_bytes == file.stat().st_size
    rebuilt = described.plan
    assert rebuilt.cells == plan.cells
    assert rebuilt.table.nbytes == plan.table.nbytes
    assert rebuilt.key_bytes == plan.key_bytes
    for field in ("universe", "bound", "signed", "levels", "tau", "k", "total"):
        assert getattr(rebuilt, field, None) == getattr(plan, field, None)
    if hasattr(plan, "law"):
        assert np.array_equal(rebuilt.law.weights, plan.law.weights)


@pytest.mark.parametrize("name", ["density", "distinct", "deletions", "strict", "incidence"])
def test_releases_and_announced_intrusions_are_counted(name, file):
    statistic = STATISTICS[name](epsilon=9, **LIVED)
    statistic.update([1, 2, 3])
    losses = []
    for step in (statistic.release, statistic.announce_intrusion, statistic.release,
                 statistic.announce_intrusion, statistic.release):  # fmt: skip
        step()
        losses.append(explained(file, statistic.state())[0].description.so_far.epsilon)
    budget = statistic.plan.split.budget
    assert losses == sorted(losses)
    assert losses[0] == budget.state + budget.of_releases(1)
    assert losses[-1] == 3 * budget.state + budget.of_releases(3) == statistic.ledger.spent <= 9
    described = explained(file, statistic.state())[0].description
    assert (described.releases.made, described.releases.planned) == (3, 3)
    assert (described.intrusions.made, described.intrusions.planned) == (2, 2)


def test_the_number_of_rows_changes_nothing(file):
    statistic = STATISTICS["distinct"]()
    before = as_document(explained(file, statistic.state()))
    statistic.update(range(1_000))
    assert as_document(explained(file, statistic.state())) == before


# Bounds


def precise_exp(epsilon):
    with localcontext(prec=100):
        return Fraction((Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp())


EPSILONS = st.fractions(Fraction(1, 10**6), 40, max_denominator=10**6)
CHANCES = st.fractions(Fraction(1, 10**9), 1 - Fraction(1, 10**9), max_denominator=10**12)


@pytest.mark.long
@given(EPSILONS, CHANCES)
def test_beliefs_are_those_of_bayes_at_the_worst_ratio_and_no_others(epsilon, prior):
    low, high = PrivacyLoss(epsilon).posterior(prior)
    odds, factor = prior / (1 - prior), precise_exp(epsilon)
    for bound, worst in ((low, odds / factor), (high, odds * factor)):
        exact = worst / (1 + worst)
        assert abs(bound - exact) < exact / 10**48
    assert low <= odds / factor / (1 + odds / factor)
    assert high >= odds * factor / (1 + odds * factor)
    assert float_below(low) <= low
    assert float_above(high) >= high
    assert float_above(high) - float_below(low) <= high - low + Fraction(1, 10**15)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("bit", [0, 1])
def test_a_bit_attains_the_bound_of_its_state(prior, bit, file):
    """Bayes on the law of the one cell of the person, with the person and without."""
    statistic = STATISTICS["density"](universe=1, epsilon=3)
    epsilon = statistic.plan.split.budget.state
    present = statistic.plan.table.presence(0)
    with_, without = (present, 1 - present) if bit else (1 - present, present)
    after = prior * with_ / (prior * with_ + (1 - prior) * without)
    low, high = explained(file, statistic.state())[0].description.so_far.posterior(prior)
    assert low <= after <= high
    assert abs(after - (high if bit else low)) < Fraction(1, 10**15)
    assert present == randomised_response(epsilon)


def looks_of(statistic):
    """The probability of every run of bits at all looks so far, of one who comes and of nobody."""
    cells = statistic.plan.table
    keep = keep_probability(cells.epsilon_state, cells.intrusions)

    def law(touched, looks):
        first = cells.presence(0) if touched[0] else 1 - cells.presence(0)
        runs = {(1,): first, (0,): 1 - first}
        for epoch in range(1, looks):
            grown = {}
            for run, chance in runs.items():
                one = cells.presence(epoch) if touched[epoch] else keep if run[-1] else 1 - keep
                grown[(*run, 1)], grown[(*run, 0)] = chance * one, chance * (1 - one)
            runs = grown
        return runs

    return law


@pytest.mark.parametrize("planned", [2, 3])
@pytest.mark.parametrize("epsilon", [1, 6])
@pytest.mark.parametrize("name", ["density", "distinct"])
def test_announced_looks_at_bits_so_far_lose_at_most_what_is_said(name, epsilon, planned, file):
    statistic = STATISTICS[name](epsilon=epsilon, intrusions=planned)
    for made in range(planned + 1):
        bound = explained(file, statistic.state())[0].description.so_far
        law = looks_of(statistic)
        quiet = law([False] * (made + 1), made + 1)
        for history in range(1, 2 ** (made + 1)):
            busy = law([bool(history >> epoch & 1) for epoch in range(made + 1)], made + 1)
            for run, chance in busy.items():
                assert max(chance / quiet[run], quiet[run] / chance) <= bound.odds
        if made < planned:
            statistic.announce_intrusion()


def test_a_cropped_sum_counts_its_one_announced_intrusion(file):
    statistic = STATISTICS["cropped"](epsilon=9, releases=2, intrusions=1)
    statistic.release()
    statistic.announce_intrusion()
    statistic.release()
    described = explained(file, statistic.state())[0].description
    assert described.so_far.epsilon == 9
    page = " ".join(run_command("explain", file).stdout.split())
    assert "nobody counts for more than 10" in page
    assert "bound 100 (the largest sum of a user's deltas" in page
    assert "docs/guarantees/blocks.md" in page


def test_a_soft_threshold_tells_where_it_is(file):
    explained(file, STATISTICS["threshold"]().state())
    page = " ".join(run_command("explain", file).stdout.split())
    assert "in a state of about 10 or more" in page
    assert "threshold 10 (the state from which on a user counts in full)" in page


@pytest.mark.parametrize(("name", "less"), [("distinct", True), ("incidence", False)])
def test_bits_say_that_they_cost_less_than_the_sum(name, less, file):
    explained(file, STATISTICS[name]().state())
    page = " ".join(run_command("explain", file).stdout.split())
    assert ("Together they cost less than the sum: a release reads noisy bits." in page) == less


@pytest.mark.parametrize("kind", [pp.RunningCount, pp.RunningDistinct])
def test_a_running_count_says_that_it_has_paid(kind, file):
    explained(file, kind(horizon=5, epsilon=1, intrusions=1).state())
    page = " ".join(run_command("explain", file).stdout.split())
    assert "Epsilon 1 is paid at birth, and covers 2 looks at the state and 5 releases." in page
    assert "docs/guarantees/running.md" in page


def test_a_count_of_heavy_hitters_tells_its_threshold(file):
    explained(file, STATISTICS["heavy"]().state())
    page = " ".join(run_command("explain", file).stdout.split())
    assert "at least 1/10 of a public total" in page
    assert "total 1,000 (what all deltas add up to, which is public)" in page
    assert "docs/guarantees/heavy.md" in page


def test_a_loss_beyond_all_numbers_promises_nothing(file):
    bound = PrivacyLoss(Fraction(10_001))
    assert bound.odds is None
    assert bound.posterior(Fraction(1, 2)) == (0, 1)
    states = explained(file, STATISTICS["density"](epsilon=900_000).state())
    document = as_document(states)
    assert document["states"][0]["promised"]["odds"] == "inf"
    assert "inf" in json.dumps(document, allow_nan=False)
    assert run_command("explain", file).code == 0


@given(CHANCES)
def test_printed_chances_are_rounded_outward(chance):
    low, high = (read_chance(one(chance)) for one in (_rounded_down, _at_most))
    assert low <= chance <= high
    assert high - low < Fraction(1, 50) * chance
    assert Fraction(rounded_up(chance, 4)) >= chance


def read_chance(text):
    if text.startswith("1 in "):
        return Fraction(1, int(text[5:].replace(",", "")))
    return Fraction(text.removesuffix(" %")) / 100


@pytest.mark.parametrize("power", [400, -400])
def test_floats_are_rounded_outward_where_they_end(power):
    number = Fraction(10) ** power
    assert float_above(number) >= number
    if power < 0:
        assert float_below(number) == 0


# Several states


def test_states_of_one_file_are_told_in_turn_and_added_up(file):
    ledger = pp.Ledger(2)
    statistics = [STATISTICS[name](ledger=ledger) for name in ("density", "distinct")]
    states = explained(file, *(one.state() for one in statistics))
    assert [one.description.kind for one in states] == [pp.Density, pp.DistinctCount]
    assert promised(states).epsilon == 2
    assert so_far(states).epsilon == sum(one.plan.split.budget.state for one in statistics)
    (shared,) = as_document(states)["together"]["ledgers"]
    assert shared == {"total": 2.0, "promised": 2.0, "possible": True}


def test_states_that_exceed_a_ledger_do_not_share_it(file):
    states = explained(file, *(STATISTICS["density"]().state() for _ in range(3)))
    assert [(one.first, one.last) for one in states] == [(1, 3)]
    assert as_document(states)["together"]["ledgers"][0]["possible"] is False
    assert "If they are groups" in " ".join(run_command("explain", file).stdout.split())


def test_the_groups_of_a_grouped_statistic_are_alike(file):
    pages = pp.Grouped(
        lambda epsilon: STATISTICS["distinct"](epsilon=epsilon), ["a", "b"], epsilon=1, per_user=2
    )
    (alike,) = explained(file, pages.state())
    assert alike.count == 2
    assert promised([alike]).epsilon == 1


def test_a_window_is_explained_by_what_it_holds(file):
    daily = pp.Windowed(STATISTICS["density"], every=86_400)
    after = STATISTICS["incidence"]()
    window, other = explained(file, daily.state(), after.state())
    assert window.description.kind is pp.Density
    assert (other.first, other.description.kind) == (2, pp.Incidence)
    assert (window.within, other.within) == (("Windowed",), ())
    page = " ".join(run_command("explain", file).stdout.split())
    assert "no times of events" in page
    assert "When the window began is there" in page
    assert "batch" not in page


def test_a_stream_of_a_service_is_explained_with_its_batch_ids(file):
    def each(epsilon):
        return STATISTICS["density"](epsilon=epsilon)

    daily = pp.Windowed(lambda: pp.Grouped(each, ["a", "b"], epsilon=1), every=86_400)
    file.write_bytes(Container("Stream", {"stream": "visits"}, 216, [daily]).packed(bytes(216)))
    (alike,) = read_states(file)
    assert (alike.count, alike.within) == (2, ("Stream", "Windowed", "Grouped"))
    page = " ".join(run_command("explain", file).stdout.split())
    assert "Hashes of the last batch ids" in page


def moving(**more):
    density = partial(pp.Density, universe=1_000)
    return pp.ChangeTriggered(density, threshold=600, updates=2, epsilon=1, **more)


def test_an_answer_that_moves_tells_its_delta(file):
    """Delta is in every number that is said, and in what they mean."""
    statistic = moving(delta="0.1")
    states = explained(file, statistic.state())
    document = as_document(states)["states"][0]
    assert document["promised"]["delta"] == document["so_far"]["delta"] == 0.1
    assert document["promised"]["exceptions"] == 0.2
    assert states[0].description.guarantee.loss == statistic.guarantee.loss
    page = " ".join(run_command("explain", file).stdout.split())
    assert "Whatever somebody believed before" not in page
    assert "But for outcomes of probability 0.2 in all" in page
    assert "epsilon 1 and delta 0.1" in page
    assert "a factor of 6.437, but for outcomes of probability 0.2" in page
    assert "On average over all outcomes a belief of 10 % ends up between" in page
    assert "docs/guarantees/beliefs.md" in page
    assert "2.719" not in page
    assert "for k people it is k times epsilon" in page
    assert (
        "Delta grows by more: for k people 1 + e**epsilon + ... + e**((k-1) epsilon) deltas" in page
    )


def test_no_delta_grows_where_there_is_none(file):
    explained(file, STATISTICS["density"]().state())
    page = " ".join(run_command("explain", file).stdout.split())
    assert "for k people it is k times epsilon" in page
    assert "Delta" not in page


def test_a_crash_is_told_for_all_events_that_it_may_cost(file):
    """New trees count the whole table again, with every event that came before the crash."""
    statistic = pp.RunningDistinct(expected=300, memory=64, horizon=4, epsilon=2)
    explained(file, statistic.state())
    page = " ".join(run_command("explain", file).stdout.split())
    crash = format_rounded_up(statistic.guarantee.crash, 4)
    assert f"Each crash after which an earlier state goes on adds up to epsilon {crash}." in page


@pytest.mark.parametrize("broken", [{"comparisons": "1/3"}, {"comparisons": 0}, {"delta": "x"}])
def test_comparisons_that_do_not_go_together_are_refused(broken, file):
    state = moving().state()
    header = read_header(io.BytesIO(state))
    public = json.dumps({**header.public(), **broken}).encode()
    file.write_bytes(Header(public, header.body_bytes).packed() + state[header.front_bytes :])
    with pytest.raises(InputError, match="do not go together"):
        read_states(file)


def test_of_groups_those_count_in_which_one_user_may_be(file):
    groups = pp.Grouped(
        lambda share: pp.Density(universe=50, epsilon=share), [*"abcde"], epsilon=2, per_user=2
    )
    states = explained(file, groups.state())
    assert promised(states) == groups.guarantee.loss
    page = " ".join(run_command("explain", file).stdout.split())
    assert "in all of them, or in as many groups as one may be, it is at most epsilon" in page


def test_what_holds_states_and_is_not_known_is_refused(file):
    file.write_bytes(Container("Sack", {}, 0, [STATISTICS["density"]().internals.memory]).packed())
    with pytest.raises(InputError, match=r"does not know|do not go together"):
        read_states(file)


def test_a_state_that_claims_to_hold_others_and_does_not_is_refused(file):
    daily = pp.Windowed(STATISTICS["density"], every=86_400)
    for claim in (b'"own_bytes": 9', b'"own_bytes":-8', b'"own_bytes":""'):
        with pytest.raises(InputError):
            explained(file, daily.state().replace(b'"own_bytes": 8', claim))


# What is named


@pytest.mark.parametrize("name", STATISTICS)
def test_every_named_file_exists(name, file):
    (alike,) = explained(file, STATISTICS[name]().state())
    named = alike.description.proofs + alike.description.checks
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert len(named) >= 5


def test_a_page_names_only_files_that_exist(file):
    for make in STATISTICS.values():
        file.write_bytes(make().state())
        page = run_command("explain", file).stdout
        named = re.findall(r"(?:docs|tests)/[\w/]+(?:\.\w+)?", page)
        assert len(named) >= 5
        assert [name for name in named if not (ROOT / name).exists()] == []


# The command


def test_a_table_is_not_read(file):
    """A file of 32 GiB that has no blocks on the disk is told as fast as any other."""
    universe = 1 << 38
    sizes = json.dumps({"cells": universe, "universe": universe}).encode()
    text = SMALL[HEAD:-2].replace(b'{"universe": 9}', sizes)
    split = plan("density", universe=universe, cells=universe, epsilon=1).split.budget
    budget = json.dumps({"release": str(split.release), "state": str(split.state)}).encode()
    text = re.sub(rb'(?<="budget": )\{[^}]*\}', budget, text)
    front = SMALL[:8] + len(text).to_bytes(4, "little") + (universe // 8).to_bytes(8, "little")
    with file.open("wb") as stream:
        stream.write(front + bytes(HEAD - 20) + text)
        stream.truncate(HEAD + len(text) + universe // 8)
    (alike,) = read_states(file)
    assert alike.description.plan.cells == universe


# Bad input


def refused(file, content):
    file.write_bytes(content)
    result = run_command("explain", file)
    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.startswith("panprivacy: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def told_or_refused(file, content):
    """The only error that may come of it, or nothing."""
    try:
        document = as_document(explained(file, content))
    except InputError as error:
        return str(error)
    json.dumps(document, allow_nan=False)
    return ""


@pytest.mark.long
@pytest.mark.parametrize("state", [SMALL, COUNTERS])
def test_every_truncation_is_refused(state, file):
    for length in range(len(state)):
        file.write_bytes(state[:length])
        with pytest.raises(InputError):
            read_states(file)
        file.write_bytes(state + state[:length])
        if length:
            with pytest.raises(InputError, match="after state 1 of the file"):
                read_states(file)


HEADERS = [
    SMALL,
    COUNTERS,
    STATISTICS["custom law"](universe=9).state(),
    STATISTICS["cropped"](universe=9).state(),
    STATISTICS["heavy rounded"](cells=20).state(),
    STATISTICS["threshold"](universe=9).state(),
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("state", "step"),
    [
        (SMALL, 1),  # every bit
        *((state, 9) for state in HEADERS[1:]),  # a bit of every byte, each time the next one
        *(pytest.param(state, 1, marks=pytest.mark.slow) for state in HEADERS[1:]),
    ],
)
def test_every_flipped_bit_of_a_header_is_refused_or_told(state, step, file):
    length = HEAD + int.from_bytes(state[8:12], "little")
    for bit in range(0, 8 * length, step):
        damaged = bytearray(state)
        damaged[bit // 8] ^= 1 << bit % 8
        assert "\n" not in told_or_refused(file, bytes(damaged))


def with_text(text, body=b"\0\0"):
    return SMALL[:8] + len(text).to_bytes(4, "little") + len(body).to_bytes(8, "little") + bytes(
        HEAD - 20
    ) + text + body  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
PUBLIC = json.loads(SMALL[HEAD:-2])


@st.composite
def damaged_parameters(draw):
    """Public parameters with one of them, or one within, replaced."""
    public = json.loads(json.dumps(PUBLIC))
    part = draw(st.sampled_from([public, public["budget"], public["request"], public["sizes"]]))
    part[draw(st.sampled_from([*part, "cells", "law", "memory"]))] = draw(JSON)
    return public


HOSTILE = [
    *(None, True, False, 0, -1, 1.5, 10**400, 1 << 40, "", "0", "1/0", "1e999999999", "9" * 5_000),
    *("nan", "inf", "-1", "1/3", [], [1, 1 << 62], {}, {"a": []}, "flat 3 1", "custom 1 1"),
    *("geometric 99999999999 1", "custom " + "1 " * 3_000 + "1", "\ud800", "\x1b[2J"),
]


def mutated(public):
    """Public parameters with each field in turn replaced by each hostile value, or taken out."""
    for part in (None, "budget", "request", "sizes"):
        inner = public if part is None else public[part]
        for name in [*inner, "cells", "law", "universe"]:
            for value in HOSTILE:
                changed = {**inner, name: value}
                yield changed if part is None else {**public, part: changed}
            less = {key: one for key, one in inner.items() if key != name}
            yield less if part is None else {**public, part: less}


def without_choices(public):
    """The rest of the public parameters, beside what the shipping code leaves open.

    These are its version, the total of the ledger, whether the split of epsilon was asked for, and
    sizes that are planned alike: the split and the bytes of the table are compared.
    """
    left_open = {"version", "ledger", "sizes"}
    rest = {name: one for name, one in public.items() if name not in left_open}
    return {**rest, "request": {**rest["request"], "own_budget": None}}


@pytest.mark.long
@pytest.mark.parametrize("state", HEADERS)
def test_every_field_of_the_public_parameters_is_compared(state, file):
    """Whatever differs from what the shipping code writes is refused, and at once."""
    length = int.from_bytes(state[8:12], "little")
    public, body = json.loads(state[HEAD : HEAD + length]), state[HEAD + length :]
    began = time.process_time()
    for changed in mutated(public):
        said = told_or_refused(file, with_text(json.dumps(changed, sort_keys=True).encode(), body))
        assert said or without_choices(changed) == without_choices(public)
        assert "\n" not in said
    assert time.process_time() - began < 60


@pytest.mark.long
@settings(max_examples=150)
@given(damaged_parameters())
def test_any_other_parameters_are_refused_or_told(tmp_path_factory, public):
    file = tmp_path_factory.getbasetemp() / "damaged.state"
    content = with_text(json.dumps(public, sort_keys=True).encode())
    assert "\n" not in told_or_refused(file, content)


def test_a_law_that_loses_more_than_a_look_may_is_refused(file):
    state = STATISTICS["custom law"]().state()
    assert "go together" in refused(file, state.replace(b"custom 3 1 1", b"custom 9 1 1"))


def test_a_file_of_too_many_states_is_refused(file, monkeypatch):
    state = pp.DistinctCount(epsilon=1, expected=(10, 100)).state()
    other = pp.DistinctCount(epsilon=1, expected=(10, 200)).state()
    file.write_bytes(state * 3 + other)
    assert [one.count for one in read_states(file)] == [3, 1]
    for limit, most in (("_MOST_STATES", 3), ("_MOST_FRONTS", 1)):
        monkeypatch.setattr(reading, limit, most)
        with pytest.raises(InputError, match="the file holds more than"):
            read_states(file)
        monkeypatch.undo()


@pytest.mark.parametrize("stanzas", [1_000, 100_000])
def test_a_sealed_file_with_a_long_header_is_refused_at_once(file, tmp_path, stanzas):
    identity = tmp_path / "key"
    identity.write_text(f"{pyrage.x25519.Identity.generate()}\n")
    stanza = b"-> X25519 " + b"A" * 43 + b"\n" + b"A" * 43 + b"\n"
    head = b"age-encryption.org/v1\n" + stanza * stanzas + b"--- " + b"A" * 43 + b"\n"
    file.write_bytes(head + bytes(100))
    began = time.thread_time()
    for command in ("explain", "merge"):
        told = run_command(command, file, "--identity", identity)
        assert told.code == 2
        assert "the file is damaged, or sealed to another identity" in told.stderr
        assert told.stderr.count("\n") == 1
    assert time.thread_time() - began < 5
