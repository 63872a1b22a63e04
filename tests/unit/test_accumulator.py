"""A noisy sum over an interval."""

from __future__ import annotations

import itertools
from collections import Counter as Tally

import numpy as np
import pytest

from panprivacy.tables.counters.accumulator import Accumulator
from panprivacy.tables.counters.mechanism import variances
from tests.unit.test_counters import ONE, Given, Streams, taken


@pytest.mark.long
def test_an_accumulator_in_pieces_has_the_law_of_one_run():
    """On every outcome of coins with three sides."""
    mechanism, amounts = Accumulator(3, ONE), [1, 0, 1]
    count = Given()
    taken(mechanism, count, amounts)

    def law(cuts):
        outcomes = Tally()
        for noise in itertools.product([-1, 0, 1], repeat=len(count.asked)):
            found, memory = taken(mechanism, Given(noise), amounts, cuts)
            outcomes[(*found[0], *memory.cells)] += 1
        return outcomes

    assert law([1, 2]) == law([]) == law([2])
    assert len(law([])) > 1


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_noise_of_an_interval_is_kept_while_it_is_open_and_no_longer(size):
    """Each answer has the noises of its intervals, and that of birth."""
    mechanism = Accumulator(8, ONE)
    memory = mechanism.initial(Streams())
    birth = memory.cells[0]
    for _ in range(0, 8 - size, size):
        answers = mechanism.run(memory, np.zeros(size, np.int64), Streams(memory.tick))
        open_now = [memory.tick % length != 0 for length in (1, 2, 4)]
        assert (memory.cells[1:] != 0).tolist() == open_now
        assert memory.cells[0] == birth
        assert answers.variances == pytest.approx(variances(mechanism)[0])
