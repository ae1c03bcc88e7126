"""Tool arguments are checked against their schema, with sentences a model can act on."""

from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.adapters.tools import builtin_tools, check_arguments
from holdfast.domain.ports import ToolSpec


def spec(**properties: Mapping[str, Any]) -> ToolSpec:
    parameters = {"type": "object", "properties": properties, "additionalProperties": False}
    return ToolSpec(name="t", description="", parameters=parameters, effect="pure")


TOOLS = builtin_tools(redact=lambda text: text)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {"path": "a", "start_line": 1, "end_line": 2.0}),
        ("write_file", {"path": "a", "content": "", "create_dirs": False}),
        ("edit_file", {"path": "a", "edits": [{"search": "x", "replace": ""}]}),
        ("list_directory", {}),
        ("search_files", {"pattern": "x", "max_results": 1000}),
        ("run_command", {"command": ["a", "b"]}),
        ("run_command", {"command": "a | b", "timeout_ms": 1}),
    ],
)
def test_good_arguments_have_no_problems(tool: str, arguments: dict[str, Any]) -> None:
    assert check_arguments(TOOLS[tool].spec, arguments) == []


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"),
    [
        ("read_file", [], "arguments must be of type object, not array"),
        ("read_file", {}, "arguments lacks 'path'"),
        ("read_file", {"path": ""}, "path must have at least 1 characters"),
        ("read_file", {"path": 1}, "path must be of type string, not integer"),
        ("read_file", {"path": None}, "path must be of type string, not null"),
        ("read_file", {"path": "a", "start_line": 0}, "start_line must be at least 1"),
        ("read_file", {"path": "a", "start_line": True}, "must be of type integer, not boolean"),
        ("read_file", {"path": "a", "start_line": 1.5}, "must be of type integer, not number"),
        ("read_file", {"pth": "a"}, "arguments has no 'pth'; did you mean 'path'?"),
        ("read_file", {"path": "a", "zz": 1}, "known: ['end_line', 'path', 'start_line']"),
        ("search_files", {"pattern": "a", "max_results": 1001}, "must be at most 1000"),
        ("search_files", {"pattern": "a" * 1001}, "must have at most 1000 characters"),
        ("edit_file", {"path": "a", "edits": []}, "edits needs at least 1 items"),
        ("edit_file", {"path": "a", "edits": [{"search": "x"}]}, "edits[0] lacks 'replace'"),
        ("run_command", {"command": 5}, "command must be of type string or array, not integer"),
        ("run_command", {"command": ["a", 5]}, "command[1] must be of type string"),
    ],
)
def test_bad_arguments_are_named(tool: str, arguments: Any, problem: str) -> None:
    assert problem in "; ".join(check_arguments(TOOLS[tool].spec, arguments))


def test_choices_are_listed() -> None:
    assert check_arguments(spec(a={"enum": ["x", "y"]}), {"a": "z"}) == [
        "a must be one of 'x', 'y'"
    ]


def test_a_schema_keyword_nobody_checks_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="format"):
        check_arguments(spec(a={"type": "string", "format": "date"}), {"a": "x"})


def test_every_tool_declares_an_effect_and_only_writers_write() -> None:
    effects = {name: (tool.spec.effect, tool.spec.writes) for name, tool in TOOLS.items()}
    assert effects == {
        "read_file": ("pure", False),
        "write_file": ("idempotent", True),
        "edit_file": ("idempotent", True),
        "list_directory": ("pure", False),
        "search_files": ("pure", False),
        "run_command": ("compensable", True),
    }
