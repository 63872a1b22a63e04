"""Losses are computed and rounded in one place: no other module does either.

`panprivacy.privacy.guarantee` has the arithmetic. Statistics derive from it what they promise;
everything above them only reads it. The source is scanned: a surface that derives a figure of its
own fails.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "panprivacy"
SURFACES = (
    "cli", "cluster", "devices/aggregator", "devices/collector", "intake/programs", "service",
    "statistics/checkpoint.py", "statistics/explain", "statistics/merging.py",
)  # fmt: skip
"""All that prints a loss."""
READS = {
    "DAY_SECONDS", "Budget", "Epsilon", "Guarantee", "Ledger", "PrivacyLoss", "float_above",
    "float_below", "number_above", "format_rounded_up", "format_rounded_down", "warn_if_weak",
}  # fmt: skip
"""What they may take from the accounting: objects, and the one way to print a bound."""
LOSSES = {
    "epsilon", "state_epsilon", "release_epsilon", "of_releases", "of_state", "unseen", "odds",
    "exceptions", "rho", "crash",
}  # fmt: skip
PLANS = {
    ("service/config/stream.py", "self.epsilon / self.per_user"),
}
"""The share of an epsilon that one statistic or one group gets: parameters of plans, no losses."""
NOISE = (
    "tables/cells", "tables/counters", "tables/planning", "continual/counter.py",
    "devices/federated/count_nonzero.py", "devices/federated/distributions.py",
    "devices/federated/histogram.py", "privacy/guarantee", "papers/local", "papers/published",
    "papers/queries/linear.py", "statistics/plan.py", "statistics/running/distinct.py",
    "statistics/both/laws.py", "statistics/running/stepwise/counted.py",
    "statistics/sketch/publication.py",
    "audit/controls",
)  # fmt: skip
"""What chooses noise for an epsilon, and proves what it costs."""
ARITHMETIC = {
    "exp_bounds", "log_above", "rounded", "rounded_up", "joint_loss", "joint_releases",
    "randomised_response", "unseen_bits", "unseen_count", "unseen_loss",
}  # fmt: skip


def files(*places):
    for place in places:
        path = SOURCE / place
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def imported(tree):
    """What a module takes from the accounting, by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "panprivacy.privacy.guarantee"
        ):
            yield from (one.name for one in node.names)
        if isinstance(node, ast.Import):
            yield from (
                one.name for one in node.names if one.name.startswith("panprivacy.privacy.guara")
            )


def names_a_loss(node):
    """Whether an expression is a loss, or a call that gives one."""
    if isinstance(node, ast.Call):
        return names_a_loss(node.func)
    if isinstance(node, ast.UnaryOp):
        return names_a_loss(node.operand)
    return getattr(node, "attr", getattr(node, "id", None)) in LOSSES


def offences(tree):
    """Expressions that compute with a loss, or round one."""
    for node in ast.walk(tree):
        computed = isinstance(node, ast.BinOp) and (
            names_a_loss(node.left) or names_a_loss(node.right)
        )
        called = isinstance(node, ast.Call) and getattr(node.func, "id", "")
        rounded = called in {"float", "round", "int"} and any(map(names_a_loss, node.args))
        summed = called == "sum" and any(map(names_a_loss, ast.walk(node)))
        shown = (
            isinstance(node, ast.FormattedValue)
            and node.format_spec is not None
            and names_a_loss(node.value)
        )
        if computed or rounded or summed or shown:
            yield ast.unparse(node)


@pytest.mark.parametrize("place", SURFACES)
def test_a_surface_only_reads_losses(place):
    for file in files(place):
        tree, name = ast.parse(file.read_text()), str(file.relative_to(SOURCE))
        assert set(imported(tree)) <= READS, name
        found = {(name, each) for each in offences(tree)} - PLANS
        assert not found, "ask Guarantee or PrivacyLoss for it, and shown or float_above"


def test_what_is_excepted_is_there():
    for name, expression in PLANS:
        assert expression in offences(ast.parse((SOURCE / name).read_text()))


def test_the_arithmetic_of_losses_is_for_what_chooses_noise():
    allowed = set(files(*NOISE))
    for file in set(files(".")) - allowed:
        text = file.read_text()
        if "panprivacy.privacy.guarantee" not in text:
            continue
        taken = set(imported(ast.parse(text))) & ARITHMETIC
        assert not taken, file.relative_to(SOURCE)


@pytest.mark.parametrize(
    "faulty",
    [
        "float(plan.request.epsilon)", "f'{epsilon:g}'", "windows * promise.epsilon",
        "sum(one.epsilon for one in each)", "current.of_releases(2) - current.of_releases(1)",
        "round(-loss.epsilon, 3)",
    ],
)  # fmt: skip
def test_the_scan_finds_what_it_is_for(faulty):
    assert list(offences(ast.parse(faulty)))
