"""Every test that takes `case` is run for every statistic."""

import pytest

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
