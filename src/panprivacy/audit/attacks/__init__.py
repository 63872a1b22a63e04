"""Attacks on programs that count people: what an intruder learns, and what stays hidden.

Each attack is a short program that plays both sides. It runs a program on people who come by the
toss of a fair coin, takes its state, guesses who came, and counts how often it is right.

Reference: I. Dinur, K. Nissim, "Revealing information while preserving privacy"; D. Mir,
S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics on sketches",
section 4 and appendix B.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType

from panprivacy.audit.attacks import decoding, dictionary, heavy_hitters, replay, snapshots
from panprivacy.audit.attacks.outcome import AttackResult, Finding

__all__ = ["ATTACKS", "AttackResult", "Finding"]

ATTACKS: Mapping[str, Callable[[Fraction | float], AttackResult]] = MappingProxyType(
    {
        "dictionary": dictionary.attack,
        "replay": replay.attack,
        "snapshots": snapshots.attack,
        "decoding": decoding.attack,
        "heavy-hitters": heavy_hitters.attack,
    }
)
"""Each attack by name; it takes the total epsilon of the programs that are to hold."""
