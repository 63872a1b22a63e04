"""Every test that takes `case` is run for every statistic."""

import pytest

from panprivacy.statistics.plan import CountPlan

from .cases import CASES


def cases(chosen=lambda case: True):
    """A fixture that runs a test for every case that is chosen."""
    params = [case for case in CASES if chosen(case)]
    return pytest.fixture(params=params, ids=lambda case: case.name)


@cases()
def case(request):
    """Any statistic."""
    return request.param


@cases(lambda case: case.takes_bytes)
def bytes_case(request):
    """A statistic whose ids may be byte strings and texts."""
    return request.param


@cases(lambda case: case.universe)
def universe_case(request):
    """A statistic of a declared universe."""
    return request.param


@cases(lambda case: -1 in case.deltas)
def deletions_case(request):
    """A statistic of a stream that users leave."""
    return request.param


@cases(lambda case: case.noise == "bernoulli")
def bits_case(request):
    """A statistic of presence bits."""
    return request.param


@cases(lambda case: not case.rounds)
def plain_case(request):
    """A statistic whose coins of an update do not depend on how a batch is cut."""
    return request.param


@cases(lambda case: case.takes_bytes and not case.rounds)
def plain_bytes_case(request):
    """Such a statistic whose ids may be byte strings and texts."""
    return request.param


@cases(lambda case: case.noise == "categorical" and not case.rounds)
def counters_case(request):
    """A statistic of counters that adds deltas as they are."""
    return request.param


@cases(lambda case: case.tiny is not None)
def tiny_case(request):
    """A statistic that can have so few cells that every outcome can be walked."""
    return request.param


@cases(lambda case: case.tiny is not None and -1 in case.deltas)
def tiny_deletions_case(request):
    """A tiny statistic of a stream that users leave."""
    return request.param


@cases(lambda case: case.tiny is not None and case.noise == "bernoulli")
def tiny_bits_case(request):
    """A tiny statistic of presence bits."""
    return request.param


@cases(lambda case: case.noise == "bernoulli" and -1 in case.deltas)
def bits_deletions_case(request):
    """A statistic of presence bits that users leave."""
    return request.param


@cases(lambda case: isinstance(case.plan, CountPlan))
def count_case(request):
    """A statistic with one answer."""
    return request.param
