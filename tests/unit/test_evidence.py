"""Evidence is written under the trace's own keys, byte for byte as the trace itself writes it."""

from typing import Any

import pytest

from holdfast.agent import evidence
from holdfast.agent.conversation import encode
from holdfast.domain.model import CheckResult
from holdfast.domain.ports import ModelReply, Observation, ObservationError, Usage
from holdfast.engine.journal import Record
from holdfast.trace.events import FIELDS, KINDS, Kind, compact


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_is_what_the_trace_writes_of_the_same_payload(kind: Kind) -> None:
    plain = [name for name, field in FIELDS[kind].items() if field.shape == "plain"]
    for some in (plain, plain[::2], plain[1::2], []):
        payload: dict[str, Any] = {name: f"{name} of {kind}" for name in some}
        payload |= {name: None for name in plain if name not in some}
        assert evidence._record(kind, **payload) == Record(
            kind=kind, body=encode(compact(kind, payload))
        )


def test_what_is_nothing_is_left_out_and_zero_is_not_nothing() -> None:
    reply = ModelReply(text="", usage=Usage(tokens_in=0, cost_nusd=None), model="m")
    said = evidence.llm_call("t001/model", reply, 0).body
    assert said == b'{"c":"t001/model","d":0,"f":"stop","i":0,"m":"m","o":0,"p":"t001/model"}'


def test_errors_have_the_traces_short_keys() -> None:
    seen = Observation(
        tool="t", success=False, output="", error=ObservationError(code="GONE", message="no file")
    )
    told = compact("tool_output", {"error": {"type": "GONE", "msg": "no file"}})
    assert encode(told)[1:-1] in evidence.tool_output("k", seen).body
    failed = CheckResult(command="make", verdict="fail", exit_code=2)
    told = compact("tool_output", {"error": {"type": "fail", "msg": "make"}})
    assert encode(told)[1:-1] in evidence.check_output("k", failed).body


def test_a_field_that_the_trace_does_not_know_is_refused() -> None:
    with pytest.raises(KeyError, match="nonsense"):
        evidence._record("decision", nonsense=1)
