"""OTLP's protobuf encoding of a trace request, from its JSON encoding.

Owns the field numbers of the messages that `otlp` uses and the four wire types they need. Does not
own names or meaning. Source: opentelemetry-proto, trace/v1 and common/v1; the tests decode with the
official generated classes.
"""

from __future__ import annotations

import struct
from typing import Any, Literal, assert_never

Type = Literal["text", "hex", "varint", "fixed64", "double", "bool"]

# message -> key of the JSON encoding -> field number and type, or the name of another message
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "Request": {"resourceSpans": (1, "ResourceSpans")},
    "ResourceSpans": {"resource": (1, "Resource"), "scopeSpans": (2, "ScopeSpans")},
    "Resource": {"attributes": (1, "KeyValue")},
    "ScopeSpans": {"scope": (1, "Scope"), "spans": (2, "Span")},
    "Scope": {"name": (1, "text"), "version": (2, "text")},
    "Span": {
        "traceId": (1, "hex"),
        "spanId": (2, "hex"),
        "parentSpanId": (4, "hex"),
        "name": (5, "text"),
        "kind": (6, "varint"),
        "startTimeUnixNano": (7, "fixed64"),
        "endTimeUnixNano": (8, "fixed64"),
        "attributes": (9, "KeyValue"),
        "events": (11, "Event"),
        "status": (15, "Status"),
    },
    "Event": {"timeUnixNano": (1, "fixed64"), "name": (2, "text"), "attributes": (3, "KeyValue")},
    "Status": {"code": (3, "varint")},
    "KeyValue": {"key": (1, "text"), "value": (2, "AnyValue")},
    "AnyValue": {
        "stringValue": (1, "text"),
        "boolValue": (2, "bool"),
        "intValue": (3, "varint"),
        "doubleValue": (4, "double"),
        "arrayValue": (5, "ArrayValue"),
    },
    "ArrayValue": {"values": (1, "AnyValue")},
}


def encode(request: dict[str, Any]) -> bytes:
    """The request as `application/x-protobuf`. A key the table does not know raises KeyError."""
    return _message("Request", request)


def _message(name: str, value: dict[str, Any]) -> bytes:
    parts: list[bytes] = []
    for key, item in value.items():
        number, kind = _MESSAGES[name][key]
        for one in item if isinstance(item, list) else [item]:
            if kind in _MESSAGES:
                parts.append(_sized(number, _message(kind, one)))
            else:
                parts.append(_field(number, kind, one))  # type: ignore[arg-type]  # the table's own words
    return b"".join(parts)


def _field(number: int, kind: Type, value: Any) -> bytes:
    match kind:
        case "text":
            return _sized(number, str(value).encode("utf-8", "replace"))
        case "hex":
            return _sized(number, bytes.fromhex(value))
        case "varint":
            return _varint(number << 3) + _varint(int(value) & (1 << 64) - 1)
        case "bool":
            return _varint(number << 3) + _varint(int(value))
        case "fixed64":
            return _varint(number << 3 | 1) + struct.pack("<Q", int(value))
        case "double":
            return _varint(number << 3 | 1) + struct.pack("<d", value)
    assert_never(kind)


def _sized(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
