"""Bodies of JSON."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.intake.sources import (
    BodyReader,
)
from tests.unit.test_bodies import DELTA, NOT_JSON, ONE_JSON, PROPERTY, USER, refusal, rows

HOLDS = "column 'user' holds {} here; ids must be strings or whole numbers of at most 64 bits"
FRACTION = HOLDS.format("a fraction, or a number beyond 64 bits")
NO_VALUE = "this must be a JSON object, or a list of objects"
COMMA = f"{NOT_JSON}: there is a comma behind the last value"


NOT_WHOLE = "column 'delta' must hold whole numbers of at most 64 bits"


RAGGED = "there must be one value in each column for each user: 'user' has 2, and 'delta' 1"


class TestJson:
    columns = st.lists(st.text(max_size=5), max_size=6) | st.lists(
        st.integers(-(2**63), 2**63 - 1), max_size=6
    )

    @PROPERTY
    @given(columns, st.booleans(), st.sampled_from([None, 2]), st.booleans())
    def test_any_layout_gives_the_same_ids(self, users, escaped, indent, as_rows):
        noise = {"x": [1, {"user": "{"}], "": None}
        value = [{**noise, "user": u} for u in users] if as_rows else {**noise, "user": users}
        text = json.dumps(value, ensure_ascii=escaped, indent=indent)
        expected = [u.encode(errors="ignore") if isinstance(u, str) else u for u in users]
        assert rows("json", text.encode(errors="ignore")) == [(user,) for user in expected]

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ('{"user": "ada"}', [(b"ada", None)]),
            ('{"user": 7, "delta": -1}', [(7, -1)]),
            ('\ufeff{"delta": [1, 2], "user": ["2020-01-01", "é"]}\r\n',
             [(b"2020-01-01", 1), ("é".encode(), 2)]),
            ('{"user": [null, 5], "delta": [null, 2]}', [(None, None), (5, 2)]),
            ('{"user": null, "delta": 3}', [(None, 3)]),
            ('{"user": [], "delta": []}', []),
            ("[]", []),
            (' [{"user": "a"}, null, {"delta": 2}, {}] ',
             [(b"a", None), (None, None), (None, 2), (None, None)]),
            ('{"user": ["7", 7, -0]}', [(b"7",), (b"7",), (b"0",)]),
            ('[{"user": "a"}, {"user": 5}]', [(b"a",), (b"5",)]),
            ('{"user": [18446744073709551615, 1]}', [(-1,), (1,)]),
            (r'[{"user": "a", "x": "\ud800", "y": 1e999}]', [(b"a",)]),
            (r'{"user": ["a"], "x": "\ud800", "y": [1e999]}', [(b"a",)]),
        ],
    )  # fmt: skip
    def test_variants(self, body, expected):
        wanted = [USER, DELTA] if '"delta"' in body or body == "[]" else [USER]
        expected = [row[: len(wanted)] for row in expected]
        assert rows("json", body.encode(), *wanted) == expected

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            ("", NOT_JSON),
            (" \n", NOT_JSON),
            ("8412345", NO_VALUE),
            ('"8412345"', NO_VALUE),
            ('[["8412345"]]', "each event of a list must be an object; it may be empty"),
            ('{"user": ["8412345"', NOT_JSON),
            ('{"user": ["8412345"]]', NOT_JSON),
            ('{"user": ["8412345",]}', COMMA),
            ('[{"user": "8412345"},]', COMMA),
            ('{"user": "8412345"} x', ONE_JSON),
            ("{'user': '8412345'}", NOT_JSON),
            ('{"user": "8412345"}\n{"user": "b"}', ONE_JSON),
            ('[{"user": "8412345"}] [{"user": "b"}]', ONE_JSON),
            ('[{"user": "8412345"}], "x": [1]', ONE_JSON),
            ('[{"user": "8412345"}]], "x": [[1]', ONE_JSON),
            ('{"user": 8412345.5}', FRACTION),
            ('{"user": [8412345e0]}', FRACTION),
            ('{"user": [84123450000000000000]}', FRACTION),
            ('{"user": NaN}', FRACTION),
            ('{"user": [1, Infinity]}', FRACTION),
            ('{"user": true}', HOLDS.format("true or false")),
            ('{"user": {"8412345": 1}}', HOLDS.format("an object")),
            ('{"user": [["8412345"]]}', HOLDS.format("a list")),
            ('{"user": "8412345", "user": "b"}', "the field 'user' occurs twice"),
            ('[{"user": 8412345, "user": 2}]', "the field 'user' occurs twice"),
            ('{"usr": "8412345"}', "there is no field 'user'"),
            ('[{"usr": "8412345"}]', "there is no field 'user'"),
            ('{"user": "\\ud800 8412345"}', "column 'user' holds a text that is not UTF-8"),
        ],
    )  # fmt: skip
    def test_refusals(self, body, reason):
        error = refusal("json", body.encode())
        assert error.reason == reason

    @pytest.mark.parametrize(
        ("delta", "reason"),
        [
            ("[1.5, 1]", NOT_WHOLE),
            ('["8412345", "1"]', NOT_WHOLE),
            ("[1]", RAGGED),
            ("1", RAGGED),
        ],
    )  # fmt: skip
    def test_refused_deltas(self, delta, reason):
        body = f'{{"user": ["8412345", "b"], "delta": {delta}}}'
        assert refusal("json", body.encode(), USER, DELTA).reason == reason

    @pytest.mark.parametrize("body", [b'["8412345"]', b"[8412345, 2]", b'["8412345", null]'])
    def test_values_without_a_field_are_told_where_to_put_them(self, body):
        error = refusal("json", body)
        assert error.reason == 'these are values without a field: send {"user": ["..."]}'

    def test_nothing_but_nulls_has_the_null_type_as_in_ndjson(self):
        for kind, body in (("json", b'{"user": [null], "delta": 1}'),
                           ("ndjson", b'{"user": null, "delta": 1}\n')):  # fmt: skip
            batch = BodyReader([USER, DELTA]).read(kind, body)[0]
            assert batch.schema.types == [pa.null(), pa.int64()]

    @pytest.mark.parametrize("bad", [0, 1, 5, 6])
    def test_invalid_utf8_is_refused_and_its_row_named(self, bad):
        users = [b"\xc3\xa9" if row != bad else b"\xc3" for row in range(7)]
        lines = b"".join(b'{"user": "%s"}\n' % user for user in users)
        listed = b'{"user": [%s]}' % b", ".join(b'"%s"' % user for user in users)
        table = b"user\n" + b"".join(b"%s\n" % user for user in users)
        for kind, body in {"ndjson": lines, "json": listed, "csv": table}.items():
            error = refusal(kind, body)
            assert (error.row, error.reason) == (
                bad + 1,
                "column 'user' holds a text that is not UTF-8",
            )

    @pytest.mark.parametrize("close", [True, False])
    def test_nesting_however_deep(self, close):
        deep = b"[" * 1_000_000 + b"]" * 1_000_000 * close
        for kind in ("json", "ndjson"):
            body = b'{"user": 5, "x": ' + deep + b"}"
            if close:
                assert rows(kind, body) == [(5,)]
            else:
                refusal(kind, body)
        refusal("json", deep)

    def test_too_long(self):
        body = b'{"user": "' + b"x" * (64 << 20) + b'"}'
        assert "longer than 64 MiB" in refusal("json", body).reason
