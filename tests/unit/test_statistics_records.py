"""What a statistic is told, read from Python and from texts."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

from panprivacy.errors import PlanError
from panprivacy.statistics.records import (
    Query,
    Record,
    Sizes,
    flag,
    flag_or,
    integer,
    learned_users,
    users,
)
from panprivacy.tables.planning.learning import LearnedRange


class Made(Sizes, frozen=True, tag="made"):
    """All that may be said."""

    bound: Annotated[int, integer("the bound", 9, example=3)]
    least: Annotated[int, integer("from 0 on", 5, 0)] = 0
    signed: Annotated[bool, flag("below 0")] = False
    strict: Annotated[bool | str, flag_or("strict", "deletions")] = False
    most: Annotated[object, users("at most", 100)] = None
    expected: Annotated[object, learned_users("who comes", "1:10")] = None
    memory: Annotated[int | None, integer("bytes")] = None
    cells: Annotated[int | None, integer("cells")] = None


class Nothing(Query, frozen=True):
    """No question."""


def read(**given):
    return Made.read("made", {"bound": 3, **given})


def test_what_is_said_is_read_and_the_rest_is_as_it_is_unless_told():
    made = read(least=2.0, expected=(1, 10), signed=True)
    assert (made.least, made.expected, made.signed, made.most) == (2, (1, 10), True, None)
    assert type(made.least) is int


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"bound": 10}, "bound must be at most 9"),
        ({"bound": 0}, "bound must be a whole number of at least 1"),
        ({"least": -1}, "least must be a whole number of at least 0"),
        ({"least": 1.5}, "least must be a whole number"),
        ({"signed": 1}, "signed must be True or False"),
        ({"strict": "other"}, 'strict must be True or False, or "strict"'),
        ({"most": "learn"}, "most cannot be learned here"),
        ({"most": "10:1"}, "expected must run from low to high"),
        ({"bound": None}, "made needs bound=: the bound"),
        ({"bonud": 1}, r"made has no bonud=: did you mean bound=\?"),
        ({"zzzz": 1}, "made has no zzzz=: its sizes are bound, least"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given, says):
    with pytest.raises(PlanError, match=says):
        read(**given)


def test_who_takes_nothing_says_so():
    with pytest.raises(PlanError, match="made has no x=: it takes no questions"):
        Nothing.read("made", {"x": 1})


def test_texts_have_the_form_of_their_size():
    texts = {"bound": "3", "signed": "true", "strict": "strict", "expected": "1:10", "other": "x"}
    assert Made.parse("made", texts) == {
        **texts,
        "bound": 3,
        "signed": True,
    }
    for text, says in (("1.5", "whole number"), ("", "whole number")):
        with pytest.raises(PlanError, match=f"made, bound=: .*{says}"):
            Made.parse("made", {"bound": text})
    with pytest.raises(PlanError, match="made, signed=: 'yes' is neither true nor false"):
        Made.parse("made", {"signed": "yes"})
    with pytest.raises(PlanError, match="made, strict=: 'yes' is neither true, false nor strict"):
        Made.parse("made", {"strict": "yes"})


def test_what_is_written_down_is_what_was_said():
    assert read(least=0, expected="1:10").plain() == {"bound": 3, "expected": [1, 10]}


def test_a_range_that_is_learned_is_known():
    assert read().learned == {}
    assert isinstance(read(expected="learn").learned["expected"], LearnedRange)
    assert read(expected=7).expected == 7


def test_memory_is_given_where_it_is_taken():
    assert read().within(8).memory == 8
    chosen = read(cells=5)
    assert chosen.within(8) is chosen
    assert (read().takes_memory(), chosen.takes_memory()) == (True, False)


def test_steps_are_ticks_of_what_has_steps():
    assert read().steps is None
    assert read().ticks(3) == 0


def test_fields_say_whether_they_are_needed():
    fields = Made.fields()
    assert [name for name, one in fields.items() if one.required] == ["bound"]
    assert (fields["bound"].form, fields["bound"].example) == ("N", 3)
    assert fields["strict"].form == "true or strict"
    assert fields["most"].value(None) is None
    assert issubclass(Made, Record)
    assert issubclass(Made, msgspec.Struct)
