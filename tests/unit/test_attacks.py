"""Attacks: ordinary programs fall, ours holds, and one of ours that leaks is found out."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit.attacks import (
    ATTACKS,
    AttackResult,
    Finding,
    decoding,
    dictionary,
    heavy_hitters,
    replay,
    snapshots,
)
from panprivacy.audit.attacks.guesses import (
    FALSE_ALARM,
    Guesses,
    right_probability,
)
from panprivacy.audit.attacks.outcome import bounded_advantage, bounded_share
from panprivacy.audit.attacks.picture import draw
from panprivacy.audit.attacks.reconstruction import (
    Accuracy,
    consistent,
    least_absolute,
    least_squares,
    sparse_vectors,
    unions,
)
from panprivacy.audit.attacks.seized import Seized, integers, shuffled, tossed
from panprivacy.audit.attacks.sketches import HyperLogLog, LinearCounting
from panprivacy.audit.binomial import upper_quantile
from panprivacy.errors import PlanError
from panprivacy.privacy.coins import SystemCoins
from tests.commands import run_command

NAMES = ["dictionary", "replay", "snapshots", "decoding", "heavy-hitters"]
QUICK = ["dictionary", "replay", "snapshots", "heavy-hitters"]
DOCS = Path(__file__).parents[2] / "docs"
COINS = SystemCoins()


FEWER = {"PEOPLE": 400, "QUERIES": 1_600, "_WRONG": 320, "ERROR": 2}
"""To decode; a slow test decodes as many as the attack does."""


def decode_fewer(patch):
    for module in (decoding, heavy_hitters):
        for name, number in FEWER.items():
            if hasattr(module, name):
                patch.setattr(module, name, number)


@pytest.fixture(scope="module")
def outcomes():
    """One outcome of each attack."""
    with pytest.MonkeyPatch.context() as patch:
        decode_fewer(patch)
        return {name: attack(1) for name, attack in ATTACKS.items()}


def louder(kind, factor):
    """A class of ours that spends more than it was given: its state tells more than it says."""

    def make(**arguments):
        return kind(**{**arguments, "epsilon": arguments["epsilon"] * factor})

    return make


def of_kind(outcome, kind):
    return [one for one in outcome.findings if one.kind == kind]


def test_there_are_five_attacks_and_no_one_can_add_to_them():
    assert list(ATTACKS) == NAMES
    with pytest.raises(TypeError):
        ATTACKS["another"] = dictionary.attack


@pytest.mark.parametrize("epsilon", [3, Fraction(1, 3)])
@pytest.mark.parametrize("name", QUICK)
def test_each_attack_goes_as_stated(name, epsilon):
    outcome = ATTACKS[name](epsilon)
    assert isinstance(outcome, AttackResult)
    assert outcome.ok, outcome.findings
    assert (outcome.name, outcome.epsilon) == (name, float(epsilon))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_decoding_goes_as_stated(epsilon):
    outcome = ATTACKS["decoding"](epsilon)
    assert outcome.ok, outcome.findings


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [1e-3, 40, 1_000])
@pytest.mark.parametrize("name", QUICK)
def test_any_epsilon_can_be_tried(name, epsilon):
    assert ATTACKS[name](epsilon).ok


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_says_who_falls(outcomes, name):
    outcome = outcomes[name]
    assert outcome.ok
    outside = of_kind(outcome, "outside the guarantee")
    assert bool(outside) == (name == "snapshots")
    assert ("unannounced look tells" if outside else "fall, ours holds") in outcome.verdict


@pytest.mark.parametrize("name", NAMES)
def test_findings_are_plain_numbers_beside_their_bounds(outcomes, name):
    findings = outcomes[name].findings
    assert of_kind(outcomes[name], "product")
    for one in findings:
        assert isinstance(one, Finding)
        assert type(one.measured) is float
        assert type(one.as_stated) is bool
        if one.kind == "product":
            assert -1 < one.measured <= one.limit
            assert 0 < one.bound < one.limit < 1
        else:
            assert one.bound is one.limit is None
            assert 0.9 <= one.measured <= 1
    json.dumps([dataclasses.asdict(one) for one in findings])


def test_members_are_all_found_in_sketches_and_in_salted_hashes(outcomes):
    measured = {(one.target, one.figure): one.measured for one in outcomes["dictionary"].findings}
    assert measured["HyperLogLog", "members found"] == 1
    assert measured["bitmap", "members found"] == 1
    assert measured["salted hashes", "members found"] == 1
    assert measured["salted hashes", "advantage"] == 1  # and nobody else is suspected


def test_bounds_are_those_of_epsilon(outcomes):
    for name in ("dictionary", "replay"):
        for one in of_kind(outcomes[name], "product"):
            assert math.isclose(one.bound, (math.e - 1) / (math.e + 1))
    for name in ("decoding", "heavy-hitters"):
        for one in of_kind(outcomes[name], "product"):
            assert math.isclose(one.bound, math.e / (math.e + 1))


def test_two_looks_are_held_to_what_is_planned_for_them(outcomes):
    plan = pp.Density(universe=snapshots.PEOPLE, epsilon=1, intrusions=1).plan
    planned = float(2 * plan.split.budget.state)
    assert planned < 1
    for one in of_kind(outcomes["snapshots"], "product"):
        share = right_probability(planned)
        assert math.isclose(one.bound, 2 * share - 1 if one.figure == "advantage" else share)


def test_runs_differ():
    first, second = (ATTACKS["replay"](1) for _ in range(2))
    assert [one.measured for one in first.findings] != [one.measured for one in second.findings]


LEAKS = [
    ("dictionary", dictionary, "DistinctCount", pp.DistinctCount, 2),
    ("replay", replay, "Density", pp.Density, Fraction(5, 4)),
    ("replay", replay, "Incidence", pp.Incidence, Fraction(5, 4)),
    ("snapshots", snapshots, "Density", pp.Density, 2),
    ("decoding", decoding, "Density", pp.Density, 4),
    ("heavy-hitters", heavy_hitters, "Incidence", pp.Incidence, 4),
]


def with_bits(program, coins, *, wrong):
    return decoding.decode_products(program, coins)


@pytest.mark.parametrize(("name", "module", "of", "kind", "factor"), LEAKS)
def test_a_leak_is_found_out(monkeypatch, name, module, of, kind, factor):
    monkeypatch.setattr(module, of, louder(kind, factor))
    if name == "snapshots":  # whose plan says what both looks cost
        monkeypatch.setattr(snapshots, "_planned", lambda _plan: Fraction(1))
    if name == "decoding":  # the slower decoder has no part in this
        decode_fewer(monkeypatch)
        monkeypatch.setattr(decoding, "decode_signs", with_bits)
    outcome = ATTACKS[name](1)
    assert not outcome.ok
    assert outcome.verdict.startswith("The guarantee is broken")
    assert of in outcome.verdict or name == "snapshots"
    assert all(one.as_stated for one in outcome.findings if one.kind == "ordinary")


def test_an_announcement_that_changes_nothing_is_found_out(monkeypatch):
    class Careless(pp.Density):
        """It counts the intrusion, and leaves the bits."""

        __slots__ = ()

        def announce_intrusion(self):
            self.internals.memory.now.intrusions += 1

    monkeypatch.setattr(snapshots, "Density", Careless)
    outcome = ATTACKS["snapshots"](1)
    assert not outcome.ok
    assert "announced" in outcome.verdict


def test_an_attack_that_fails_on_an_ordinary_program_is_not_ok(monkeypatch):
    monkeypatch.setattr(
        LinearCounting, "may_hold", lambda _, people: np.arange(len(people)) % 2 > 0
    )
    outcome = ATTACKS["dictionary"](1)
    assert not outcome.ok
    assert outcome.verdict == "The attack fails where it was to succeed: bitmap."


def test_a_second_look_that_betrays_nobody_is_not_as_stated(monkeypatch):
    monkeypatch.setattr(
        snapshots, "_compare_unannounced", lambda _, came: Guesses(came, tossed(COINS, len(came)))
    )
    outcome = ATTACKS["snapshots"](1)
    assert not outcome.ok
    assert outcome.verdict.startswith("The attack fails where it was to succeed: unannounced")


def test_a_generator_that_cannot_be_replayed_is_not_ok(monkeypatch):
    monkeypatch.setattr(replay, "KeptGenerator", Unreplayable)
    for _ in range(6):  # now and then chance foresees the noise
        outcome = ATTACKS["replay"](1)
        assert all(one.as_stated for one in of_kind(outcome, "product"))
        if not any(one.as_stated for one in of_kind(outcome, "ordinary")):
            return
    pytest.fail("a generator is foreseen that draws from another seed")


class Unreplayable(replay.KeptGenerator):
    """It says that it has a seed, and draws from another one."""

    def __init__(self, seed, calls=0):
        super().__init__(SystemCoins().key(32), calls)


def exact_tail(people, probability, right):
    """The probability that more than `right` of them are right."""
    return sum(
        math.comb(people, k) * probability**k * (1 - probability) ** (people - k)
        for k in range(right + 1, people + 1)
    )


@pytest.mark.parametrize("people", [1, 19, 40, 300])
@pytest.mark.parametrize("probability", [Fraction(1, 2), Fraction(3, 4), Fraction(99, 100)])
def test_the_slack_is_the_least_with_this_false_alarm(people, probability):
    most = upper_quantile(people, float(probability), FALSE_ALARM)
    alarm = Fraction(FALSE_ALARM)
    assert exact_tail(people, probability, most) <= alarm
    assert exact_tail(people, probability, most - 1) > alarm


def test_a_certain_guess_may_always_be_right():
    assert upper_quantile(10, right_probability(1_000), FALSE_ALARM) == 10


def test_advantages_are_right_less_wrong():
    came = np.array([True] * 6 + [False] * 4)
    said = np.array([True] * 5 + [False] * 4 + [True])
    guesses = Guesses(came, said)
    assert (guesses.right, guesses.share) == (8, 0.8)
    assert math.isclose(guesses.advantage, 0.6)
    assert math.isclose(guesses.found, 5 / 6)
    assert math.isclose(guesses.suspected, 1 / 4)


@pytest.mark.parametrize("bounded", [bounded_share, bounded_advantage])
def test_a_bound_with_its_slack_is_the_limit(bounded):
    most = upper_quantile(1_000, right_probability(1), FALSE_ALARM)
    came = np.ones(1_000, np.bool_)
    at = bounded("at", Guesses(came, np.arange(1_000) < most), Fraction(1), "")
    above = bounded("above", Guesses(came, np.arange(1_000) <= most), Fraction(1), "")
    assert at.as_stated
    assert not above.as_stated


@pytest.mark.parametrize("kind", [LinearCounting, HyperLogLog])
def test_a_sketch_never_forgets_and_depends_on_its_key(kind):
    members = np.arange(3_000)
    answers = []
    for key in (bytes(16), b"k" * 16):
        sketch = kind(4_096, key)
        sketch.add(members)
        assert sketch.may_hold(members).all()
        answers.append(sketch.may_hold(np.arange(3_000, 9_000)))
        assert 0 < answers[-1].mean() < 0.5
    assert (answers[0] != answers[1]).any()


def test_a_hyperloglog_ranks_like_coins():
    sketch = HyperLogLog(1, b"k" * 16)
    _, ranks = sketch._marks(np.arange(100_000))
    assert np.allclose(np.bincount(ranks)[1:6] / 1e5, 2.0 ** -np.arange(1, 6), atol=0.01)
    assert ranks.min() == 1


def test_a_seized_state_is_the_state():
    visitors = pp.DistinctCount(epsilon=1, memory=1_000)
    seized = Seized.of(visitors)
    assert visitors.state().endswith(seized.key + seized.table.tobytes())
    assert len(seized.key) == visitors.plan.key_bytes
    assert seized.slots(np.arange(9)).max() < visitors.plan.cells


def test_least_squares_decodes_within_a_tenth_of_the_root():
    came = tossed(COINS, 100)
    queries = tossed(COINS, 600 * 100).reshape(600, 100).astype(float)
    assert (least_squares(queries, queries @ came + integers(COINS, 1, 600)) == came).all()


def test_least_absolute_decodes_where_least_squares_does_not():
    came = tossed(COINS, 100)
    signs = np.where(tossed(COINS, 600 * 100).reshape(600, 100), 1.0, -1.0)
    answers = signs @ came
    answers[shuffled(COINS, 600)[:120]] += 10_000
    assert (least_absolute(signs, answers, 1) == came).all()
    assert (least_squares(signs, answers) != came).any()


def test_sparse_vectors_are_all_of_them():
    vectors = sparse_vectors(6, 2)
    assert len(np.unique(vectors, axis=0)) == len(vectors) == 1 + 6 + 15
    assert vectors.sum(axis=1).max() == 2


def test_unions_are_counted():
    vectors = sparse_vectors(5, 2)
    expected = [[np.maximum(one, other).sum() for other in vectors] for one in vectors]
    assert (unions(vectors, vectors) == expected).all()


def test_consistent_vectors_are_those_within_reach():
    vectors = sparse_vectors(8, 2)
    answers = unions(vectors[20:21], vectors)[0]
    exact = consistent(vectors, answers, Accuracy(0.0, 0.1))
    assert (exact == vectors[20]).all()
    assert len(consistent(vectors, answers, Accuracy(0.0, 9))) == len(vectors)
    assert not len(consistent(vectors, answers + 5, Accuracy(0.0, 0.1)))


def test_our_state_is_run_forward_as_the_program_runs():
    """A count with everybody else fed to the state is that of a program that counted all."""
    came = np.arange(decoding.PEOPLE) % 2 > 0
    state = decoding.seize_density(Fraction(30), came, COINS)
    visits = heavy_hitters.SeizedIncidence(heavy_hitters.seize(Fraction(30), came), COINS)
    for program in (state, visits):
        for fed in (np.zeros_like(came), ~came, np.arange(len(came)) < 100):
            (count,) = program.counts_with(fed[np.newaxis])
            assert math.isclose(count, (came | fed).sum(), abs_tol=1)


@pytest.mark.long
@pytest.mark.parametrize("name", ["dictionary", "snapshots", "decoding"])
def test_pictures_are_written(outcomes, tmp_path, name):
    draw(outcomes[name], tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_shows_every_attack():
    page = (DOCS / "attacks.md").read_text()
    for name in NAMES:
        assert f"$ panprivacy attack {name}" in page
        assert f"](attacks/{name}.png)" in page
        assert (DOCS / "attacks" / f"{name}.png").exists()


@pytest.mark.long
def test_the_command_prints_numbers_and_the_verdict(tmp_path):
    plot = tmp_path / "picture.png"
    result = run_command("attack", "replay", "--epsilon", "2", "--plot", plot)
    assert (result.code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1] == "Ordinary programs fall, ours holds."
    assert f"{(math.e**2 - 1) / (math.e**2 + 1):.4f}" in result.stdout
    assert plot.exists()


def test_the_command_prints_json():
    result = run_command("attack", "snapshots", "--json")
    document = json.loads(result.stdout)
    assert result.code == 0
    assert (document["attack"], document["epsilon"], document["ok"]) == ("snapshots", 1, True)
    kinds = {one["kind"] for one in document["findings"]}
    assert kinds == {"product", "outside the guarantee"}


def test_the_command_fails_when_ours_leaks(monkeypatch):
    monkeypatch.setattr(replay, "Density", louder(pp.Density, 3))
    result = run_command("attack", "replay")
    assert result.code == 1
    assert "NOT AS STATED" in result.stdout
    assert "The guarantee is broken" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lookup"], f"the attacks are {', '.join(NAMES)}"),
        ([], "Missing argument 'NAME': type, for example, panprivacy attack dictionary"),
        (["replay", "--epsilon", "0"], "--epsilon must be a positive finite number"),
        (["replay", "--epsilon", "much"], "--epsilon must be a positive finite number"),
        (["replay", "--plot", "picture.pdf"], "--plot writes PNG"),
        (["replay", "--plot", "/dev/null/picture.png"], "--plot cannot write /dev/null/"),
    ],
)
def test_wrong_arguments_end_in_one_line(tmp_path, arguments, message):
    result = run_command("attack", *arguments, cwd=tmp_path)
    assert (result.code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "much", None])
@pytest.mark.parametrize("name", NAMES)
def test_wrong_epsilons_are_refused(name, epsilon):
    with pytest.raises(PlanError):
        ATTACKS[name](epsilon)
