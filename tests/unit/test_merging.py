"""Contributions: what they hold, what they cost, which go together, and what is refused."""

from __future__ import annotations

import struct
from datetime import timedelta
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.contribution import read_parts
from panprivacy.statistics.merging import Merger
from panprivacy.testing import SeededCoins
from tests import refusals

KEY = b"one key for all shards"
SECRET = 4_711


def cropped(users=(), *, tau=3, **given):
    statistic = pp.CroppedSum(**{"tau": tau, "bound": 9, "universe": 5_000, "epsilon": 1, **given})
    statistic.update(np.asarray(users, np.int64))
    return statistic


def refused(*contributions, error=pp.InputError):
    with pytest.raises(error) as caught:
        pp.merge(list(contributions))
    assert "\n" not in str(caught.value)
    assert str(SECRET) not in str(caught.value)
    return str(caught.value)


class TestAnswers:
    def test_the_sums_of_shards_are_what_one_table_would_have_beside_its_noise(self):
        parts = [cropped(range(900)).contribute(), cropped(range(900, 2_000)).contribute()]
        (one,), (other,) = map(read_parts, parts)
        total = sum(int(np.frombuffer(part.body, np.int64)[0]) for part in (one, other))
        answer = pp.merge(parts, coins=SeededCoins(3))
        noise = SeededCoins(3).discrete_laplace(1 / cropped().plan.split.budget.release, 1)
        assert answer.counts == (total + int(noise[0]),)

    def test_the_order_of_contributions_does_not_matter(self):
        parts = [cropped(range(900)).contribute(), cropped().contribute(), cropped().contribute()]
        answers = [pp.merge(order, coins=SeededCoins(1)) for order in (parts, parts[::-1])]
        assert answers[0] == answers[1]

    def test_histograms_know_the_users_that_came_to_no_shard(self):
        def shard(users):
            statistic = pp.Incidence(universe=3_000, bound=3, epsilon=60)
            statistic.update(users)
            return statistic.contribute()

        answer = pp.merge([shard(np.arange(100)), shard(np.arange(100, 1_000)), shard([7])])
        assert answer.exactly(0).value == pytest.approx(2_000, abs=2)
        assert answer.exactly(1).value == pytest.approx(999, abs=2)
        assert answer.cropped_mean(3).value == pytest.approx(1_001 / 3_000, abs=0.01)
        with pytest.raises(pp.PlanError, match="constrained histogram is of one table"):
            answer.to_arrow(constrained=True)

    def test_an_announced_look_at_every_shard_is_known_when_they_are_read(self):
        def shard(seed, users):
            coins = SeededCoins(seed)
            share = pp.Density(universe=100_000, epsilon=4, intrusions=1, coins=coins)
            share.update(users)
            share.announce_intrusion()
            return share.contribute()

        parts = shard(1, np.arange(30_000)), shard(2, np.arange(30_000, 80_000))
        answer = pp.merge(parts, confidence=1 - 1e-9, coins=SeededCoins(3))
        assert answer.low <= 0.8 <= answer.high
        assert answer.high - answer.low < 0.2

    @pytest.mark.long
    def test_tables_of_one_key_know_users_of_several_shards(self):
        def shard(key):
            statistic = pp.DistinctCount(
                deletions=True, bound=9, expected=(100, 10_000), epsilon=60, key=key
            )
            statistic.update(np.arange(1_000))
            return statistic.contribute_cells()

        same = pp.merge([shard(KEY), shard(KEY)])
        assert same.value == pytest.approx(1_000, rel=0.2)
        message = refused(shard(KEY), shard(KEY + b"2"))
        assert "different addressing keys" in message
        assert "make all with the same key=" in message

    def test_a_shard_that_is_too_full_loses_the_answer_of_all(self):
        def shard(users):
            coins = SeededCoins(users)  # others read a full table now and then: of noise
            statistic = pp.Incidence(expected=1_000, bound=2, epsilon=4, coins=coins)
            statistic.update(np.arange(users))
            return statistic.contribute()

        with pytest.raises(pp.LostReleaseError, match="too full"):
            pp.merge([shard(100), shard(60_000)], coins=SeededCoins(1))


class TestSeveral:
    def make(self, users):
        ledger = pp.Ledger(1)
        half = {"epsilon": 0.5, "ledger": ledger}
        several = pp.Together(
            {
                "visits": pp.CroppedSum(tau=3, universe=5_000, **half),
                "states": pp.Incidence(universe=5_000, bound=3, **half),
            },
            {"states": {"exactly": (1, 2)}},
        )
        several.update(np.asarray(users))
        return several

    def test_statistics_that_count_together_are_merged_under_their_names(self):
        shards = [self.make(range(100)), self.make(range(100, 300))]
        parts = [one.contribute() for one in shards]
        assert all(one.ledger.spent == 1 for one in shards)
        answers = pp.merge(parts)
        assert [str(name) for name in answers] == ["cropped sum 3", "exactly 1", "exactly 2"]
        assert {name.statistic for name in answers} == {"visits", "states"}
        guarantee = Merger([self.make([]).contribute(), self.make([]).contribute()]).guarantee
        assert guarantee.epsilon == 1
        assert "each further one costs 1" in str(guarantee)

    def test_none_contributes_if_one_cannot(self):
        ledger = pp.Ledger(1)
        several = pp.Together(
            {
                "states": pp.Incidence(universe=50, bound=3, epsilon=0.5, ledger=ledger),
                "density": pp.Density(universe=50, epsilon=0.5, ledger=ledger),
            }
        )
        before = several.state(), ledger.spent
        with pytest.raises(pp.PlanError, match="cannot be added up"):
            several.contribute_cells()
        assert (several.state(), ledger.spent) == before

    def test_a_lost_answer_leaves_the_others(self):
        def shard(users):
            ledger = pp.Ledger(8)
            several = pp.Together(
                {
                    "full": pp.Incidence(expected=1_000, bound=2, epsilon=4, ledger=ledger),
                    "open": pp.DistinctCount(expected=(100, 10**6), epsilon=4, ledger=ledger),
                },
                {"full": {"exactly": (1,)}},
            )
            several.update(np.arange(users))
            return several.contribute()

        answers = pp.merge([shard(100), shard(60_000)])
        assert [one is None for one in answers.values()] == [True, False]

    def test_what_is_told_is_what_all_that_count_together_promise(self):
        """Statistics, groups of them, and statistics within others."""

        def density(epsilon, ledger=None):
            return pp.Density(universe=9, epsilon=epsilon, ledger=ledger)

        def shard():
            ledger = pp.Ledger(16)
            inner = {
                "one": density(1, ledger),
                "other": pp.CroppedSum(tau=2, universe=9, epsilon=2, ledger=ledger),
            }
            return pp.Together(
                {
                    "pages": pp.Grouped(density, ["x", "y"], epsilon=4, per_user=2, ledger=ledger),
                    "all": density(5, ledger),
                    "within": pp.Together(inner),
                    "more": pp.Grouped(density, [3, 4], epsilon=3, ledger=ledger),
                }
            )

        promise = shard().guarantee
        told = Merger([shard().contribute(), shard().contribute()]).guarantee
        assert (told.epsilon, told.groups) == (promise.epsilon, promise.groups) == (15, 1)
        assert "each further one costs 15" in str(told)

    def test_groups_are_merged_each_for_itself(self):
        def shard(users, group):
            grouped = pp.Grouped(
                lambda share: pp.Density(universe=2_000, epsilon=share),
                ["home", "help"],
                epsilon=60,
                per_user=2,
            )
            grouped.update(users, [group] * len(users))
            part = grouped.contribute()
            assert (
                grouped.ledger.spent
                == grouped.internals.releasing.state_epsilon
                + grouped.internals.releasing.of_releases(1)
            )
            return part

        parts = [shard(np.arange(500), "home"), shard(np.arange(500, 1_500), "help")]
        guarantee = Merger(parts).guarantee
        assert (guarantee.epsilon, guarantee.groups) == (60, 2)
        answers = pp.merge(parts)
        assert answers.where(group="home").only().value == pytest.approx(0.25, abs=0.01)
        assert answers.where(group="help").only().value == pytest.approx(0.5, abs=0.01)

    def test_windows_hand_out_contributions_at_their_ends(self):
        now = [0.0]
        windows = [
            pp.Windowed(
                lambda: pp.Density(universe=2_000, epsilon=30),
                every=timedelta(days=1),
                release=lambda count: count.contribute(),
                clock=lambda: now[0],
            )
            for _ in range(2)
        ]
        windows[0].update(np.arange(500))
        windows[1].update(np.arange(500, 1_000))
        now[0] = 90_000.0
        parts = [one.release()[0].release for one in windows]
        assert pp.merge(parts).value == pytest.approx(0.5, abs=0.01)


class TestPaid:
    def test_a_shard_goes_on_only_after_an_announcement(self):
        statistic = cropped(range(50), releases=2, intrusions=1)
        first = statistic.contribute()
        statistic.update(range(50, 99))
        assert (statistic.internals.memory.announced, statistic.releases) == (1, 1)
        second = statistic.contribute()
        assert statistic.ledger.spent == 1
        message = refused(first, second)
        assert "announced=0 in contribution 1, announced=1 in contribution 2" in message

    def test_of_one_release_there_is_one_contribution(self):
        statistic = cropped(intrusions=1)
        statistic.contribute()
        before = statistic.state()
        with refusals.released():
            statistic.contribute()
        with refusals.released():
            statistic.release()
        assert statistic.state() == before

    def test_what_a_resumed_shard_has_contributed_it_does_not_contribute_again(self):
        statistic = cropped(range(9))
        kept = statistic.state()
        statistic.contribute()
        again = cropped()
        again.resume(kept, released=1)
        with refusals.released():
            again.contribute()

    def test_contributions_are_released_once(self):
        merger = Merger([cropped().contribute(), cropped().contribute()])
        merger.release(0.9, SeededCoins(1))
        with pytest.raises(pp.PanPrivacyError, match="released already"):
            merger.release(0.9, SeededCoins(1))

    @pytest.mark.parametrize("intrusions", [0, 2])
    def test_of_added_cells_a_further_shard_costs_its_looks(self, intrusions):
        def shard():
            return pp.Incidence(universe=9, bound=2, epsilon=1, intrusions=intrusions, key=KEY)

        assert further(shard) == pytest.approx(shard().internals.releasing.state_epsilon, rel=1e-5)

    def test_what_a_further_shard_may_release_by_itself_is_told(self):
        """He loses that there, whatever becomes of the cells."""

        def shard():
            return pp.Incidence(universe=9, bound=2, epsilon=1, releases=3, key=KEY)

        told = (
            shard().internals.releasing.state_epsilon
            + 2 * shard().internals.releasing.release_epsilon
        )
        assert further(shard) == pytest.approx(told, rel=1e-5)

    @pytest.mark.parametrize("intrusions", [0, 2])
    def test_of_added_sums_without_end_a_further_shard_costs_all(self, intrusions):
        """Noise of a release fits how far a user moves one shard: tests/exact/test_merging.py."""

        def shard():
            return pp.FrequencyMoment(order=1, bound=5, epsilon=1, intrusions=intrusions, key=KEY)

        assert further(shard) == 1
        guarantee = Merger([shard().contribute_cells(), shard().contribute_cells()]).guarantee
        assert any("add up to 0 to 5" in one for one in guarantee.conditions)


def further(shard):
    """What is told of a user of one more shard."""
    guarantee = Merger([shard().contribute_cells(), shard().contribute_cells()]).guarantee
    told = next(one for one in guarantee.conditions if "further" in one)
    return Fraction(told.rpartition(" ")[2])


class TestPrice:
    @pytest.mark.parametrize("shards", [2, 5])
    def test_the_errors_of_sums_grow_with_the_root_of_the_shards(self, shards):
        plan = cropped().plan
        times = plan.aggregation.error("sums", 0, shards)
        assert times == pytest.approx(shards**0.5, rel=0.1)
        remark = Merger([cropped().contribute() for _ in range(shards)]).remarks
        told = (
            f"{shards} tables of different users err about {times:.2g} times as much as one table"
        )
        assert remark == [f"cropped-sum: {told} of all users"]

    def test_the_errors_of_added_cells_grow_as_after_announced_intrusions(self):
        plan = pp.Incidence(universe=5_000, bound=3, epsilon=1).plan
        assert plan.aggregation.error("cells", 0, 2) == pytest.approx(plan.growth)
        assert plan.aggregation.error("cells", 0, 3) == pytest.approx(plan.growth**2)


class TestRefused:
    def test_designs_that_differ_are_named_with_both_values(self):
        message = refused(cropped(bound=10).contribute(), cropped(bound=12).contribute())
        here, there = message.split(" in contribution 1, ")
        assert "bound=10" in here
        assert "bound=12" in there
        assert there.endswith(" in contribution 2")

    @pytest.mark.parametrize(
        ("one", "other", "said"),
        [
            ({"epsilon": 1}, {"epsilon": 2}, ["epsilon=1", "epsilon=2"]),
            ({"releases": 2}, {}, ["releases=2", "releases=1"]),
            ({"cells": 100}, {}, ["cells=100", "cells=default"]),
        ],
    )
    def test_so_is_the_epsilon(self, one, other, said):
        message = refused(cropped(**one).contribute(), cropped(**other).contribute())
        assert all(part in message for part in said)

    def test_what_was_asked_differs(self):
        def shard(**asked):
            return pp.Incidence(universe=50, bound=3, epsilon=1).contribute(**asked)

        message = refused(shard(exactly=(1,)), shard(exactly=(2,)))
        assert "asked exactly=[1] in contribution 1, asked exactly=[2] in contribution 2" in message

    def test_sums_and_cells_do_not_mix(self):
        def moment():
            return pp.FrequencyMoment(order=1, bound=3, epsilon=1)

        message = refused(moment().contribute(), moment().contribute_cells())
        assert "form=sums in contribution 1, form=cells in contribution 2" in message

    def test_another_statistic(self):
        density = pp.Density(universe=5_000, epsilon=1).contribute()
        message = refused(cropped().contribute(), density)
        assert "statistic=cropped-sum" in message
        assert "statistic=density" in message

    def test_another_number_of_statistics(self):
        one = cropped().contribute()
        message = refused(one, cropped().contribute() + cropped().contribute())
        assert "contribution 2 has 2 statistics, and contribution 1 has 1" in message

    def test_a_contribution_twice(self):
        one, other = cropped([SECRET]).contribute(), cropped().contribute()
        assert "contribution 3 is contribution 1 once more" in refused(one, other, one)

    @pytest.mark.parametrize("few", [[], b"bytes", ["text", "text"]])
    def test_fewer_than_two(self, few):
        with pytest.raises(pp.PlanError, match="two contributions or more"):
            pp.merge(few)

    def test_one_alone_that_is_no_slice(self):
        with pytest.raises(pp.PlanError, match="two contributions or more"):
            pp.merge([cropped().contribute()])

    def test_every_cut_of_a_contribution(self):
        one, other = cropped([SECRET]).contribute(), cropped().contribute()
        for end in range(len(other)):
            assert refused(one, other[:end]).startswith("contribution 2: ")

    def test_damage_is_refused_in_one_line_or_is_of_what_may_be_anything(self):
        one, other = cropped([SECRET]).contribute(), cropped().contribute()
        taken = 0
        for place in range(len(other)):
            changed = bytearray(other)
            changed[place] ^= 0x40
            try:
                pp.merge([one, bytes(changed)])
            except pp.PanPrivacyError as error:
                taken -= "\n" in str(error)
            else:
                taken += 1
        assert 0 <= taken <= 32 + 20 + 1 + 8  # the id, how much was made, the ledger, the sum

    @pytest.mark.parametrize("size", [2**64 - 1, 2**63, 2**40])
    def test_a_length_beyond_all_that_there_is(self, size):
        one, other = cropped().contribute(), bytearray(cropped().contribute())
        struct.pack_into("<Q", other, struct.calcsize("<8sI"), size)
        assert "contribution 2: the contribution is damaged" in refused(one, bytes(other))

    def test_a_body_of_another_length(self):
        parts = [read_parts(cropped().contribute())[0] for _ in range(2)]
        longer = type(parts[0])(parts[1].header, parts[1].told, parts[1].body + bytes(8))
        assert "not as long as its design says" in refused(parts[0].packed(), longer.packed())

    def test_cells_that_hold_what_none_can(self):
        def shard():
            statistic = pp.DistinctCount(
                deletions=True, bound=9, expected=(100, 10_000), epsilon=1, key=KEY
            )
            return read_parts(statistic.contribute_cells())[0]

        one, other = shard(), shard()
        wrong = type(other)(other.header, other.told, other.body[:-1] + b"\xff")
        assert "a cell holds what none can hold" in refused(one.packed(), wrong.packed())

    def test_a_clip_is_for_one_table(self):
        moment = pp.FrequencyMoment(
            order=2, bound=3, clip=50, expected=(100, 10_000), epsilon=1, key=KEY
        )
        with pytest.raises(pp.PlanError, match="say clip=0 to add up cells"):
            moment.contribute_cells()

    def test_squares_that_would_not_fit(self):
        plan = pp.FrequencyMoment(
            order=2, bound=3, clip=1 << 27, cells=64, expected=(100, 10_000), epsilon=1
        ).plan
        assert plan.aggregation.reading("sums", None, 0, 3).tables == 3
        with pytest.raises(pp.PlanError, match="do not fit in 64 bits: say a smaller clip="):
            plan.aggregation.reading("sums", None, 0, 4)

    def test_weighted_counts_that_would_not_fit(self):
        plan = pp.Incidence(universe=1_000_000, bound=1_000, epsilon=1).plan
        asked = pp.Incidence.entry.query.read("incidence", {"cropped_moment": [(1_000, 2)]})
        assert plan.aggregation.reading("sums", asked, 0, 4)
        with pytest.raises(pp.PlanError, match="do not fit in 64 bits"):
            plan.aggregation.reading("sums", asked, 0, 10_000_000)

    @pytest.mark.parametrize("key", [b"short", "a text that is long", 17])
    def test_a_key_is_16_bytes_or_more(self, key):
        with pytest.raises(pp.PlanError, match="key must be 16 random bytes or more"):
            pp.Density(universe=9, epsilon=1, key=key)
