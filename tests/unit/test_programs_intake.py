"""What batches become before they are counted."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

from panprivacy.intake.programs.intake import Columns, Intake, Nulls
from panprivacy.intake.sources import Column


class Recorder:
    """Takes what statistics would."""

    @property
    def internals(self):
        return SimpleNamespace(memory=self)

    def prepare(self, users, *rest):
        *groups, deltas = rest
        columns = (users, deltas, *groups)
        self.seen = [None if one is None else list(pa.array(one).to_pylist()) for one in columns]
        return []


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
@pytest.mark.parametrize("grouped", [False, True])
def test_rows_without_a_user_are_left_out_of_columns_of_every_kind(kind, grouped):
    """Polars writes texts as views, of which Arrow cannot take rows."""
    columns = {"user": pa.array(["ada", None, "grace"], kind), "delta": pa.array([1, 2, 3])}
    if grouped:
        columns["page"] = pa.array(["home", "help", "home"], kind)
    wanted = Columns(Column("user"), Column("delta"), Column("page") if grouped else None)
    counting = Recorder()
    Intake(wanted, Nulls.skip).prepare(counting, pa.record_batch(columns), 0)
    users, deltas, *groups = counting.seen
    assert [one.encode() if isinstance(one, str) else one for one in users] == [b"ada", b"grace"]
    assert deltas == [1, 3]
    if grouped:
        assert [one.encode() if isinstance(one, str) else one for one in groups[0]] == [b"home"] * 2
