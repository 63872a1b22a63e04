"""What a state says about itself, and what follows for the people in the stream."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from panprivacy.cells.bits import keep_probability, worst_ratio
from panprivacy.cells.modular import counter_type
from panprivacy.explain.bounds import Bound
from panprivacy.guarantee import Budget, log_above, randomised_response
from panprivacy.planning.universe import key_bytes_in
from panprivacy.polynomial import WORD_BYTES


@dataclass(frozen=True, slots=True)
class Kind:
    """What all statistics of one kind share.

    Args:
        question: what it answers.
        proofs: the pages that prove its guarantee.
        checks: the tests that check it.
    """

    question: str
    proofs: tuple[str, ...]
    checks: tuple[str, ...]


def _kind(question: str, proofs: str, exact: str, *statistical: str) -> Kind:
    pages = (*proofs.split(), "addressing", "composition")
    measured = (f"tests/statistical/{name}.py" for name in statistical)
    return Kind(
        question,
        tuple(f"docs/guarantees/{page}.md" for page in pages),
        ("tests/contract", f"tests/exact/{exact}.py", *measured),
    )


KINDS = {
    "density": _kind(
        "what share of a known universe of users appeared, or is present?",
        *("bits sums", "test_exact", "test_bits", "test_density"),
    ),
    "distinct": _kind(
        "how many different users appeared?",
        *("bits sums", "test_exact", "test_bits", "test_distinct_count"),
    ),
    "net": _kind(
        "how many different users are left, when they come and go?",
        *("scaled sums", "test_counters", "test_net_distinct"),
    ),
    "incidence": _kind(
        "how many users appeared exactly t times, for every t?",
        *("modular named histogram", "test_counters", "test_incidence"),
    ),
    "cropped": _kind(
        "how much have all users done, if nobody counts for more than tau?",
        *("modular blocks sums", "test_cropped", "test_cropped_sum"),
    ),
    "heavy": _kind(
        "how many users hold at least 1/k of a public total?",
        *("modular heavy blocks sums independent", "test_heavy", "test_heavy_hitters"),
    ),
    "threshold": _kind(
        "how many users are in a state of about so much or more?",
        *("modular heavy blocks sums", "test_threshold", "test_threshold"),
    ),
}


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of what was planned have been made."""

    made: int
    planned: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """The public sizes; None where a statistic has none.

    Args:
        cells: entries of the table.
        universe: number of possible users.
        expected: lowest and highest number of users that were planned for.
        levels: runs that the cells are divided into.
        bound: the largest distance of a user's sum of deltas from 0.
        signed: whether such sums may be below 0.
        modulus: number of values of a counter; None for bits.
        tau: the most that a user counts for.
        k: users count who hold at least 1/k of the total.
        total: what the deltas of all users add up to.
        least: the state from which on a user counts in full.
        independence: of so many users the cells are independent.
    """

    cells: int
    universe: int | None = None
    expected: tuple[int, int] | None = None
    levels: int | None = None
    bound: int | None = None
    signed: bool | None = None
    modulus: int | None = None
    tau: int | None = None
    k: int | None = None
    total: int | None = None
    least: int | None = None
    independence: int | None = None

    @property
    def table_bytes(self) -> int:
        """Bytes of the table."""
        if self.modulus is None:
            return -(-self.cells // 8)
        return self.cells * counter_type(self.modulus).itemsize

    @property
    def key_bytes(self) -> int:
        """Bytes of addressing key; where each possible user has a cell there is none."""
        if self.independence is not None:
            return WORD_BYTES * (1 + self.independence)
        return key_bytes_in(self.universe, self.cells)


@dataclass(frozen=True, slots=True)
class Description:
    """What the front of a state says.

    Args:
        statistic: name of the class.
        kind: one of `KINDS`.
        version: of panprivacy, that made it.
        sizes: of its table.
        budget: epsilon of each look and of each release.
        epsilon: the total that was promised.
        ledger: the total over all statistics that share its ledger.
        releases: answers that were published.
        intrusions: looks at the state that were announced.
        state_bytes: size of the whole state.
    """

    statistic: str
    kind: str
    version: str
    sizes: Sizes
    budget: Budget
    epsilon: Fraction
    ledger: Fraction
    releases: Progress
    intrusions: Progress
    state_bytes: int

    @property
    def promised(self) -> Bound:
        """What holds over the whole life: all planned looks, one more, and all releases."""
        return Bound(self.epsilon)

    @property
    def so_far(self) -> Bound:
        """What holds for whoever saw this state, those announced before, and all releases."""
        return Bound(self._looks + self.releases.made * self.budget.release)

    @property
    def _looks(self) -> Fraction:
        """The loss of the looks so far.

        An announced intrusion adds fresh noise to a counter, so each look costs its own epsilon.
        Bits are flipped just often enough for all planned looks together; the first few of them
        may cost a little more than their share, so their loss is computed.
        """
        made, planned = self.intrusions.made, self.intrusions.planned
        if self.sizes.modulus is None and 0 < made < planned:
            return _looks_at_bits(self)
        return (made + 1) * self.budget.state


def _looks_at_bits(description: Description) -> Fraction:
    """The exact loss of some of the planned looks at a table of bits, rounded up."""
    state, intrusions = description.budget.state, description.intrusions
    deletions = description.kind == "density"
    keep = keep_probability(state, intrusions.planned, deletions=deletions)
    present = randomised_response(state)
    ratio = Fraction(worst_ratio(present, keep, intrusions.made, deletions=deletions))
    return min(log_above(ratio), (intrusions.planned + 1) * state)
