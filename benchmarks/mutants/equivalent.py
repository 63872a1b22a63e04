"""Mutants that no test is to find: they do the same, or as well. They are not counted."""

from __future__ import annotations

_RANGE = "no exponent comes near the end of the range"

_HUGE = "plans of an epsilon of some hundred alone are compared by it, and it is a guess either way"
_HALVED = "a range that was halved fifty times has no float left within it"
_ONE_CELL = "there is one cell, which is the first and the last"

EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "tables/addressing.py",
        "mark",
        "hashes = np.zeros( 3 * ABREAST, np.uint64)",
    ): "there is room for more hashes than are made at a time",
    (
        "continual/counter.py",
        "_epsilon_of",
        "grid = 9**9",
    ): "what is said is rounded up at the ninth digit in either case",
    (
        "tables/hashing.py",
        "non_digits",
        "return (word ^ _ZEROS) | ((word % _SIXES) ^ _ZEROS)",
    ): "it is a first look: whatever it lets through, or holds back, is then read byte by byte",
    (
        "tables/addressing.py",
        "",
        "FEISTEL_ROUNDS = 7",
    ): "rounds are made in pairs, so that an odd number has one more",
    (
        "tables/cells/bits.py",
        "approximate_bit",
        "affordable = math.exp(min((intrusions + 1) * epsilon_state, 699))",
    ): _HUGE,
    (
        "tables/cells/bits.py",
        "approximate_bit",
        "affordable = math.exp(min((intrusions + 1) * epsilon_state, 701))",
    ): _HUGE,
    (
        "tables/cells/difference_sets.py",
        "_recur",
        "if returned and step + 2 < sequence.size:",
    ): "no recurrence repeats one step before the longest period of its degree",
    (
        "tables/cells/law.py",
        "check_readable",
        "self.members is None and np.abs(self.spectrum()).min() <= _LEAST_SPECTRUM",
    ): "no float of a transform is exactly 1e-9",
    (
        "tables/counters/delayed.py",
        "_hazard",
        "for _ in range( 61):",
    ): _HALVED,
    (
        "tables/counters/delayed.py",
        "_hazard",
        "for _ in range( 59):",
    ): _HALVED,
    (
        "tables/counters/delayed.py",
        "run",
        "memory.cells[ -1], memory.tick = sums[-1], memory.tick + len(amounts)",
    ): _ONE_CELL,
    (
        "tables/counters/naive.py",
        "run",
        "memory.cells[ -1], memory.tick = sums[-1], memory.tick + len(amounts)",
    ): _ONE_CELL,
    (
        "tables/counters/naive.py",
        "run",
        "told = memory.told[_VARIANCE, 0] + variance, memory.told[_FOURTH, -1] + fourth",
    ): _ONE_CELL,
    (
        "tables/counters/naive.py",
        "run",
        "told = memory.told[_VARIANCE, -1] + variance, memory.told[_FOURTH, 0] + fourth",
    ): _ONE_CELL,
    (
        "tables/counters/shapes.py",
        "_candidates",
        "for levels in range( 0, _MOST_LEVELS):",
    ): "without a level above the lowest there is no radix to try",
    (
        "tables/counters/shapes.py",
        "best_shares",
        "rows, below, size = [], 0.0, 2",
    ): "shares are ratios of what all sizes scale alike",
    (
        "tables/decoders/intervals.py",
        "_first",
        "points = np.linspace(points[first - 1], points[first], GRID * 1)",
    ): "each zoom is 63 times finer, in place of 64",
    (
        "devices/federated/every_tick.py",
        "least_error",
        "return math.sqrt(devices * max(1 / known - 1 / 4, -1))",
    ): "nothing tells more of a fair coin than 4, which it is known by",
    (
        "service/stream.py",
        "_next_answers",
        "counting.go_on_from(told[not 1])",
    ): "one line is asked for, so that the last is the first",
    (
        "statistics/statistic.py",
        "noised_sums",
        "noise = coins.discrete_laplace(scales[ -1], len(sums))",
    ): "there is one scale there, which is the first and the last",
    (
        "tables/cells/bits.py",
        "update",
        "touched = np.zeros(-(-self.cells // 63), np.uint64)",
    ): "there is room for a few cells more, which no slot names",
    (
        "tables/cells/law.py",
        "",
        "_UNIT = 2 << 24",
    ): "weights of twice the size are as private, and no less accurate",
    (
        "tables/cells/law.py",
        "",
        "_UNIT = 1 << 25",
    ): "weights of twice the size are as private, and no less accurate",
    (
        "tables/cells/packed.py",
        "group_sums",
        "if groups > 1 or self.cells % (8 * groups):  # runs end within a byte",
    ): "the other way to count bits finds the same sums, and takes longer",
    (
        "tables/cells/modular.py",
        "without_noise",
        "self.update(table, slots, deltas, -1, coins)",
    ): "counters take no notice of the epoch",
    (
        "tables/counters/delayed.py",
        "comparison_scale",
        "low, high = _GRID << 32, _GRID // 16  # with less, exp(-bound/scale) would be 0",
    ): "so little noise costs more than any epsilon that is planned, and both ends are moved up",
    (
        "tables/counters/endless.py",
        "_trees",
        "while tick >= start | tree.horizon:",
    ): "trees that grow by eight have powers of two of steps, and share no bit with those before",
    (
        "tables/counters/factorised.py",
        "_added",
        "size = 1 << (len(amounts) + len(coefficients) - 2).bit_length()",
    ): "a product of so many numbers has one fewer than both together",
    (
        "tables/counters/naive.py",
        "run",
        "most = float(surest * (1 - surest)) if self.bound <= 1 else 0.25",
    ): "a bound is at least 1",
    (
        "devices/federated/elgamal.py",
        "_by_processes",
        "if positive_integer(processes=processes) <= 1:",
    ): "numbers below 1 were refused",
    (
        "devices/federated/histogram.py",
        "planned",
        "if promise.devices > 1 and not promise.delta:",
    ): "without a delta the search ends at the promised epsilon too, however many report",
    (
        "devices/federated/mean.py",
        "planned",
        "high = min(high + _STEPS // 9, widest)",
    ): "the search begins elsewhere, and ends at the same least variance that keeps the promise",
    (
        "tables/planning/bits.py",
        "",
        "_MOST_EXPONENT = 701.0",
    ): "plans of an epsilon above 700 alone are compared by it, and it is a guess either way",
    (
        "tables/planning/bits.py",
        "",
        "_MOST_EXPONENT = 699.0",
    ): "plans of an epsilon above 699 alone are compared by it, and it is a guess either way",
    (
        "service/kept/keeper.py",
        "_run",
        "next_write = min(next_write, time.monotonic() % _HURRY)",
    ): "as the service stops, it writes a tenth of a second sooner, and as often as it looks",
    (
        "intake/sources/delimited.py",
        "_names",
        "read_options=pa.csv.ReadOptions(use_threads=True, block_size=len(header) + 1),",
    ): "a header of one block is read alike by one thread and by many",
    (
        "statistics/additive_plans.py",
        "cells_of",
        "return whole(says, _MOST_CELLS, example= 65537)",
    ): "any number will do for an example in a text",
    (
        "privacy/guarantee/exact.py",
        "",
        "_DIGITS = Context(prec=60, rounding=ROUND_HALF_EVEN, Emax=999_999, Emin=~999_999)",
    ): _RANGE,
    (
        "privacy/guarantee/exact.py",
        "rounded",
        "rounding = Context(prec=digits, rounding=direction, Emax= 1000000, Emin=-999_999)",
    ): _RANGE,
    (
        "privacy/noise.py",
        "_fill_laplace",
        "if step is _OFFSET:",
    ): "small numbers are one object each, and numba compares them by value",
    (
        "privacy/noise.py",
        "_fill_laplace",
        "span = 2",
    ): "an offset below 1 is drawn anew half of the time, with the same law",
    (
        "statistics/grid.py",
        "_long",
        "while (end := self._reached(following)) < second:  # the clock was set back, or skips it",
    ): "where a multiple is first shown, the clock shows no less",
    (
        "statistics/grid.py",
        "",
        "_LONGEST_NAME = 99",
    ): "no zone has a name half as long, so none is proposed for either",
    (
        "statistics/moment/sizes.py",
        "make",
        "own = Split(budget, 2.0, 0.0)",
    ): "a moment reads no bits, and nobody asks for their contrast",
    (
        "statistics/statistic.py",
        "Arguments",
        "class Arguments(TypedDict, total=True):",
    ): "it is for type checkers",
    (
        "statistics/statistic.py",
        "_contributed",
        'if form <= "cells":',
    ): 'the other form is "sums", and no other comes before "cells"',
    (
        "statistics/composites/together.py",
        "_check_spending",
        "if len(found) is not sum(len(one.answers()) for one in lost.values()):",
    ): "whole numbers up to 256 are one object each, and there are never more names than answers",
}
"""The reasons, by the module, the function or class, and the line as the mutant has it."""

UNFOUND: dict[tuple[str, str, str], str] = {
    (
        "privacy/guarantee/exact.py",
        "",
        "_DIGITS = Context(prec= 59, rounding=ROUND_HALF_EVEN, Emax=999_999, Emin=-999_999)",
    ): "bounds are 1e-50 apart, for which 59 digits are as good as 60",
}
"""Why no test finds what is not the same, by the same names. They are counted."""
