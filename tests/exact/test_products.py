"""The programs that the audit checks: each keeps its claim."""

from __future__ import annotations

import functools
from fractions import Fraction
from pathlib import Path

import pytest

from panprivacy.audit.suite.products import products
from panprivacy.cli.audit import line

PAGE = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()


SLOW = {
    "density-4-cells",
    "distinct-count",
    "distinct-count-announced",
    "strict-count",
    "strict-count-announced",
    "incidence-named-7",
    "incidence-named-11",
    "incidence-histogram-3",
    "incidence-announced-2",
    "heavy-hitters-announced",
    "histogram",
    "histogram-signed",
    "groups",
    "both-release",
    "moving-answer",
    "multi-counter",
    "list-update",
    "running-heavy-crash",
}
"""Products that take more than a few seconds each; `test_groups` walks groups as well."""


LONG = {
    "both",
    "both-crash",
    "calibrated-distinct",
    "calibrated-total",
    "continuous-density",
    "contributed-windows",
    "counter-crash",
    "counter-crashes",
    "cropped-moment",
    "cropped-sum",
    "density",
    "density-announced",
    "density-crash",
    "density-deletions",
    "dwork-density",
    "experts-advice",
    "experts-round",
    "heavy-hitters",
    "histogram-announced",
    "incidence-amounts",
    "incidence-announced",
    "incidence-crash",
    "incidence-named-3",
    "incidence-sample-signed",
    "inner-product",
    "laplace-norm",
    "laplace-norm-announced",
    "laplace-norm-two",
    "moment-announced",
    "moment-squares",
    "multi-counter-announced",
    "multi-counter-crash",
    "net-count",
    "norm-0",
    "norm-2",
    "prime-incidence",
    "published-table",
    "published-table-crash",
    "published-table-hashed",
    "published-table-sample",
    "published-tables",
    "running-announced-2",
    "running-count-announced",
    "running-count-crash",
    "running-count-crashes",
    "running-cropped-crash",
    "running-distinct",
    "running-distinct-crash",
    "shared-ledger",
    "stable-announced",
    "stable-distinct",
    "threshold",
    "threshold-hard",
    "two-shards",
    "two-slices",
    "window-crash",
}
"""Products that take about half a second or more."""


@functools.cache
def subjects(epsilon):
    return {subject.name: subject for subject in products(Fraction(epsilon))}


NAMES = list(subjects(1))


def marked(name, epsilon):
    slow = name in SLOW or epsilon != 1
    longer = pytest.mark.long if name in LONG else ()
    return pytest.param(name, epsilon, marks=pytest.mark.slow if slow else longer)


TRIED = [marked(name, epsilon) for epsilon in (1, Fraction(1, 3)) for name in NAMES]


def audited(subject):
    return subject.row()


@pytest.mark.parametrize(("name", "epsilon"), TRIED)
def test_a_product_keeps_its_claim(name, epsilon):
    subject = subjects(epsilon)[name]
    row = audited(subject)
    assert row.holds
    assert row.is_right
    assert row.verdict == "holds"
    assert row.set_aside < 1
    assert float(row.worst) > 0.1 * float(subject.claimed), "the streams try nothing"
    if epsilon == 1:
        assert line(row).rstrip() in PAGE
