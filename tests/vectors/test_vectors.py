"""The draft's test vectors: every file beside the repository is replayed."""

from __future__ import annotations

import copy
import json

import pytest

from tests.docs.pins import ROOT
from tests.vectors.replay import REPLAYS

FILES = sorted((ROOT / "../shared/vectors").glob("*.json"))
present = pytest.mark.skipif(not FILES, reason="there is no ../shared/vectors")


def replay(path, vector=None):
    """Replay one file, as it is or changed."""
    name = path.stem.partition("_")[0]
    if name not in REPLAYS:
        pytest.fail(f"{path.name}: nothing here computes {name}")
    REPLAYS[name](vector or json.loads(path.read_text()))


@present
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_vector_is_replayed(path, record_property):
    replay(path)
    record_property("replayed", path.name)


def leaves(node, place=()):
    """Where values are, with the place of each."""
    if isinstance(node, dict | list):
        for key, inner in node.items() if isinstance(node, dict) else enumerate(node):
            yield from leaves(inner, (*place, key))
    else:
        yield place


def changed(value):
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if value and set(value) <= set("0123456789abcdef"):
        return value[:-1] + "0123456789abcdef"[int(value[-1], 16) ^ 1]
    return value + "00"


def is_accepted(path):
    """Whether no report of a file is refused: what would come after that is not in the file."""
    return json.loads(path.read_text()).get("agg_result", 0) is not None


@present
@pytest.mark.parametrize("path", [*filter(is_accepted, FILES)], ids=lambda path: path.stem)
def test_no_value_of_a_vector_can_change(path):
    """The replay looks at all of them."""
    vector = json.loads(path.read_text())
    for *place, last in leaves(vector):
        if place[:1] == ["operations"] and last != "success":
            continue  # other operations may succeed as well
        other = copy.deepcopy(vector)
        node = other
        for key in place:
            node = node[key]
        node[last] = changed(node[last])
        with pytest.raises((AssertionError, LookupError)):
            replay(path, other)


def test_a_vector_of_something_else_is_refused_by_its_name(tmp_path):
    path = tmp_path / "Prio3Sum_0.json"
    path.write_text("{}")
    with pytest.raises(pytest.fail.Exception, match="Prio3Sum"):
        replay(path)
