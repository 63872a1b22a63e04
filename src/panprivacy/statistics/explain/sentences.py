"""An explanation in sentences, for people who decide about a state that somebody has seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from panprivacy._version import VERSION
from panprivacy.privacy.guarantee import PrivacyLoss, format_rounded_up
from panprivacy.statistics.abilities import Drawable
from panprivacy.statistics.explain.description import Description
from panprivacy.statistics.explain.document import PRIORS, ledgers, promised, so_far
from panprivacy.statistics.explain.reading import StateRun

_MOST_IN = 10**15
"""A lower bound of a chance below one in this number is shown as 0."""
_RARE = Fraction(1, 100)
"""Chances below it are shown as one in a number."""
_MOST_DECIMALS = 12
_DIGITS = 4
_BEFORE = Fraction(1, 10)
"""Belief for which the mean is shown."""

_ANYBODY = (
    "Whatever somebody believed before, here is between what chances the belief that a given {} "
    "was in the stream can end up:"
)
_RARELY = (
    "But for outcomes of probability {} in all, here is between what chances the belief that a "
    "given {} was in the stream can end up, whatever it was before:"
)
_ONE = {
    "user": "The bounds hold for one person, and for a reader who knows the addressing key and "
    "everything about everybody else. They do not hold for facts about groups: for k people it is "
    "k times epsilon, and people who come only together are a group.",
    "event": "The bounds hold for one event, and for a reader who knows everything about all "
    "others. They do not hold for a person of several events: for k events it is k times epsilon.",
}
_MORE_DELTA = "Delta grows by more: for k people 1 + e**epsilon + ... + e**((k-1) epsilon) deltas."
_ONE_LOOK = (
    "They hold if the state was seen only once without that being announced. A second copy from "
    "another moment (a backup, a snapshot of the machine) voids them."
)
_ELSEWHERE = "What is kept or published elsewhere about the same people adds to the loss."
_ADJACENCY = {
    "user": "Pan-privacy: differential privacy of the state and the releases together, for users. "
    "It compares the stream with one that lacks all or some events of one person, all else equal.",
    "event": "Pan-privacy: differential privacy of the state and the releases together, for "
    "events. It compares the stream with one that lacks one event, all else equal.",
}
_COMPUTED = (
    "It was computed from the public front of each state; cells and key were not read. That all "
    "lengths fit was checked. That panprivacy wrote these bytes, unaltered, cannot be seen in them."
)
NAMED = f"The named files are in the source of panprivacy {VERSION}. Bounds are rounded outward."


BELIEFS = "believed before", "with what came out so far", "with all that was promised"
"""The columns of a table of beliefs."""


@dataclass(frozen=True, slots=True)
class TitledPart:
    """A heading and its content, in this order.

    Args:
        heading: the heading.
        facts: facts by name.
        sentences: one paragraph each.
        beliefs: rows of a table whose columns are `BELIEFS`.
        after: paragraphs below the table.
    """

    heading: str
    facts: Mapping[str, str] = field(default_factory=dict)
    sentences: Sequence[str] = ()
    beliefs: Sequence[tuple[str, str, str]] = ()
    after: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """The explanation of some similar states, or of all.

    Args:
        title: names these states; empty for all.
        parts: the parts, in order.
    """

    title: str
    parts: Sequence[TitledPart]


def explained(states: Sequence[StateRun], rests_on: Sequence[str]) -> list[Section]:
    """Return the explanation of the states of a file, or of a program.

    Args:
        states: the states, in order.
        rests_on: the sources, as sentences.
    """
    together = [_together(states)] if states[-1].last > 1 else []
    hidden = {alike.description.plan.hides for alike in states}
    limits = [text for hides, text in _ONE.items() if hides in hidden]
    if any(alike.description.guarantee.delta for alike in states):
        limits.append(_MORE_DELTA)
    ends = [
        TitledPart("Where this ends", sentences=(*limits, _ONE_LOOK, _ELSEWHERE)),
        TitledPart("What is not there", sentences=_absent(states)),
        TitledPart("What this page rests on", sentences=rests_on),
    ]
    return [*(_of(alike, states[-1].last) for alike in states), Section("", [*together, *ends])]


def of_a_file(states: Sequence[StateRun]) -> list[str]:
    """Return the sources of an explanation of a file."""
    sources = [_COMPUTED, NAMED]
    if {alike.description.version for alike in states} != {VERSION}:
        sources.append("Another version made the state: compare with the files of that one.")
    return sources


def _of(alike: StateRun, count: int) -> Section:
    """Return the section about similar states."""
    described = alike.description
    places = f"State {alike.first:,}"
    if alike.count > 1:
        places = f"States {alike.first:,} to {alike.last:,}, all alike,"
    one = _hidden(described)
    article = "an" if one == "event" else "a"
    said = TitledPart(
        f"What it can say about {article} {one}",
        sentences=[_anybody(one, described.guarantee.loss)],
        beliefs=_beliefs(described.so_far, described.guarantee.loss),
        after=_bounds(described),
    )
    return Section(
        f"{places} of {count:,}: {described.name}, made by panprivacy {described.version}",
        [
            TitledPart("What it is", _facts(described)),
            said,
            TitledPart("Which guarantee this is", sentences=_guarantee(described)),
        ],
    )


def _together(states: Sequence[StateRun]) -> TitledPart:
    """Return the part about a person who is in all states."""
    now, life = so_far(states), promised(states)
    text = (
        "Losses add up over the states in which a person may be. For a person who is in all of "
        f"them it is at most epsilon {now.text(_DIGITS)} so far and {life.text(_DIGITS)} over "
        "their lives:"
    )
    if any(one.share < 1 for one in states):
        text = text.replace("them it", "them, or in as many groups as one may be, it")
    shares = []
    for shared in ledgers(states):
        total, sums = _epsilon(shared.total), _epsilon(shared.promised)
        share = f"The states that name a ledger of {total} promise {sums} in all"
        if shared.possible:
            share += f". If it is one ledger, {total} also covers every other statistic "
            share += "that shares it."
        else:
            share += (
                ", for a user of all of them. If they are groups, of which a user is in a few, "
            )
            share += "only those count for them."
        shares.append(share)
    heading = f"All {states[-1].last:,} states together"
    return TitledPart(heading, sentences=[text], beliefs=_beliefs(now, life), after=shares)


def _anybody(one: str, life: PrivacyLoss) -> str:
    """Return the subject of the table of beliefs; both columns have the same delta."""
    return _RARELY.format(_epsilon(life.exceptions), one) if life.delta else _ANYBODY.format(one)


def _beliefs(now: PrivacyLoss, life: PrivacyLoss) -> list[tuple[str, str, str]]:
    """Return beliefs afterwards, so far and after everything that was promised."""
    rows = []
    for prior in PRIORS:
        about = f"1 in {int(1 / prior):,}" if prior < _RARE else f"{float(100 * prior):g} %"
        rows.append((about, _range(now, prior), _range(life, prior)))
    return rows


def _facts(described: Description) -> dict[str, str]:
    """Return the public facts about a state, by name."""
    plan = described.plan
    facts = {"question": plan.question}
    if plan.range_of_states is not None:
        low, high = plan.range_of_states
        facts["range of states"] = f"{low:,} to {high:,} (other sums of deltas count wrong)"
    if plan.conditions:
        facts["the guarantee"] = "; ".join(plan.conditions)
    for entry, value in described.settled():
        if entry.name != "cells" and value is not False:
            facts[entry.name] = f"{_size(value)} ({entry.says})"
    groups = plan.drawing.groups if isinstance(plan, Drawable) else 1
    levels = f" in {groups:,} levels" if groups > 1 else ""
    slice_ = described.slice_
    held = "" if slice_ is None else f"; this is slice {slice_}, for the users of one shard"
    facts["cells"] = f"{plan.table.cells:,} {plan.table.says}{levels}{held}"
    made = {"releases": described.releases, "announced looks": described.intrusions}
    for name, progress in made.items():
        facts[name] = f"{progress.made:,} made of {progress.planned:,} planned"
    facts["size"] = (
        f"{described.state_bytes:,} bytes, {plan.key_bytes or 'none'} of them an addressing key; "
        "neither the size nor anything else here depends on the number of rows"
    )
    return facts


def _hidden(described: Description) -> str:
    """Return the word for the unit that the guarantee protects."""
    return {"user": "person"}.get(described.plan.hides, described.plan.hides)


def _size(value: object) -> str:
    """Return a size as displayed."""
    if isinstance(value, tuple):
        return " to ".join(map(_size, value))
    if value is True:
        return "yes"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _bounds(described: Description) -> tuple[str, ...]:
    """Return explanations of the middle column, and of the last one."""
    now, life = described.so_far, described.guarantee.loss
    releases, earlier = _counted(described.releases.made, "release"), described.intrusions.made
    seen = "this state"
    if earlier:
        seen += f", the {_counted(earlier, 'announced look')} before it (if by the same party)"
    first = f"So far: {seen} and {releases}, epsilon {now.text(_DIGITS)}."
    last = f"Promised over its whole life: epsilon {life.text(_DIGITS)}."
    first += f" The odds change by at most {now.says_of_odds(_DIGITS)}."
    last += f" The odds change by at most {life.says_of_odds(_DIGITS)}; "
    last += f"the odds of one {_hidden(described)} having been there in place of another by "
    last += f"at most {life.of_people(2).says_of_odds(_DIGITS)}."
    return (first, last, _mean(life)) if life.delta else (first, last)


def _mean(life: PrivacyLoss) -> str:
    """Return the meaning of a delta, and the bound that holds on average without any exception."""
    low, high = life.average(_BEFORE)
    delta = format_rounded_up(life.delta, 3)
    return (
        f"Delta {delta}: no set of outcomes has, with somebody in the stream, a "
        f"probability of more than e**epsilon times that without them and {delta}. "
        f"On average over all outcomes a belief of {float(100 * _BEFORE):g} % ends up between "
        f"{_rounded_down(low)} and {_at_most(high)}."
    )


def _guarantee(described: Description) -> list[str]:
    budget = described.budget
    looks = _counted(described.intrusions.planned + 1, "look")
    releases = _counted(described.releases.planned, "release")
    epsilon = _epsilon(described.epsilon)
    covers = (
        f"Epsilon {epsilon} covers {looks} at the state, {_epsilon(budget.state)} each, "
        f"and {releases}, {_epsilon(budget.release)} each."
        if budget.release
        else f"Epsilon {epsilon} is paid at birth, and covers {looks} at the state and {releases}."
    )
    made, seen = described.releases.planned, described.intrusions.planned
    if budget.release and budget.separate(releases=made, intrusions=seen) > described.epsilon:
        covers += " Together they cost less than the sum: a release reads noisy bits."
    if described.compared.epsilon:
        covers += " Its answer stands until it has moved: all comparisons cost "
        covers += f"{described.compared.text(_DIGITS)} beside."
    crashes = described.guarantee.says_of_crashes(_DIGITS)
    if crashes:
        covers += f" {crashes[:1].upper()}{crashes[1:]}."
    return [
        _ADJACENCY[described.plan.hides],
        covers,
        f"Its ledger allows epsilon {_epsilon(described.ledger)} for all statistics that share it.",
        f"Proved in {', '.join(described.proofs)}.",
        f"Checked by {', '.join(described.checks)}.",
    ]


def _absent(states: Sequence[StateRun]) -> list[str]:
    """Return what is absent from the file, and what is there in its place."""
    plans = [alike.description.plan for alike in states]
    keys = [plan.key_bytes for plan in plans if plan.reads_ids]
    around = {name for alike in states for name in alike.within}
    sentences = ["No ids, no list of people, no times of events, no number of events."]
    if "Windowed" in around:
        sentences.append("When the window began is there, in front of its state; it is public.")
    if "ShardStream" in around:
        sentences.append(
            "How far the queue of the shard is read is there, as is which slice of the table it "
            "counts: both are public. So are, not public, the keys that open its messages, and "
            "contributions that are not settled yet."
        )
    if around & {"Stream", "ShardStream"}:
        sentences.append(
            "Hashes of the last batch ids of each stream are there. Senders draw these ids for "
            "batches, not for people; whoever knows one can tell whether that batch came."
        )
    if any(keys):
        sentences.append(
            "The addressing key is within the state: whoever has it can tell which cell an id "
            "belongs to. The guarantee covers that; what the cell holds is noisy."
        )
    if not all(keys):
        sentences.append(
            "Where there is no key, cell number n belongs to user n. The guarantee covers that; "
            "what the cell holds is noisy."
        )
    return sentences


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _epsilon(epsilon: Fraction) -> str:
    """Return four digits, rounded up."""
    return format_rounded_up(epsilon, _DIGITS)


def _range(loss: PrivacyLoss, prior: Fraction) -> str:
    low, high = loss.posterior(prior)
    return f"{_rounded_down(low)} to {_at_most(high)}"


def _rounded_down(chance: Fraction) -> str:
    """Return a chance, rounded down."""
    return "0" if chance * _MOST_IN < 1 else _chance(chance, math.floor, math.ceil)


def _at_most(chance: Fraction) -> str:
    """Return a chance, rounded up."""
    return _chance(chance, math.ceil, math.floor)


def _chance(
    chance: Fraction, rounded: Callable[[Fraction], int], inverted: Callable[[Fraction], int]
) -> str:
    """Return a chance in percent, or as one in a number, to three digits; 1 only if certain."""
    if chance < _RARE:
        return f"1 in {inverted(1 / chance):,}"
    least = 100 * min(chance, 1 - chance)
    decimals = next((n for n in range(1, _MOST_DECIMALS) if least * 10**n >= 100), _MOST_DECIMALS)
    steps = rounded(100 * chance * 10**decimals)
    return "100 %" if steps == 100 * 10**decimals else f"{Decimal(steps).scaleb(-decimals):f} %"
