"""Statistics as people write them: in one text, or in a table of a configuration."""

from __future__ import annotations

import ast
import inspect
import re
from fractions import Fraction
from pathlib import Path

import pytest

import panprivacy as pp
from panprivacy.intake.programs.counting import make_counting
from panprivacy.statistics.catalogue import KINDS, kinds
from panprivacy.statistics.specification import Specification, together

read = Specification.from_text
table = Specification.from_table


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("distinct", {"name": "distinct"}),
        (" distinct , memory = 1e3 ", {"name": "distinct", "memory": 1_000}),
        ("distinct,expected=10:1e6", {"name": "distinct", "expected": (10, 10**6)}),
        ("distinct,expected=10:1e6", {"name": "distinct", "expected": "10:1e6"}),
        ("distinct,expected=10:1e6", {"name": "distinct", "expected": [10, 1e6]}),
        (
            "distinct,deletions,signed,bound=3",
            {"name": "distinct", "deletions": True, "signed": True, "bound": 3},
        ),
        ("distinct,deletions=false", {"name": "distinct", "deletions": False}),
        ("distinct,deletions=strict", {"name": "distinct", "deletions": "strict"}),
        ("density,universe=50_000", {"name": "density", "universe": 50_000}),
        (
            "incidence,bound=30,universe=9,exactly=1,2,5",
            {"name": "incidence", "bound": 30, "universe": 9, "exactly": [1, 2, 5]},
        ),
        (
            "incidence,exactly=-2:0,5,universe=9,distinct,signed,bound=30",
            {
                "name": "incidence",
                "bound": 30,
                "universe": 9,
                "signed": True,
                "exactly": (-2, -1, 0, 5),
                "distinct": True,
            },
        ),
        (
            "incidence,bound=30,universe=9,cropped_moment=10**2,5**3,at_least=2",
            {
                "name": "incidence",
                "bound": 30,
                "universe": 9,
                "at_least": 2,
                "cropped_moment": [(10, 2), (5, 3)],
            },
        ),
        (
            "cropped-sum,tau=10,universe=9,as=visits10",
            {"name": "cropped-sum", "tau": 10, "universe": 9, "as": "visits10"},
        ),
    ],
)
def test_a_text_and_a_table_say_the_same(text, same):
    one, other = read(text), table(same)
    assert (one.kind, one.label, one.sizes, one.query) == (
        other.kind, other.label, other.sizes, other.query,
    )  # fmt: skip


def test_what_is_asked_goes_to_the_query_and_not_to_the_sizes():
    found = read("incidence,bound=30,universe=9,exactly=1,2,5,distinct")
    assert found.sizes.plain() == {"bound": 30, "universe": 9}
    assert found.asked() == {"exactly": (1, 2, 5), "distinct": True}
    assert (found.label, read("distinct,as=other").label) == ("incidence", "other")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are distinct, density, overlap"),
        ("median", "there are distinct"),
        ("densty,universe=9", "did you mean density?"),
        ("density", "density needs universe=: how many users"),
        ("density,universe=", "density, universe=: '' is not a whole number"),
        ("density,universe", "density, universe=: 'true' is not a whole number"),
        (
            "incidence,universe=9,bound=3,atleast=2",
            r"incidence has no atleast=: did you mean at_least=\?",
        ),
        ("incidence,universe=9,boundd=3", r"incidence has no boundd=: did you mean bound=\?"),
        ("density,univers=9", r"density has no univers=: did you mean universe=\?"),
        ("density,universe=9,universe=9", "density, universe= is given twice"),
        ("density,universe=9,as=a,as=b", "as= is given twice"),
        ("density,9", "density wants name=value, such as density,universe=N"),
        ("density,universe=9,8", "'9,8' is not a whole number"),
        ("density,universe=9.5", "'9.5' is not a whole number"),
        ("density,universe=nan", "'nan' is not a whole number"),
        ("density,universe=1e999", "'1e999' is not a whole number"),
        ("density,universe=0", "universe must be a whole number of at least 1"),
        ("density,universe=9,signed", "density has no signed=: its sizes are universe, cells"),
        ("density,universe=9,=3", "density has no =:"),
        ("density,universe=9,as=", "as= must be 1 to 64 of a-z"),
        ("density,universe=9,as", "'9,as' is not a whole number"),
        ("density,universe=9,as=Upper", "as= must be"),
        ("density,universe=9,as=" + "a" * 65, "as= must be"),
        ("distinct,deletions=yes,bound=3", "'yes' is neither true, false nor strict"),
        ("distinct,expected=few", "LOW:HIGH"),
        ("incidence,bound=5,universe=9,exactly=1,x", "incidence has no x="),
        ("cropped-sum,tua=10,universe=9", r"cropped-sum has no tua=: did you mean tau=\?"),
    ],
)
def test_a_text_that_is_none_says_what_is_wrong(text, message):
    with pytest.raises(pp.PlanError, match=message):
        read(text)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, 'name is missing; it is needed, such as name = "distinct"'),
        ({"name": 5}, "there are distinct, density"),
        ({"name": ["distinct"]}, "there is no statistic of that name"),
        ({"name": "density"}, "density needs universe="),
        ({"name": "density", "universe": "9"}, "universe must be a whole number"),
        ({"name": "density", "universe": True}, "universe must be a whole number"),
        ({"name": "density", "universe": 9, "as": 3}, "as= must be"),
        ({"name": "density", "universe": 9, "stat": 3}, "density has no stat="),
        ({"name": "distinct", "deletions": 1}, 'deletions must be True or False, or "strict"'),
        ({"name": "distinct", "expected": [3]}, "expected must be one number"),
        ({"name": "distinct", "expected": {}}, "expected must be"),
    ],
)
def test_a_table_that_is_none_says_what_is_wrong(wrong, message):
    with pytest.raises(pp.PlanError, match=message):
        table(wrong)


class TestRecords:
    @pytest.mark.parametrize("kind", kinds().values(), ids=lambda kind: kind.entry.name)
    def test_every_field_has_a_meaning_and_a_form(self, kind):
        for record in (kind.entry.sizes, kind.entry.query):
            for entry in record.fields().values():
                assert entry.says
                assert not entry.says.endswith(".")
                documented = re.escape(f"): {entry.says}")
                assert re.search(
                    rf"\b{entry.name} \([^:]*{documented}", " ".join(kind.__doc__.split())
                )

    @pytest.mark.parametrize("kind", kinds().values(), ids=lambda kind: kind.entry.name)
    def test_a_missing_or_unknown_size_is_no_type_error(self, kind):
        needed = [one for one in kind.entry.sizes.fields().values() if one.required]
        with pytest.raises(pp.PlanError, match=f"{kind.entry.name} has no colour="):
            kind(epsilon=1, colour=3)
        if needed:
            with pytest.raises(pp.PlanError, match=f"{kind.entry.name} needs {needed[0].name}=: "):
                kind(epsilon=1)

    def test_a_record_is_read_and_written_back(self):
        sizes = pp.CroppedSum.entry.sizes.read("x", {"tau": 1e1, "expected": (5, 9), "bound": None})
        assert sizes.plain() == {"tau": 10, "expected": [5, 9]}
        assert pp.CroppedSum.entry.sizes.read("x", sizes.plain()) == sizes
        assert sizes.within(64).memory == 64

    def test_one_number_of_users_and_a_range_of_it_differ(self):
        reader = pp.CroppedSum.entry.sizes.read
        assert reader("x", {"tau": 1, "expected": 9}).expected == 9
        assert reader("x", {"tau": 1, "expected": (9, 9)}).expected == (9, 9)

    def test_a_statistic_that_is_asked_nothing_says_so(self):
        with pytest.raises(pp.PlanError, match="distinct has no exactly=: it takes no questions"):
            pp.DistinctCount(epsilon=1).release(exactly=3)


class TestTogether:
    def test_epsilon_is_shared_equally_under_one_ledger(self):
        made = together([read("distinct"), read("density,universe=9")], epsilon=Fraction(3),
                        releases=2)  # fmt: skip
        assert made.ledger.total == made.guarantee.epsilon == 3
        assert [one.guarantee.epsilon for one in made.members.values()] == [Fraction(3, 2)] * 2

    def test_two_of_one_label_are_refused(self):
        with pytest.raises(pp.PlanError, match=r"two statistics are called distinct: .* as="):
            together([read("distinct"), read("distinct")], epsilon=Fraction(1), releases=1)

    def test_nothing_to_count_is_refused(self):
        with pytest.raises(pp.PlanError, match="stat= must say what to count"):
            make_counting([], epsilon=Fraction(1))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.entry.name)
def test_type_checkers_are_told_the_fields_of_the_sizes(kind):
    """Written down once more, for they cannot read records: names, what is required, defaults."""
    module = ast.parse(Path(inspect.getfile(kind)).read_text(encoding="utf-8"))
    functions = (one for one in ast.walk(module) if isinstance(one, ast.FunctionDef))
    told = next(one for one in functions if one.name == "__init__").args
    fields = kind.entry.sizes.fields().values()
    assert [one.arg for one in told.kwonlyargs] == [one.name for one in fields]
    for field, default in zip(fields, told.kw_defaults, strict=True):
        assert (default is None) == field.required
        if default is not None:
            assert ast.literal_eval(default) == field.default
