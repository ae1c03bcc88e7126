"""Tools held to a task's `effects`: a write outside is refused, or found and taken back.

A call that names a path outside is refused before it is done. Whatever a call changed outside (by a
command's children, a link, another spelling) shows in the difference of two trees; then the whole
call is taken back, so that no tree of the journal ever holds it. Ignored files are a cache and in
no tree: only a named path protects them.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.adapters.capture import Redact
from holdfast.adapters.sandbox import WORKSPACE
from holdfast.adapters.tools.observing import failed
from holdfast.adapters.tools.paths import Refusal, place
from holdfast.domain.contract import allows, outside
from holdfast.domain.ports import Observation, Tool, ToolSpec, Workspace

NAMES_MAX = 10


def bounded(
    tools: Mapping[str, Tool], effects: Sequence[str] | None, redact: Redact
) -> Mapping[str, Tool]:
    """The same tools, those that write held to `effects`; None holds them to nothing."""
    if effects is None:
        return tools
    return {
        name: Bounded(tool, effects, redact) if tool.spec.writes else tool
        for name, tool in tools.items()
    }


class Bounded:
    """A `Tool` that writes only what its task may write."""

    def __init__(self, tool: Tool, effects: Sequence[str], redact: Redact) -> None:
        self._tool, self._effects, self._redact = tool, effects, redact

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    async def call(self, arguments: Mapping[str, Any], workspace: Workspace) -> Observation:
        path = arguments.get("path")
        if isinstance(path, str):
            name = await asyncio.to_thread(_resolved, workspace, path)
            if not allows(self._effects, name):
                return self._refused("PATH_OUTSIDE_EFFECTS", f"{name} is not written")
        before = await asyncio.to_thread(workspace.stage)
        observation = await self._tool.call(arguments, workspace)
        names = await asyncio.to_thread(take_back, workspace, before, self._effects)
        if not names:
            return observation
        said = f"it wrote {listed(names)}; all that it wrote was taken back"
        return self._refused("OUTSIDE_EFFECTS", said, observation.output)

    def _refused(self, code: str, what: str, output: str = "") -> Observation:
        said = f"{what}: {clause(self._effects)}"
        return failed(self.spec.name, self._redact, code, said, output=output)


def take_back(workspace: Workspace, before: str, effects: Sequence[str] | None) -> list[str]:
    """What was written outside `effects` since tree `before`; if anything was, all is undone."""
    if effects is None:
        return []
    names = outside(effects, (name for _, name in workspace.changed(before, workspace.stage())))
    if names:
        workspace.restore(before)
    return names


def clause(effects: Sequence[str]) -> str:
    """The clause as a failure names it."""
    return f"effects of this task are {', '.join(effects) or 'nothing'}"


def listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return ", ".join(names[:NAMES_MAX]) + more


def _resolved(workspace: Workspace, path: str) -> str:
    """The path below the workspace with its links followed; as it is spelled where it is new."""
    try:
        with place(workspace.root, path) as at:
            return at.relative
    except (Refusal, OSError):
        return posixpath.normpath(path.removeprefix(f"{WORKSPACE}/"))
