"""The built-in tools: six hands on one workspace, made together by `builtin_tools`.

Invariants: a tool never raises for what a model asked; its observation is bounded, deterministic
and redacted; no path and no command leaves the workspace.
"""

from __future__ import annotations

from holdfast.adapters.capture import Redact
from holdfast.adapters.tools.arguments import check_arguments
from holdfast.adapters.tools.command import RunCommand
from holdfast.adapters.tools.files import EditFile, ListDirectory, ReadFile, WriteFile
from holdfast.adapters.tools.observing import Limits
from holdfast.adapters.tools.search import SearchFiles
from holdfast.config import DEFAULTS, Settings
from holdfast.domain.ports import Tool

__all__ = ["builtin_tools", "check_arguments"]


def builtin_tools(*, redact: Redact, settings: Settings = DEFAULTS) -> dict[str, Tool]:
    """The built-in tools by name, in the order in which models are told of them."""
    limits = Limits(
        redact=redact,
        file_bytes_max=settings.file_bytes_max,
        output_bytes_max=settings.output_bytes_max,
        command_s=settings.command_s,
    )
    kinds = (ReadFile, WriteFile, EditFile, ListDirectory, SearchFiles, RunCommand)
    tools: list[Tool] = [kind(limits) for kind in kinds]
    return {tool.spec.name: tool for tool in tools}
