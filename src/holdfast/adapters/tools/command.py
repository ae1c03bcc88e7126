"""The tool that runs a command behind the workspace's sandbox.

Effect class: compensable. Without network a command can change nothing but the workspace, so its
compensation is restoring `tree_before`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.adapters.tools.arguments import takes
from holdfast.adapters.tools.observing import Limits, failed
from holdfast.domain.ports import CommandResult, Observation, ToolSpec, Workspace
from holdfast.errors import Refused

_FACTS = ("exit_code", "signal", "timed_out", "stdout_bytes", "stderr_bytes")


class RunCommand:
    """A command's exit and what it printed, both ends of each stream."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._timeout_ms_max = int(limits.command_s * 1000)

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name="run_command",
            description=(
                "Run a command in the workspace, without network. A string is run by /bin/sh, so "
                "pipes work; a list of words is run as it is. It has no terminal and no input."
            ),
            parameters=takes(
                ["command"],
                command={
                    "type": ["string", "array"],
                    "items": {"type": "string"},
                    "description": "command line, or list of words",
                },
                timeout_ms={
                    "type": "integer",
                    "minimum": 1,
                    "description": f"default and most: {self._timeout_ms_max}",
                },
            ),
            effect="compensable",
            writes=True,
        )

    async def call(self, arguments: Mapping[str, Any], workspace: Workspace) -> Observation:
        limit_ms = min(int(arguments.get("timeout_ms", self._timeout_ms_max)), self._timeout_ms_max)
        name, redact = "run_command", self._limits.redact
        try:
            result = await workspace.sandbox.run(
                arguments["command"], root=workspace.root, timeout_s=limit_ms / 1000
            )
        except Refused as refused:
            return failed(name, redact, "COMMAND_BLOCKED", refused.message)
        output = _told(result)
        data = {fact: getattr(result, fact) for fact in _FACTS}
        if result.missing_program:
            code, said = "PROGRAM_NOT_FOUND", "there is no such program here"
        elif result.timed_out:
            said = f"the command was ended after {limit_ms} ms with everything it started"
            code = "TIMEOUT"
        elif result.exit_code != 0:
            ended = "" if result.signal is None else f"by signal {result.signal}"
            said = f"the command ended {ended or f'with exit code {result.exit_code}'}"
            code = "COMMAND_FAILED"
        else:
            return Observation(tool=name, success=True, output=output or "[no output]", data=data)
        return failed(name, redact, code, said, output=output, data=data)


def _told(result: CommandResult) -> str:
    """Both streams as the sandbox redacted and bounded them; times would make answers differ."""
    parts = [result.stdout.rstrip("\n")]
    if result.stderr.strip():
        parts += ["[stderr]", result.stderr.rstrip("\n")]
    return "\n".join(part for part in parts if part)
