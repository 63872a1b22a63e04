"""Results of an attack: the measured numbers beside their bounds, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from panprivacy.audit.attacks.guesses import FALSE_ALARM, Guesses, percent, right_probability
from panprivacy.audit.binomial import upper_quantile

ORDINARY = "ordinary"
PRODUCT = "product"
OUTSIDE = "outside the guarantee"
_LARGE = 3.0
"""Above this epsilon an intruder may be nearly certain."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A number of the attacked program, with a sentence that states it.

    Args:
        kind: "ordinary" for one that is to fall, "product" for ours, which is to hold, or
            "outside the guarantee" for ours where nothing is promised.
        bound: the most that is promised, exactly; None where nothing is.
        limit: the bound and the slack of this run, which chance exceeds once in a million runs.
        as_stated: whether an ordinary program fell, ours held, or what is outside is as we say.
    """

    target: str
    kind: str
    figure: str
    measured: float
    bound: float | None
    limit: float | None
    as_stated: bool
    sentence: str


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Guesses of an intruder about all people, for a picture; `kind` is as in `Finding`."""

    title: str
    kind: str
    guesses: Guesses


@dataclass(frozen=True, slots=True, eq=False)
class AttackResult:
    """The result of an attack; `epsilon` is that of the programs that should resist."""

    name: str
    epsilon: float
    findings: tuple[Finding, ...]
    panels: tuple[Panel, ...]

    @property
    def ok(self) -> bool:
        """Whether ordinary programs fall as stated and ours stays within its bounds."""
        return all(one.as_stated for one in self.findings)

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        wrong = [one for one in self.findings if not one.as_stated]
        broken = dict.fromkeys(one.target for one in wrong if one.kind == PRODUCT)
        if broken:
            return f"The guarantee is broken: more than promised leaks from {'; '.join(broken)}."
        if wrong:
            targets = dict.fromkeys(one.target for one in wrong)
            return f"The attack fails where it was to succeed: {'; '.join(targets)}."
        little = ""
        if self.epsilon > _LARGE:
            share = percent(right_probability(Fraction(self.epsilon)))
            little = f" to its promise, which is little: guesses may be right {share} of the time"
        if any(one.kind == OUTSIDE for one in self.findings):
            return f"A second unannounced look tells who came; announced looks hold{little}."
        return f"Ordinary programs fall, ours holds{little}."


def fallen(
    target: str, figure: str, measured: float, sentence: str, *, least: float = 1.0
) -> Finding:
    """Return an ordinary program, from which the intruder is to get at least so much."""
    return Finding(target, ORDINARY, figure, measured, None, None, measured >= least, sentence)


def bounded_share(target: str, guesses: Guesses, epsilon: Fraction, sentence: str) -> Finding:
    """Return our share of right guesses beside the most that epsilon allows."""
    bound, limit = _bounds(guesses, epsilon)
    held = guesses.share <= limit
    return Finding(
        target, PRODUCT, "share of guesses right", guesses.share, bound, limit, held, sentence
    )


def bounded_advantage(target: str, guesses: Guesses, epsilon: Fraction, sentence: str) -> Finding:
    """Return our right less wrong guesses beside `(e**epsilon - 1)/(e**epsilon + 1)`."""
    bound, limit = (2 * share - 1 for share in _bounds(guesses, epsilon))
    held = guesses.advantage <= limit
    return Finding(target, PRODUCT, "advantage", guesses.advantage, bound, limit, held, sentence)


def _bounds(guesses: Guesses, epsilon: Fraction) -> tuple[float, float]:
    """Return the share that epsilon allows, and the same with the slack for `n` guesses."""
    bound, people = right_probability(epsilon), len(guesses.came)
    return bound, upper_quantile(people, bound, FALSE_ALARM) / people
