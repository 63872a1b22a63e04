"""`Incidence` errs as its answers say, and its intervals hold the truth as often as they say.

False-alarm rate 1e-6 an assertion. Errors are divided by the deviation that each answer states,
which may be off by 8 %, because it is read off noised numbers; one that is off by 30 % is found.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import panprivacy as pp

from .checks import OFF, accepted, centred, happens, rejected, spreads

RUNS = 800
SLACK = 1.08
COVERAGE = 0.93, 0.985

STATES = np.repeat([0, 1, 2, 3, 5], [900, 600, 300, 150, 50])
"""The states of 2,000 users."""

SIGNED = STATES - 2

ASKED = {
    "exactly 1": lambda answer: answer.exactly(1),
    "exactly 5": lambda answer: answer.exactly(5),
    "at least 2": lambda answer: answer.at_least(2),
    "cropped sum 3": lambda answer: answer.cropped_sum(3),
    "distinct": lambda answer: answer.distinct(),
}
NAMED = {"exactly": (1, 5), "at_least": (2,), "cropped_sum": (3,), "distinct": True}


@dataclass(frozen=True)
class Setting:
    """How an incidence count is set up, and what it is asked for."""

    arguments: dict
    asked: dict
    states: np.ndarray = field(default_factory=lambda: STATES)


DIRECT = {"epsilon": 2, "universe": 2_000, "bound": 5}
SETTINGS = {
    "named": Setting(DIRECT, NAMED),
    "whole": Setting(DIRECT, {}),
    "whole, geometric": Setting({**DIRECT, "law": pp.Law.geometric(6, 1)}, {}),
    "sample, named": Setting({**DIRECT, "cells": 1_000}, NAMED),
    "sample, whole": Setting({**DIRECT, "epsilon": 6, "cells": 1_000}, {}),
    "signed": Setting({**DIRECT, "signed": True}, {}, SIGNED),
    "two releases": Setting({**DIRECT, "releases": 2}, NAMED),
    "hashed": Setting({"epsilon": 3, "cells": 3_000, "bound": 5}, {}),
    "hashed, named": Setting({"epsilon": 3, "cells": 1_500, "bound": 5}, NAMED),
}


def truths(states):
    return {
        "exactly 1": (states == 1).sum(),
        "exactly 5": (states == 5).sum(),
        "at least 2": (states >= 2).sum(),
        "cropped sum 3": np.clip(states, 0, 3).sum(),
        "distinct": (states != 0).sum(),
    }


def estimates_of(answer, name):
    if answer.whole is None or name in answer.named:
        return answer.named[name][1]
    kind, _, state = name.rpartition(" ")
    states = answer.plan.states
    question = getattr(states, kind.replace(" ", "_"))(int(state)) if kind else states.distinct()
    whole = answer.whole
    return whole.model.whole(question, answer.counts, whole.noise_variance)


SLOW = {"whole, geometric", "two releases", "hashed, named", "sample, named"}


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(setting, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name, setting in SETTINGS.items()
    ],
)
def test_answers_are_as_good_as_they_say(setting):
    pulls = {name: [] for name in ASKED}
    held = dict.fromkeys(ASKED, 0)
    exact = truths(setting.states)
    users = np.flatnonzero(setting.states)
    for _ in range(RUNS):
        statistic = pp.Incidence(**setting.arguments)
        statistic.update(users, setting.states[users])
        answer = statistic.release(**setting.asked)
        for name, ask in ASKED.items():
            estimates, release = estimates_of(answer, name), ask(answer)
            pulls[name].append(float((estimates.values - exact[name]) / estimates.deviations()))
            held[name] += release.low <= exact[name] <= release.high
    for name, errors in pulls.items():
        bounded = name.startswith("cropped") or (setting.asked and not name.startswith("exactly"))
        check(np.array(errors), held[name], bounded=bool(bounded))


def check(errors, held, *, bounded):
    """Named thresholds, and all sums, state a bound of their deviation, so they may be better."""
    assert accepted(centred(errors))
    assert rejected(centred(errors + 0.3))
    if bounded:
        errors = errors / min(float(np.sqrt(np.mean(errors**2))), 1.0)
    assert accepted(spreads(errors, 1.0, SLACK))
    assert rejected(spreads(errors * OFF, 1.0, SLACK))
    assert accepted(happens(held, RUNS, COVERAGE[0], 1.0 if bounded else COVERAGE[1]))
