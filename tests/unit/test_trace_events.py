"""Stored keys and readable keys: a bijection, complete, and smaller."""

import json
import string
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.trace.describe import describe
from holdfast.trace.events import FIELDS, KINDS, Event, Kind, Shape, compact, readable
from holdfast.trace.redact import Redactor
from holdfast.trace.store import to_json

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.text(max_size=10), st.floats()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(string.ascii_letters, max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def payload_of(kind: Kind, value: Any) -> dict[str, Any]:
    described = describe(value, Redactor())
    shapes: dict[Shape, Any] = {
        "plain": 7,
        "error": {"type": "E", "msg": "m"},
        "location": {"file": "f", "line": 1, "function": "g"},
        "value": described,
        "values": {"name": described},
    }
    return {name: shapes[field.shape] for name, field in FIELDS[kind].items()}


@given(st.sampled_from(KINDS), VALUES)
def test_what_is_stored_reads_back_as_it_was(kind: Kind, value: Any) -> None:
    payload = payload_of(kind, value)
    stored = json.loads(to_json(compact(kind, payload)))
    found = readable(kind, stored)
    found.pop("tokens_total", None)
    assert found == payload


@pytest.mark.parametrize("kind", KINDS)
def test_short_keys_are_unique_and_short(kind: Kind) -> None:
    shorts = [field.short for field in FIELDS[kind].values()]
    assert len(set(shorts)) == len(shorts)
    assert all(len(short) <= 2 for short in shorts)


def test_there_are_five_kinds_and_no_more() -> None:
    assert sorted(KINDS) == ["decision", "failure", "git_diff", "llm_call", "tool_output"]
    assert get_args(Kind) == KINDS
    assert list(FIELDS) == list(KINDS)


def test_none_is_left_out_and_an_unknown_key_refused() -> None:
    assert compact("decision", {"question": "q", "context": None}) == {"q": "q"}
    with pytest.raises(KeyError):
        compact("decision", {"nonsense": 1})
    assert readable("decision", {"zz": 1}) == {"zz": 1}


def test_the_total_is_computed_only_when_both_counts_are_known() -> None:
    both = readable("llm_call", {"m": "x", "i": 2, "o": 3})
    assert both["tokens_total"] == 5
    assert "tokens_total" not in readable("llm_call", {"m": "x", "i": 2})
    assert compact("llm_call", both) == {"m": "x", "i": 2, "o": 3}


def test_a_fixed_scenario_is_stored_in_at_most_60_percent_of_plain_json() -> None:
    redactor = Redactor()
    values = {"order": {"id": 7, "items": [1, 2, 3]}, "price": None, "total": 6, "name": "x" * 20}
    scenario: list[tuple[Kind, dict[str, Any]]] = [
        (
            "failure",
            {
                "error": {"type": "TypeError", "msg": "unsupported operand"},
                "location": {"file": "/srv/app.py", "line": 7, "function": "total"},
                "origin": "main",
                "locals": {name: describe(value, redactor) for name, value in values.items()},
            },
        ),
        (
            "llm_call",
            {
                "call_id": "0123456789abcdef",
                "model": "m",
                "tokens_in": 100,
                "tokens_out": 20,
                "duration_ms": 1200,
                "prompt": describe([{"role": "user", "content": "hello"}], redactor),
                "response": describe("hi", redactor),
            },
        ),
        (
            "git_diff",
            {
                "turn_number": 1,
                "files_changed": 1,
                "lines_added": 2,
                "lines_removed": 0,
                "diff": "+a",
                "truncated": False,
            },
        ),
    ]
    stored = plain = 0
    for kind, payload in scenario:
        event = Event("0123456789abcdef", "0123456789abcdef", 1_800_000_000_000, kind, payload)
        row = [event.id, event.session_id, event.ts, event.kind]
        stored += len(to_json(row)) + len(to_json(compact(kind, payload)))
        readable_total = readable(kind, compact(kind, payload))
        moment = datetime.fromtimestamp(event.ts / 1000, UTC).isoformat()
        plain += len(json.dumps({**event.as_json(), "ts": moment, "payload": readable_total}))
    assert stored <= 0.6 * plain, f"{stored} of {plain}"
