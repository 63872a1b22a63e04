"""The interface as an OpenAPI document, which tests compare with the application."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from panprivacy._version import VERSION
from panprivacy.intake.sources import MEDIA_TYPES
from panprivacy.service.outgoing.exports import WRITERS
from panprivacy.service.outgoing.records import FIELDS, MOMENT, NULLABLE
from panprivacy.service.web.protobuf import MEDIA_TYPE

_Object = dict[str, Any]

_PROBLEM: _Object = {
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong and what to do. No id."},
    },
}
_TYPES: dict[pa.DataType, _Object] = {
    pa.string(): {"type": "string"},
    pa.int64(): {"type": "integer"},
    pa.bool_(): {"type": "boolean"},
    pa.float64(): {"anyOf": [{"type": "number"}, {"const": "inf"}]},
    MOMENT: {"type": "string", "format": "date-time"},
}


def _property(name: str) -> _Object:
    """Return the schema of one column of a row: its type and its meaning."""
    kind, says = FIELDS[name]
    typed = _TYPES[kind]
    if name in NULLABLE:
        typed = {"anyOf": [*typed.get("anyOf", [typed]), {"type": "null"}]}
    return {**typed, "description": says}


def _query(name: str, says: str, schema: _Object) -> _Object:
    return {"name": name, "in": "query", "description": says, "schema": schema}


def _answer(says: str, schema: _Object, *kinds: str) -> _Object:
    content = {kind: {"schema": schema} for kind in kinds or ["application/json"]}
    return {"description": says, "content": content}


def _operation(name: str, says: str, answers: _Object, *problems: int, **more: Any) -> _Object:
    """Return one operation, its responses and its failures."""
    schema = {"$ref": "#/components/schemas/Problem"}
    failures = {
        str(status): _answer(_SAYS[status], schema, "application/problem+json")
        for status in problems
    }
    responses = {**answers, **failures}
    return {"operationId": name, "summary": says, **more, "responses": responses}


_ROW: _Object = {
    "type": "object",
    "description": "One number of a release. Infinite ends are the text inf.",
    "required": list(FIELDS),
    "properties": {name: _property(name) for name in FIELDS},
}
_STREAM: _Object = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[a-z][a-z0-9_-]{0,63}$"},
}
_BATCH_ID: _Object = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": (
        "The sender's name for this batch, drawn at random: a batch of the same name is not "
        "counted again. It stays in the state for a while, so it must not tell who is in it."
    ),
    "schema": {"type": "string", "pattern": "^[!-~]{1,256}$"},
}
_LOOK_ID: _Object = {
    **_BATCH_ID,
    "required": True,
    "description": "The sender's name for this look: one of the same name is not announced again.",
}
_ORIGIN: _Object = {
    "name": "Origin",
    "in": "header",
    "required": True,
    "description": "The site of the page, as browsers say it: one of those of the beacon.",
    "schema": {"type": "string", "pattern": "^[!-~]+$"},
}
_DURABLE = _query(
    "durable",
    "1: answer after the next sealed checkpoint that holds the batch is on disk.",
    {"type": "integer", "enum": [0, 1]},
)
_TEXT = {"type": "string"}
_VISITED = {**_TEXT, "description": "Path of the page, a line end, host of the page before it."}
_MOMENT = {"type": "string", "format": "date-time"}
_RELEASED = {"type": "object", "properties": {"released": {"type": "boolean"}}}
_ANNOUNCED: _Object = {
    "type": "object",
    "required": ["stream", "window_began", "number", "left"],
    "properties": {
        "stream": {"type": "string"},
        "window_began": {**_MOMENT, "description": "of the window that it counts for"},
        "number": {"type": "integer", "description": "of the announced intrusion, from 1"},
        "left": {"type": "integer", "description": "how many may still be announced"},
    },
}
_BOUND = {"type": ["number", "string"], "description": "rounded up; inf beyond all numbers"}
_LOSS = {"epsilon": _BOUND, "delta": _BOUND}
_PROMISED: _Object = {
    "type": "object",
    "required": ["name", "epsilon", "delta", "adjacency", "conditions", "year", "guarantee"],
    "properties": {
        "name": _TEXT,
        "guarantee": {**_TEXT, "description": "all that is promised, in words"},
        **_LOSS,
        "adjacency": {**_TEXT, "description": "what one of is hidden: user, event or device"},
        "conditions": {"type": "array", "items": _TEXT},
        "replace": {"type": "object", "properties": _LOSS},
        "unseen": {**_BOUND, "description": "epsilon of a window whose state nobody sees"},
        "crash": {
            **_BOUND,
            "description": "epsilon that a crash adds",
        },
        "crash_again": {
            **_BOUND,
            "description": "epsilon that each crash but the first adds, without announcements",
        },
        "year": {
            "type": "object",
            "description": "the loss over all windows of a year, one of them seen if it may be",
            "properties": {"windows": {"type": "integer"}, **_LOSS},
        },
    },
}
_STATUS = {"type": "object", "required": ["status", "version", "troubles"]}
_BYTES = {"type": "string", "format": "binary"}
_ROWS = {"type": "array", "items": {"type": ["object", "null"]}}
_BODIES: dict[str, _Object] = {
    "arrow": {**_BYTES, "minLength": 1, "description": "Arrow IPC, which may have no rows."},
    "int64": {**_BYTES, "description": "Little-endian numbers of 8 bytes; may be empty."},
    "ndjson": {**_BYTES, "description": "An object a line; may be empty."},
    "csv": {**_BYTES, "minLength": 1, "description": "A header line, and rows if there are any."},
    "tsv": {**_BYTES, "minLength": 1, "description": "A header line, and rows if there are any."},
    "json": {
        "anyOf": [{"type": "object", "minProperties": 1}, _ROWS],
        "description": "One value or a list of values for each column, or a list of rows.",
    },
}
"""Schema of a body in each format; its columns depend on the stream."""
_SAYS = {
    400: "The request is wrong; nothing was counted.",
    401: "No known token.",
    403: "The token, or the page of this origin, may not do this.",
    404: "There is no such stream, or table.",
    406: "The Accept header lets no format through.",
    408: "The body did not arrive in time.",
    409: "No release or announced intrusion is left, or the stream releases on a clock.",
    413: "The body is too long.",
    415: "The body has another format.",
    429: "Too much is under way; come again.",
    500: "A fault of the service.",
    501: "The Transfer-Encoding is not chunked alone.",
    503: "Not now; come again.",
}
_UPDATE = _operation(
    "update",
    "Count a batch of events: all of its rows, or none.",
    {
        "200": {"description": "Counted, and on disk."},
        "202": {"description": "Counted, in memory."},
    },
    *(400, 401, 403, 404, 408, 413, 415, 429, 500, 501, 503),
    parameters=[_STREAM, _BATCH_ID, _DURABLE],
    requestBody={
        "required": True,
        "content": {kind: {"schema": _BODIES[name]} for kind, name in MEDIA_TYPES.items()},
    },
)
_BEACON = _operation(
    "beacon",
    "The script that a web page loads to have its visits counted.",
    {"200": _answer("The script.", _TEXT, "text/javascript")},
    *(404, 500, 503),
    parameters=[_STREAM],
    security=[],
)
_VISIT = _operation(
    "visit",
    "Count a visit of a web page; the sender's address and user agent say who came.",
    {"204": {"description": "Counted, in memory."}},
    *(400, 403, 404, 408, 413, 415, 429, 500, 501, 503),
    parameters=[_STREAM, _ORIGIN],
    requestBody={
        "required": True,
        "content": {"text/plain": {"schema": _VISITED}},
    },
    security=[],
)
_RELEASE = _operation(
    "release",
    "Make a release now; it is paid for out of those of the window.",
    {"201": _answer("Released; it is among the releases.", _RELEASED)},
    *(400, 401, 403, 404, 409, 500, 503),
    parameters=[_STREAM],
)
_ANNOUNCE = _operation(
    "announce",
    "Say that somebody has seen the memory: the state is re-randomised, and may be seen once more.",
    {"200": _answer("Announced, and on disk; the same for each retry of a name.", _ANNOUNCED)},
    *(400, 401, 403, 404, 409, 500, 503),
    parameters=[_STREAM, _LOOK_ID],
)
_NUMBERS = _answer("The numbers.", _TEXT, *WRITERS)
_NUMBERS["content"]["application/json"] = {
    "schema": {"type": "array", "items": {"$ref": "#/components/schemas/Row"}}
}
_RELEASES = _operation(
    "releases",
    "The newest numbers, oldest first.",
    {"200": _NUMBERS},
    *(400, 401, 403, 404, 406, 429, 500, 503),
    parameters=[
        _query("stream", "of this stream alone", _TEXT),
        _query("since", "published then or later", _MOMENT),
        _query("before", "published before then", _MOMENT),
        _query("limit", "so many", {"type": "integer", "minimum": 1, "maximum": 100_000}),
        _query("format", "instead of Accept", {"enum": ["json", "csv", "parquet"]}),
    ],
)
_NUMBER: _Object = {"anyOf": [{"type": "number"}, {"const": "inf"}]}
_INTERVAL: _Object = {
    "type": ["object", "null"],
    "description": "An answer and its interval; null if the tables cannot be compared.",
    "properties": {"value": _NUMBER, "low": _NUMBER, "high": _NUMBER},
}
_LISTED: _Object = {
    "type": "object",
    "description": "A published table without its bytes.",
    "required": ["id", "stream", "start", "end", "complete", "statistic", "group", "size"],
    "properties": {
        "id": {"type": "integer", "description": "of the table in the release store"},
        "stream": _TEXT,
        "start": _MOMENT,
        "end": _MOMENT,
        "complete": {"type": "boolean", "description": "whether a whole window was counted"},
        "number": {"type": "integer"},
        "statistic": _TEXT,
        "group": {"type": ["string", "null"]},
        "released": _MOMENT,
        "size": {"type": "integer", "description": "number of its bytes"},
    },
}
_COMPARED: _Object = {
    "type": "object",
    "required": ["windows", "pairs"],
    "properties": {
        "windows": {"type": "array", "items": {"type": "object"}},
        "pairs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["first", "second", "return_rate", "intersection", "note"],
                "properties": {
                    "first": {"type": "integer", "description": "id of the earlier window"},
                    "second": {"type": "integer"},
                    "return_rate": _INTERVAL,
                    "intersection": _INTERVAL,
                    "note": {"type": ["string", "null"]},
                },
            },
        },
    },
}
_SKETCHES = _operation(
    "sketches",
    "The newest published tables, oldest first, without their bytes.",
    {"200": _answer("The tables.", {"type": "array", "items": _LISTED})},
    *(400, 401, 403, 404, 429, 500, 503),
    parameters=[
        _query("stream", "of this stream alone", _TEXT),
        _query("since", "published then or later", _MOMENT),
        _query("before", "published before then", _MOMENT),
        _query("limit", "so many", {"type": "integer", "minimum": 1, "maximum": 10_000}),
    ],
)
_SKETCH = _operation(
    "sketch",
    "The bytes of a published table, as a file of it has them.",
    {"200": _answer("The table.", _BYTES, "application/octet-stream")},
    *(400, 401, 403, 404, 429, 500, 503),
    parameters=[
        _STREAM,
        {"name": "id", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}},
    ],
)
_OVERLAPS = _operation(
    "overlaps",
    "Who came back: each pair of the newest windows, with intervals.",
    {"200": _answer("The windows, and pairs of them.", _COMPARED)},
    *(400, 401, 403, 404, 429, 500, 503),
    parameters=[
        {**_query("stream", "of this stream", _TEXT), "required": True},
        _query("statistic", "of this statistic; the first one that publishes tables", _TEXT),
        _query("group", "of this group; needed if users are counted by group", _TEXT),
        _query("windows", "so many", {"type": "integer", "minimum": 1, "maximum": 52}),
    ],
)
_STREAMS = _operation(
    "streams",
    "The streams, and what is promised to their users.",
    {"200": _answer("The streams.", {"type": "array", "items": _PROMISED})},
    *(400, 401, 403, 429, 500, 503),
)
_TEXTS = _answer("Metrics.", _TEXT, "text/plain", "application/openmetrics-text")
_METRICS = _operation(
    "metrics",
    "The newest numbers and the health of the service, for Prometheus.",
    {"200": {**_TEXTS, "content": {**_TEXTS["content"], MEDIA_TYPE: {"schema": _BYTES}}}},
    *(400, 401, 403, 429, 500, 503),
)
_HEALTH = _operation(
    "health",
    "Whether everything works.",
    {
        "200": _answer("It does.", _STATUS),
        "503": _answer("It does not, or waits for its checkpoint to be restored.", _STATUS),
    },
    security=[],
)
_OPENAPI = _operation(
    "openapi",
    "This document.",
    {"200": _answer("The document.", {"type": "object"})},
    security=[],
)


def document() -> _Object:
    """Return the OpenAPI 3.1 document of a service."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "panprivacy",
            "version": VERSION,
            "description": "Takes in events, keeps noise, and serves what is released.",
        },
        "servers": [{"url": ".."}],  # relative to this document, which a proxy may have anywhere
        "security": [{"token": []}],
        "paths": {
            "/v1/streams": {"get": _STREAMS},
            "/v1/streams/{name}/updates": {"post": _UPDATE},
            "/v1/streams/{name}/release": {"post": _RELEASE},
            "/v1/streams/{name}/beacon.js": {"get": _BEACON},
            "/v1/streams/{name}/beacon": {"post": _VISIT},
            "/v1/streams/{name}/announce": {"post": _ANNOUNCE},
            "/v1/releases": {"get": _RELEASES},
            "/v1/sketches": {"get": _SKETCHES},
            "/v1/sketches/{name}/{id}": {"get": _SKETCH},
            "/v1/overlaps": {"get": _OVERLAPS},
            "/v1/openapi.json": {"get": _OPENAPI},
            "/metrics": {"get": _METRICS},
            "/healthz": {"get": _HEALTH},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _PROBLEM, "Row": _ROW},
        },
    }
