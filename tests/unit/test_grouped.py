"""One table for each declared group."""

from __future__ import annotations

import copy
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.testing import SeededCoins
from tests import refusals

LABELS = ["home", "help", "shop"]


def distinct(epsilon, **arguments):
    return pp.DistinctCount(
        **{"epsilon": epsilon, "expected": (100, 100_000), "memory": 4_096, **arguments}
    )


def density(epsilon, **arguments):
    return pp.Density(**{"universe": 1_000, "epsilon": epsilon, **arguments})


def grouped(factory=density, groups=LABELS, **arguments):
    return pp.Grouped(factory, groups, **{"epsilon": 60, "per_user": 2, **arguments})


FORMS = {
    "list": list,
    "numpy": np.array,
    "objects": lambda labels: np.array(labels, object),
    "arrow": pa.array,
    "large": lambda labels: pa.array(labels, pa.large_string()),
    "bytes": lambda labels: pa.array([label.encode() for label in labels]),
    "dictionary": lambda labels: pa.array(labels).dictionary_encode(),
    "chunks": lambda labels: pa.chunked_array([labels[:2], labels[2:]]),
    "pandas": pd.Series,
    "categories": lambda labels: pd.Series(labels, dtype="category"),
    "views": lambda labels: pa.array(labels, pa.string_view()),
}


def by_group(answers):
    """The value of each group, which has one answer."""
    return {name.group: answer.value for name, answer in answers.items()}


class TestUpdate:
    @pytest.mark.parametrize("form", FORMS)
    def test_each_event_counts_in_its_group(self, form):
        pages = grouped()
        labels = ["home", "help", "home"] * 300
        pages.update(np.arange(900), FORMS[form](labels))
        shares = by_group(pages.release())
        assert shares == pytest.approx({"home": 0.6, "help": 0.3, "shop": 0}, abs=1e-3)

    @pytest.mark.parametrize(
        "users",
        [
            lambda texts: texts,
            np.array,
            pa.array,
            lambda texts: pa.array(texts).dictionary_encode(),
            lambda texts: pa.array(texts, pa.string_view()),
            pd.Series,
        ],
    )
    def test_every_form_of_ids(self, users):
        pages = grouped(distinct)
        pages.update(users([f"user {i}" for i in range(2_000)]), ["home", "shop"] * 1_000)
        found = by_group(pages.release())
        assert found == pytest.approx({"home": 1_000, "help": 0, "shop": 1_000}, abs=60)

    def test_batches_that_are_counted_in_one_pass_are_one_batch(self):
        make = partial(grouped, partial(density, coins=SeededCoins(3)))
        labels, users = ["home", "help", "shop", "home"], [1, 2, 3, 4]
        together, one = make(), make()
        parts = [slice(0, 2), slice(2, 2), slice(2, 4)]
        together.internals.memory.apply(
            *(together.internals.memory.prepare(users[part], labels[part]) for part in parts)
        )
        one.update(users, labels)
        assert together.state() == one.state()

    def test_whole_numbers_as_labels(self):
        ports = grouped(groups=[80, 443])
        ports.update([1, 2, 3], np.array([443, 80, 443], np.uint16))
        assert by_group(ports.release())[443] == pytest.approx(2e-3, abs=1e-4)

    def test_a_batch_without_events(self):
        grouped().update([], [])

    def test_deltas_follow_their_events(self):
        pages = grouped()
        pages.update([1, 2, 3, 1], ["home", "help", "home", "home"], [1, 1, 1, -1])
        found = by_group(pages.release())
        assert found == pytest.approx({"home": 1e-3, "help": 1e-3, "shop": 0}, abs=1e-4)

    @pytest.mark.long
    @given(st.lists(st.tuples(st.integers(0, 50), st.sampled_from(LABELS)), max_size=40))
    def test_it_is_the_same_as_a_statistic_for_each(self, rows):
        def seeded():
            return grouped(lambda epsilon: density(epsilon, universe=51, coins=SeededCoins(5)))

        users, labels = [user for user, _ in rows], [label for _, label in rows]
        pages, alone = seeded(), seeded()
        pages.update(users, labels)
        for label, statistic in alone.members.items():
            chosen = [user for user, group in rows if group == label]
            if chosen:
                statistic.update(chosen)
        assert pages.state() == alone.state()


class TestRefused:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([1, 2, 5_000], ["shop", "home", "home"]), "row 3: the user id lies outside"),
            (([1, 2, 3], ["home", "help", "canary"]), "row 3: the group was not declared"),
            (([1, 2, 3], ["home", None, "home"]), "row 2: there is no group"),
            (([1, None, 3], ["home", "help", "home"]), "row 2: the user id is null"),
            (([1, 2, 3], ["home", "help"]), "one group for each id: 3 ids, 2 groups"),
            (([1, 2, 3], [1, 2, 3]), "groups must be all texts"),
            (([1, 2, 3], "canary"), "groups must be all texts"),
            (([1, 2, 3], [0.5, 1, 2]), "groups must be all texts"),
            (("canary", ["home"]), "user ids must be"),
            (([1, 2], ["home", "help"], [1]), "one delta for each id: 2 ids, 1 deltas"),
            (([1, 2], ["home", "help"], [1, 1, 1]), "one delta for each id: 2 ids, 3 deltas"),
            (([1, 2], ["home", "help"], [1, 5]), "row 2: delta must be 1"),
            (([[1], [2]], ["home", "help"]), "user ids must be"),
        ],
    )
    def test_an_error_names_the_row_and_changes_nothing(self, arguments, message):
        pages = grouped()
        before = pages.state()
        with pytest.raises(pp.InputError, match=message.replace(": ", ".*: ")) as caught:
            pages.update(*arguments)
        assert pages.state() == before
        assert "canary" not in str(caught.value)

    def test_a_late_group_that_is_refused_leaves_the_early_ones_as_they_were(self):
        pages = grouped()
        before = pages.state()
        with pytest.raises(pp.InputError, match="row 1"):
            pages.update([9_999, 1, 2], ["shop", "home", "help"])
        assert pages.state() == before

    def test_others_can_be_ignored(self):
        pages = grouped(ignore_others=True)
        pages.update([1, 2, 9_999, 3], ["home", "canary", "canary", None])
        assert by_group(pages.release())["home"] == pytest.approx(1e-3, abs=1e-4)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"groups": []}, "1 to 65,535 different labels"),
            ({"groups": ["a", "a"]}, "different labels"),
            ({"groups": "abc"}, "different labels"),
            ({"groups": ["a", 1]}, "all texts or all numbers"),
            ({"groups": [True, False]}, "all texts or all numbers"),
            ({"groups": [["a"]]}, "all texts or all numbers"),
            ({"groups": 5}, "different labels"),
            ({"groups": ["\ud800"]}, "that UTF-8 can write"),
            ({"groups": [1 << 63]}, "64 bits"),
            ({"per_user": 0}, "per_user must be"),
            ({"per_user": 4}, "per_user must be at most 3"),
            ({"epsilon": 0}, "epsilon must be"),
            ({"ignore_others": "yes"}, "ignore_others must be True or False"),
            ({"factory": lambda _: density(1)}, "must give its epsilon, 30, to a ledger"),
            ({"factory": lambda e: density(e, ledger=pp.Ledger(100))}, "a ledger of its own"),
        ],
    )
    def test_arguments(self, arguments, message):
        with pytest.raises(pp.PlanError, match=message):
            grouped(**arguments)

    def test_plans_that_differ(self):
        sizes = iter([1_000, 2_000, 1_000])
        with pytest.raises(pp.PlanError, match="plan the same statistic"):
            grouped(lambda epsilon: density(epsilon, universe=next(sizes)))

    def test_a_factory_whose_programs_have_told_something(self):
        """What they told is in no account of the groups."""

        def used(epsilon):
            made = density(epsilon, releases=2)
            made.release()
            return made

        with pytest.raises(pp.PlanError, match="make a new one"):
            grouped(used)

    def test_a_factory_that_gives_one_program_again_and_again(self):
        same = density(30)
        with pytest.raises(pp.PlanError, match="there twice"):
            grouped(lambda _: same)

    def test_it_cannot_be_copied(self):
        with refusals.copied():
            copy.deepcopy(grouped())


def test_a_group_whose_release_is_lost_leaves_the_others():
    sizes = {"expected": 5_000, "bound": 30}  # with few states noise alone passes now and then
    pages = grouped(lambda epsilon: pp.Incidence(epsilon=epsilon, **sizes), LABELS, epsilon=16)
    pages.update(np.arange(80_000), ["home"] * 80_000)
    answers = pages.release()
    assert answers.lost
    assert set(answers.where(group="home").values()) == {None}
    helped = {str(name): one for name, one in answers.where(group="help").items()}
    assert helped["exactly 1"].value == pytest.approx(0, abs=300)


class TestBudget:
    def test_the_ledger_pays_for_the_groups_of_one_user(self):
        ledger = pp.Ledger(4)
        pages = grouped(epsilon=3, ledger=ledger)
        budget = pages.members["home"].plan.split.budget
        assert ledger.spent == 2 * budget.state
        assert ledger.available == 1
        pages.release()
        spent = 2 * budget.total(releases=1, intrusions=0)
        assert ledger.spent == spent
        with refusals.released():
            pages.release()
        assert ledger.spent == spent

    def test_what_cannot_be_asked_spends_nothing(self):
        pages = grouped(epsilon=3)
        spent = pages.ledger.spent
        with refusals.confidence():
            pages.release(confidence=2)
        assert pages.ledger.spent == spent
        pages.release()

    def test_the_guarantee_says_for_whom(self):
        assert str(grouped(epsilon=3).guarantee).endswith(
            "for a user in at most 2 groups; each further group costs them 1.5 more"
        )

    def test_a_delta_is_that_of_all_groups_of_one_user(self):
        def visitors(epsilon):
            density = partial(pp.Density, universe=100)
            return pp.ChangeTriggered(
                density, threshold=1, updates=3, epsilon=epsilon, delta="0.001"
            )

        told = pp.Grouped(visitors, ["home", "help", "news"], epsilon=3, per_user=2).guarantee
        assert told.delta == Fraction(1, 500)
        assert str(told).endswith("each further group costs them 1.5 and delta 0.001 more")

    def test_a_ledger_without_enough(self):
        ledger = pp.Ledger(1)
        with pytest.raises(pp.BudgetError):
            grouped(epsilon=2, ledger=ledger)
        assert ledger.available == 1

    def test_announced_intrusions(self):
        pages = grouped(partial(density, intrusions=1), epsilon=3)
        assert pages.guarantee == pp.Guarantee(
            Fraction(3), 1, 2, unseen=pages.guarantee.unseen_loss.epsilon
        )
        before = pages.state()
        pages.announce_intrusion()
        assert len(pages.state()) == pages.internals.memory.state_bytes == len(before)
        with pytest.raises(pp.BudgetError):
            pages.announce_intrusion()

    def test_what_is_unseen_costs_as_many_groups(self):
        pages = grouped(epsilon=2)
        assert pages.guarantee.unseen_loss.epsilon == 2 * density(1).guarantee.unseen_loss.epsilon

    def test_windows_of_groups(self):
        daily = pp.Windowed(lambda: grouped(epsilon=2), every=3_600)
        daily.update([1, 2], ["home", "help"])
        daily.close()
        assert {name.group for name in daily.releases[0].release} == set(LABELS)
        assert daily.loss(3) == 2 + 2 * grouped(epsilon=2).guarantee.unseen_loss.epsilon


class TestResume:
    @staticmethod
    def begun():
        pages = grouped(releases_of(2))
        pages.update(np.arange(300), ["home", "help", "shop"] * 100)
        pages.release()
        return pages

    def test_all_groups_go_on(self):
        before, after = self.begun(), grouped(releases_of(2))
        state = before.state()
        assert len(state) == before.internals.memory.state_bytes
        after.resume(state)
        assert after.state() == state
        assert after.ledger.spent == before.ledger.spent
        after.release()
        with pytest.raises(pp.BudgetError):
            after.release()

    def test_releases_that_left_are_paid_for(self):
        after = grouped(releases_of(2))
        after.resume(grouped(releases_of(2)).state(), released=2)
        assert (
            after.ledger.spent
            == after.internals.releasing.state_epsilon + after.internals.releasing.of_releases(2)
        )
        with pytest.raises(pp.BudgetError):
            after.release()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"groups": ["home", "help", "cart"]}, "another labels"),
            ({"groups": ["help", "home", "shop"]}, "another labels"),
            ({"per_user": 3}, "another per_user"),
            ({"epsilon": 30}, "another ledger"),
        ],
    )
    def test_other_groups_are_refused(self, arguments, message):
        other = grouped(releases_of(2), **arguments)
        before, spent = other.state(), other.ledger.spent
        with pytest.raises(pp.InputError, match=message):
            other.resume(self.begun().state())
        assert (other.state(), other.ledger.spent) == (before, spent)


def releases_of(count):
    return partial(density, releases=count)


def test_a_statistic_in_place_of_what_makes_it_is_refused():
    with pytest.raises(pp.PlanError, match=r"give what makes the statistic, as lambda epsilon: "):
        pp.Grouped(pp.Density(universe=9, epsilon=1), ["a"], epsilon=1)


@pytest.mark.parametrize("per_user", [1, 2])
def test_the_cost_of_a_release_is_what_it_takes_from_the_ledger(per_user):
    def share(epsilon):
        return pp.Density(universe=10_000, epsilon=epsilon, releases=2)

    groups = pp.Grouped(share, ["home", "help", "news"], epsilon=3, per_user=per_user)
    for number in (1, 2):
        spent = groups.ledger.spent
        groups.release()
        assert sum(groups.internals.releasing.costs(number).values()) == groups.ledger.spent - spent
