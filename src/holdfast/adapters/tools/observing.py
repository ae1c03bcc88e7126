"""From what a tool did to what a model reads: one place that bounds, redacts and codes answers.

Invariant: nothing leaves a tool unredacted. The redactor runs on whole texts before they are cut.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from holdfast.adapters.capture import Redact
from holdfast.adapters.tools.paths import Refusal
from holdfast.domain.ports import Observation, ObservationError, ToolSpec, Workspace
from holdfast.frozen import frozen

_MARK = re.compile(r"\[redacted:[^\]\n]*\]")


@frozen
class Limits:
    """`file_bytes_max` bounds files read and written, `output_bytes_max` what a model is shown."""

    redact: Redact
    file_bytes_max: int
    output_bytes_max: int
    command_s: float


@frozen
class Answer:
    """A success before it is an observation; `output` is redacted already."""

    output: str
    data: Mapping[str, Any] = field(default_factory=dict)


class FileTool(ABC):
    """A tool that touches files, off the event loop; a subclass says what it `work`s."""

    spec: ToolSpec

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    async def call(self, arguments: Mapping[str, Any], workspace: Workspace) -> Observation:
        return await observed(
            self.spec.name, self._limits.redact, lambda: self.work(arguments, workspace.root)
        )

    @abstractmethod
    def work(self, arguments: Mapping[str, Any], root: Path) -> Answer:
        """The answer to a call; what it cannot do it refuses."""


async def observed(tool: str, redact: Redact, work: Callable[[], Answer]) -> Observation:
    """Run `work` off the event loop; a Refusal or an OSError becomes a coded observation.

    Cancelled, it ends only after `work` did: a thread must not write after its attempt is over.
    """
    running = asyncio.create_task(asyncio.to_thread(work))
    try:
        answer = await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
    except Refusal as refusal:
        return failed(tool, redact, refusal.code, refusal.message)
    except UnicodeError:
        return failed(tool, redact, "INVALID_ARGUMENTS", "an argument is not valid text")
    except OSError as error:
        return failed(tool, redact, "IO_ERROR", error.strerror or type(error).__name__)
    return Observation(tool=tool, success=True, output=answer.output, data=answer.data)


def failed(
    tool: str,
    redact: Redact,
    code: str,
    message: str,
    *,
    output: str = "",
    data: Mapping[str, Any] | None = None,
) -> Observation:
    """A failure. `output`, redacted already, precedes the message in what the model reads."""
    said = redact(message).encode(errors="backslashreplace").decode()
    text = "\n".join(part for part in (output, f"{code}: {said}") if part)
    error = ObservationError(code=code, message=said)
    return Observation(tool=tool, success=False, output=text, error=error, data=data or {})


def decoded(data: bytes, name: str) -> str:
    """File content as text, line endings untouched. Refused as binary when it is not UTF-8."""
    if b"\0" in data:
        raise Refusal("BINARY_FILE", f"{name} is binary")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refusal("BINARY_FILE", f"{name} is not UTF-8 text") from error


def has_mark(text: str) -> bool:
    return _MARK.search(text) is not None


def refuse_new_marks(before: str, after: str) -> None:
    """Refuse text that carries redaction marks the file did not hold: the secret would be lost."""
    known = set(_MARK.findall(before))
    fresh = [mark for mark in _MARK.findall(after) if mark not in known]
    if fresh:
        raise Refusal(
            "REDACTED_CONTENT",
            f"the new text holds {fresh[0]}, which stands for a secret that was hidden from you; "
            "edit the lines around it with edit_file instead",
        )
