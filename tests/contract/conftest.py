"""Every test that takes `case` is run for every statistic."""

import pytest

from panprivacy.statistics.count_plan import CountPlan

from .cases import ALL, CASES, ONLINE, Followed


def cases(chosen=lambda case: True, among=CASES):
    """A fixture that runs a test for every case that is chosen."""
    params = [case for case in among if chosen(case)]
    return pytest.fixture(params=params, ids=lambda case: case.name)


@cases(among=ALL)
def any_case(request):
    """Any statistic, or several together that a paper puts together."""
    return request.param


@cases(among=[*ALL, *ONLINE])
def kept_case(request):
    """Whatever keeps a state and has a budget: any statistic, and what decides at every step."""
    return request.param


@cases(lambda case: case.kind is not Followed, among=ONLINE)
def counting_case(request):
    """What counts events by the numbers of their counters."""
    return request.param


@cases()
def case(request):
    """Any statistic."""
    return request.param


@cases(lambda case: case.counts_users)
def users_case(request):
    """A statistic of users."""
    return request.param


@cases(lambda case: case.counts_users and case.tells_users_apart)
def told_case(request):
    """A statistic of users in which it matters who they are."""
    return request.param


@cases(lambda case: case.takes_bytes and case.tells_users_apart)
def told_bytes_case(request):
    """Such a statistic whose ids may be byte strings and texts."""
    return request.param


@cases(lambda case: case.pays)
def paid_case(request):
    """A statistic whose releases cost something."""
    return request.param


@cases(lambda case: case.pays and not case.trial.publishes)
def split_case(request):
    """A statistic whose epsilon can be split by hand."""
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


@cases(lambda case: case.redraws)
def bits_case(request):
    """A statistic of presence bits, or of other cells that are redrawn."""
    return request.param


@cases(lambda case: case.redraws and case.noise == "bernoulli")
def redrawn_case(request):
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


@cases(lambda case: hasattr(case.plan.table, "law") and not case.rounds)
def counters_case(request):
    """A statistic of counters that adds deltas as they are."""
    return request.param


def _adds(case):
    """Whether its cells add deltas as they are, be it modulo 2."""
    counts = any(hasattr(case.plan.table, name) for name in ("law", "scale"))
    return (counts and not case.rounds) or case.toggles


@cases(_adds)
def adding_case(request):
    """A statistic of counters, of sums or of parities."""
    return request.param


@cases(lambda case: case.toggles)
def strict_case(request):
    """A statistic of parities."""
    return request.param


@cases(lambda case: case.tiny is not None)
def tiny_case(request):
    """A statistic that can have so few cells that every outcome can be walked."""
    return request.param


@cases(lambda case: case.trial.intrusions)
def seen_case(request):
    """A statistic to which an intrusion can be announced."""
    return request.param


@cases(lambda case: case.trial.intrusions and case.counts_users)
def seen_users_case(request):
    """A statistic of users to which an intrusion can be announced."""
    return request.param


@cases(lambda case: case.trial.intrusions and case.pays)
def seen_paid_case(request):
    """A statistic to which an intrusion can be announced, and whose releases cost something."""
    return request.param


@cases(lambda case: case.trial.intrusions and case.tiny is not None)
def seen_tiny_case(request):
    """A tiny statistic to which an intrusion can be announced."""
    return request.param


@cases(lambda case: case.tiny is not None and -1 in case.deltas)
def tiny_deletions_case(request):
    """A tiny statistic of a stream that users leave."""
    return request.param


@cases(lambda case: case.tiny is not None and case.redraws)
def tiny_bits_case(request):
    """A tiny statistic of presence bits, or of other cells that are redrawn."""
    return request.param


@cases(lambda case: case.noise == "bernoulli")
def packed_case(request):
    """A statistic of bits, eight to a byte."""
    return request.param


@cases(lambda case: case.redraws and case.noise == "bernoulli" and -1 in case.deltas)
def bits_deletions_case(request):
    """A statistic of presence bits that users leave."""
    return request.param


@cases(lambda case: isinstance(case.plan, CountPlan))
def count_case(request):
    """A statistic with one answer."""
    return request.param
