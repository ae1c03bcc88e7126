"""What proves a merge of conflicting work: beside the task's own checks, that no marker is left.

A merge task's files are those in conflict, and its base holds their conflict markers. Markers are
looked for by this code, in these files alone; a conflict without markers (a file that one side
deleted) is proven by the checks of both sides.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import msgspec

from holdfast.adapters.tools.paths import Refusal, place, read_bytes
from holdfast.agent import evidence
from holdfast.agent.conversation import encode
from holdfast.agent.journal import Effectful, Journal, Performed
from holdfast.domain.model import CheckResult
from holdfast.domain.ports import Workspace

COMMAND = "no conflict markers are left"
FILE_BYTES_MAX = 50_000_000
_MARKER = re.compile(rb"^(?:<{7}|>{7})(?: .*)?$", re.MULTILINE)


async def unmarked(
    journal: Journal, workspace: Workspace, files: Sequence[str], *, key: str
) -> CheckResult:
    """Look for conflict markers in the files that had them, as a step of the round `key`."""
    name = f"{key}/markers"

    async def perform() -> Performed:
        left = await asyncio.to_thread(_marked, workspace, files)
        result = CheckResult(
            command=COMMAND,
            verdict="fail" if left else "pass",
            note=f"left in {', '.join(left)}" if left else "",
        )
        return Performed(result=encode(result), events=(evidence.check_output(name, result),))

    content = await journal.step(
        Effectful(
            key=name,
            kind="check",
            effect="pure",
            request=encode({"check": COMMAND, "files": list(files)}),
            perform=perform,
        )
    )
    return msgspec.json.decode(content, type=CheckResult)


def _marked(workspace: Workspace, files: Sequence[str]) -> list[str]:
    """Where markers are: `path:line` of the first of each file. A file that is gone has none."""
    found = []
    for path in files:
        try:
            with place(workspace.root, path) as at:
                if at.kind() is None:
                    continue
                content = read_bytes(at, bytes_max=FILE_BYTES_MAX)
        except Refusal as refusal:
            if refusal.code != "FILE_NOT_FOUND":
                found.append(f"{path} ({refusal.message})")
            continue
        marker = _MARKER.search(content)
        if marker is not None:
            line = content.count(b"\n", 0, marker.start()) + 1
            found.append(f"{path}:{line}")
    return found
