"""The lines of a configuration, for messages about its keys."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.service.config.lines import line_of, lines_of

KEYS = st.one_of(
    st.text("ab-_1", min_size=1, max_size=2).map(lambda key: (key, key)),
    st.sampled_from([('"a.b"', "a.b"), ("'#['", "#["), (r'"\""', '"'), ('""', "")]),
)


VALUES = st.sampled_from(
    [
        "1", "1979-05-27 07:32:00", "[1, 2]", "[\n  1, # ]\n  2,\n]", "{a = 1, 'b' = [2]}", '"]"',
        "'[['", '"""\n[x]\n"""', "'''\na = 1\n'''", r'"\\"', r'"\"# "',
        '"""a\\\n\\""""""', '""""a"""""',
        "[[\n'''\n''''']]", '"""\\"""\n"""', "''", '""',
    ]
)  # fmt: skip


@st.composite
def documents(draw):
    """A document, and the line on which each of its keys and tables is written."""
    lines, expected, arrays = [], {}, {}
    place, counted = (), set()
    for number in range(draw(st.integers(0, 12))):
        lines += draw(st.sampled_from([[], [""], ["# [a]"], ["  # b = '''"]]))
        kind = draw(st.sampled_from(["value", "value", "table", "array"]))
        parts = draw(st.lists(KEYS, min_size=1, max_size=3))
        keys = (f"k{number}", *(key for _, key in parts[1:]))
        written = draw(st.sampled_from([".", " . "])).join(
            [f"k{number}", *(part for part, _ in parts[1:])]
        )
        if kind == "array" and arrays and draw(st.booleans()):
            written, keys = draw(st.sampled_from(sorted(arrays)))
        if kind == "array":
            index = arrays.setdefault((written, keys), 0)
            arrays[written, keys] += 1
            place = (*keys, index)
            expected[place] = expected[keys] = sum(line.count("\n") + 1 for line in lines) + 1
            lines.append(f"[[{written}]] # x")
            continue
        here = sum(line.count("\n") + 1 for line in lines) + 1
        if kind == "table":
            place = keys
            lines.append(f" [ {written} ]")
        else:
            lines.append(f"\t{written} = {draw(VALUES)}{draw(st.sampled_from(['', ' # {']))}")
        expected[keys if kind == "table" else (*place, *keys)] = here
        counted.add(number)
    return "\n".join(lines), expected


@pytest.mark.long
@given(documents())
def test_the_line_of_every_key_is_found(document):
    text, expected = document
    tree, lines = tomllib.loads(text), lines_of(text)
    for place, line in expected.items():
        if place and not isinstance(at(tree, place), list):
            assert line_of(place, lines) == line, place


def at(tree, place):
    for step in place:
        tree = tree[step]
    return tree


def test_what_is_within_a_value_has_the_line_of_its_key():
    lines = lines_of("\na = 1\n[b]\nc = [\n{d = 1},\n]\n[[e]]\n[e.f]\n[[e]]\nf.g = 1\n")
    assert line_of(("b", "c", 0, "d"), lines) == 4
    assert line_of(("e", 0, "f"), lines) == 8
    assert line_of(("e", 1, "f", "g"), lines) == 10
    assert line_of(("z",), lines) == 1


def test_a_table_is_where_its_header_is_though_one_in_it_comes_first():
    lines = lines_of("[a.b]\n[a]\nc = 1\n")
    assert (line_of(("a",), lines), line_of(("a", "x"), lines)) == (2, 2)
