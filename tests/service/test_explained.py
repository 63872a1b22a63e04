"""`panprivacy explain` of sealed checkpoints of a service with several statistics and groups."""

from __future__ import annotations

import json
from fractions import Fraction

import pyarrow as pa
import pyrage
import pytest

from panprivacy.service.config.stream import IdKind, StreamConfig
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.stream import Stream
from panprivacy.statistics.checkpoint import Checkpoint
from tests.commands import run_command

SEVERAL = StreamConfig(
    stat=(
        {"name": "distinct", "as": "visitors"},
        {"name": "incidence", "universe": 5_000, "bound": 3, "exactly": "1:3"},
        {"name": "cropped-sum", "universe": 5_000, "tau": 3},
        {"name": "cropped-sum", "universe": 5_000, "tau": 9, "as": "more"},
        {"name": "threshold", "universe": 5_000, "threshold": 3},
        {"name": "heavy-hitters", "k": 500, "total": 100_000},
        {"name": "density", "universe": 5_000},
    ),
    epsilon=Fraction(70),
    window="1h",
    releases=2,
    ids=IdKind.integers,
)
GROUPED = StreamConfig(
    stat=({"name": "distinct"}, {"name": "cropped-sum", "expected": 20_000, "tau": 3, "as": "sum"}),
    epsilon=Fraction(3),
    window="1h",
    by="page",
    groups=("home", "help", "shop"),
    per_user=2,
)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    """A checkpoint of two streams of which one has released, and the key that opens it."""
    folder = tmp_path_factory.mktemp("sealed")
    key = pyrage.x25519.Identity.generate()
    (folder / "key.txt").write_text(f"{key}\n")
    store = ReleaseStore(f"sqlite:///{folder}/releases.sqlite")
    several, grouped = Stream("several", SEVERAL, store), Stream("grouped", GROUPED, store)
    users = pa.array(range(400), pa.int64())
    several.take([pa.record_batch({"user": users})])
    pages = pa.array(["home", "help"] * 200)
    grouped.take([pa.record_batch({"user": users.cast(pa.string()), "page": pages})])
    several.release()
    checkpoint = Checkpoint(folder / "panprivacy.sealed", recipient=str(key.to_public()))
    checkpoint.write([several, grouped])
    store.close()
    return folder


def explained(folder, *options):
    words = "explain", folder / "panprivacy.sealed", "--identity", folder / "key.txt", *options
    result = run_command(*words)
    assert result.code == 0, result.stderr
    return result.stdout


@pytest.mark.long
def test_every_state_of_every_statistic_and_group_is_there(sealed):
    states = json.loads(explained(sealed, "--json"))["states"]
    names = [
        state["statistic"] for state in states for _ in range(state["first"], state["last"] + 1)
    ]
    first = [table["name"] for table in SEVERAL.stat]
    each = [table["name"] for table in GROUPED.stat]
    assert names == first + 3 * each
    assert states[0]["within"] == ["Stream", "Windowed", "Together"]
    assert "Grouped" in states[-1]["within"]


@pytest.mark.long
def test_what_is_promised_is_what_the_stream_was_given(sealed):
    states = json.loads(explained(sealed, "--json"))["states"]
    several = [state for state in states if state["ledger"] == 70]
    assert [state["epsilon"] for state in several] == [10] * 7
    assert all(state["releases"] == {"made": 1, "planned": 2} for state in several)
    grouped = [state for state in states if state not in several]
    assert {state["epsilon"] for state in grouped} == {0.75}
    assert all(state["releases"] == {"made": 0, "planned": 1} for state in grouped)


@pytest.mark.long
def test_sizes_are_those_of_the_configuration(sealed):
    states = json.loads(explained(sealed, "--json"))["states"]
    found = [state["sizes"] for state in states[: len(SEVERAL.stat)]]
    for table, sizes in zip(SEVERAL.stat, found, strict=True):
        said = {key: value for key, value in table.items() if key not in {"name", "as", "exactly"}}
        assert said.items() <= sizes.items()


def test_the_page_names_each_statistic_and_no_id(sealed):
    page = explained(sealed)
    for table in (*SEVERAL.stat, *GROUPED.stat):
        assert f": {table['name']}, made by panprivacy" in page
    assert "If they are groups" in " ".join(page.split())
