"""What an event of a step points to, read from the journal for whoever is told of an incident.

Events name their step and copy none of its bytes; a failure's context needs them. Owns the way from
an event to the texts its step recorded, under the event's own keys. Does not own the choice of what
is shown (`trace.report`). Invariant: what leaves here passed the redactor that guesses, as every
event does; a step that cannot be read adds nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.engine.attempts import attempt_record
from holdfast.errors import HoldfastError
from holdfast.trace.describe import Limits, describe
from holdfast.trace.events import Event
from holdfast.trace.redact import Redactor, from_environment

if TYPE_CHECKING:
    from holdfast.app import App

_SHOWN = Limits(text_chars=1200)


class StepTexts:
    """Gives the texts of an event's step: output of a tool or check, reply of a model."""

    def __init__(self, app: App) -> None:
        self._app, self._redactor = app, Redactor(from_environment(os.environ))
        self._results = cache(self._read)

    def __call__(self, event: Event) -> Mapping[str, Any]:
        key = str(event.payload.get("step", ""))
        result = self._results(event.session_id).get(key)
        if not isinstance(result, dict):
            return {}
        if event.kind == "llm_call":
            said = result.get("reply", {}).get("text", "")
            return {"response": describe(said, self._redactor, limits=_SHOWN)} if said else {}
        if event.kind == "tool_output":
            streams = {
                "stdout": result.get("stdout") or result.get("output"),
                "stderr": result.get("stderr"),
            }
            return {name: self._redactor.text(text) for name, text in streams.items() if text}
        return {}

    def _read(self, session: str) -> dict[str, Any]:
        """The results of an attempt's steps by key; the newest generation stands."""
        try:
            record = self._app.engine.read(attempt_record, session, verify=False)
        except HoldfastError:
            return {}
        return {
            step.key: msgspec.json.decode(step.result)
            for step in record.steps
            if step.result is not None
        }
