"""The interface as an OpenAPI document, which tests hold against the application."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from panprivacy._version import VERSION
from panprivacy.service.outgoing.exports import WRITERS
from panprivacy.service.outgoing.records import FIELDS, MOMENT, NULLABLE
from panprivacy.sources import MEDIA_TYPES

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
    """One column of a row: its type and its meaning."""
    kind, says = FIELDS[name]
    typed = _TYPES[kind]
    if name in NULLABLE:
        typed = {"anyOf": [*typed.get("anyOf", [typed]), {"type": "null"}]}
    return {**typed, "description": says}


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
_DURABLE: _Object = {
    "name": "durable",
    "in": "query",
    "description": "1: answer after the next sealed checkpoint that holds the batch is on disk.",
    "schema": {"type": "integer", "enum": [0, 1]},
}


def document() -> _Object:
    """The OpenAPI 3.1 document of a service."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "panprivacy",
            "version": VERSION,
            "description": "Takes in events, keeps noise, and serves what is released.",
        },
        "security": [{"token": []}],
        "paths": {
            "/v1/streams": {"get": _streams()},
            "/v1/streams/{name}/updates": {"post": _updates()},
            "/v1/streams/{name}/release": {"post": _release()},
            "/v1/releases": {"get": _releases()},
            "/v1/openapi.json": {"get": _openapi()},
            "/metrics": {"get": _metrics()},
            "/healthz": {"get": _health()},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _PROBLEM, "Row": _ROW},
        },
    }


def _updates() -> _Object:
    body = {"schema": {"type": "string", "format": "binary"}}
    return {
        "operationId": "update",
        "summary": "Count a batch of events: all of its rows, or none.",
        "parameters": [_STREAM, _BATCH_ID, _DURABLE],
        "requestBody": {"required": True, "content": dict.fromkeys(MEDIA_TYPES, body)},
        "responses": {
            "200": {"description": "Counted, and on disk."},
            "202": {"description": "Counted, in memory."},
            **_problems(400, 401, 403, 404, 408, 413, 415, 429, 500, 501, 503),
        },
    }


def _release() -> _Object:
    released = {"type": "object", "properties": {"released": {"type": "boolean"}}}
    return {
        "operationId": "release",
        "summary": "Make a release now; it is paid for out of those of the window.",
        "parameters": [_STREAM],
        "responses": {
            "201": _json("Released; it is among the releases.", released),
            **_problems(400, 401, 403, 404, 409, 500, 503),
        },
    }


def _releases() -> _Object:
    rows = {"type": "array", "items": {"$ref": "#/components/schemas/Row"}}
    content: _Object = {kind: {"schema": {"type": "string"}} for kind in WRITERS}
    content["application/json"] = {"schema": rows}
    return {
        "operationId": "releases",
        "summary": "The newest numbers, oldest first.",
        "parameters": [
            _query("stream", "of this stream alone", {"type": "string"}),
            _query("since", "published then or later", {"type": "string", "format": "date-time"}),
            _query("before", "published before then", {"type": "string", "format": "date-time"}),
            _query("limit", "so many", {"type": "integer", "minimum": 1, "maximum": 100_000}),
            _query("format", "instead of Accept", {"enum": ["json", "csv", "parquet"]}),
        ],
        "responses": {
            "200": {"description": "The numbers.", "content": content},
            **_problems(400, 401, 403, 404, 406, 500, 503),
        },
    }


def _streams() -> _Object:
    return {
        "operationId": "streams",
        "summary": "The streams, and what is promised to their users.",
        "responses": {
            "200": _json("The streams.", {"type": "array", "items": {"type": "object"}}),
            **_problems(400, 401, 403, 500, 503),
        },
    }


def _metrics() -> _Object:
    text = {"schema": {"type": "string"}}
    return {
        "operationId": "metrics",
        "summary": "The newest numbers and the health of the service, for Prometheus.",
        "responses": {
            "200": {
                "description": "Metrics.",
                "content": {"text/plain": text, "application/openmetrics-text": text},
            },
            **_problems(400, 401, 403, 500, 503),
        },
    }


def _health() -> _Object:
    status = {"type": "object", "required": ["status", "version", "troubles"]}
    return {
        "operationId": "health",
        "summary": "Whether everything works.",
        "security": [],
        "responses": {
            "200": _json("It does.", status),
            "503": _json("It does not, or waits for its checkpoint to be restored.", status),
        },
    }


def _openapi() -> _Object:
    return {
        "operationId": "openapi",
        "summary": "This document.",
        "security": [],
        "responses": {"200": _json("The document.", {"type": "object"})},
    }


def _query(name: str, says: str, schema: _Object) -> _Object:
    return {"name": name, "in": "query", "description": says, "schema": schema}


def _json(says: str, schema: _Object) -> _Object:
    return {"description": says, "content": {"application/json": {"schema": schema}}}


def _problems(*statuses: int) -> _Object:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        str(status): {
            "description": _SAYS[status],
            "content": {"application/problem+json": {"schema": schema}},
        }
        for status in statuses
    }


_SAYS = {
    400: "The request is wrong; nothing was counted.",
    401: "No known token.",
    403: "The token may not do this.",
    404: "There is no such stream.",
    406: "The Accept header lets no format through.",
    408: "The body did not arrive in time.",
    409: "No release is left, or the stream releases on a clock.",
    413: "The body is too long.",
    415: "The body has another format.",
    429: "Too much is under way; come again.",
    500: "A fault of the service.",
    501: "The Transfer-Encoding is not chunked alone.",
    503: "Not now; come again.",
}
