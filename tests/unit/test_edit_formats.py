"""Each model is shown one way to edit, and is led out of it when it keeps failing."""

import pytest

from holdfast.adapters.tools import builtin_tools, check_arguments
from holdfast.agent.edits import (
    REFUSED_MAX,
    TABLE,
    Edits,
    Format,
    format_of,
    offered,
    shown_format,
)
from holdfast.domain.ports import Observation, ObservationError

TOOLS = [tool.spec for tool in builtin_tools(redact=lambda text: text).values()]


@pytest.mark.parametrize(
    ("model", "format"),
    [
        ("ollama:qwen3:0.6b", "whole"),
        ("ollama:llama3.2:1b-instruct-q4", "whole"),
        ("ollama:qwen3:1.7b", "whole"),
        ("ollama:qwen3:4B", "whole"),
        ("ollama:qwen3:14b", "search_replace"),
        ("ollama:qwen3:30b", "search_replace"),
        ("openai:gpt-4.1-mini", "diff"),
        ("openai:o3", "diff"),
        ("openai:gpt-5-mini", "search_replace"),
        ("anthropic:claude-sonnet-5-5", "search_replace"),
        ("scripted:/tmp/x.json", "search_replace"),
    ],
)
def test_the_table_gives_every_model_one_format(model: str, format: Format) -> None:
    assert format_of(model) == format
    assert TABLE[-1][0] == "*", "the last row matches everything"


@pytest.mark.parametrize("format", ["whole", "search_replace", "diff"])
def test_a_model_is_shown_its_format_and_no_other(format: Format) -> None:
    shown = {tool.name: tool for tool in offered(TOOLS, format)}
    assert shown_format(list(shown.values())) == format
    assert "write_file" in shown
    assert ("edit_file" in shown) == (format != "whole")
    if format == "whole":
        return
    edits = {"path": "a", "edits": [{"search": "a", "replace": "b"}]}
    diff = {"path": "a", "diff": "@@ -1 +1 @@\n-a\n+b\n"}
    right, wrong = (diff, edits) if format == "diff" else (edits, diff)
    assert check_arguments(shown["edit_file"], right) == []
    assert check_arguments(shown["edit_file"], wrong)
    assert check_arguments(shown["edit_file"], {"path": "a"})


def seen(tool: str, code: str = "") -> Observation:
    error = ObservationError(code=code, message="no") if code else None
    return Observation(tool=tool, success=not code, output="", error=error)


def test_refusals_are_counted_for_each_file_and_forgotten_after_a_success() -> None:
    edits = Edits(offered(TOOLS, "diff"))
    refused = seen("edit_file", "EDIT_NOT_FOUND")
    assert edits.note("edit_file", "a", refused) is None
    assert edits.note("edit_file", "b", refused) is None
    assert edits.note("write_file", "a", seen("write_file")) is None
    assert edits.note("edit_file", "a", refused) is None
    assert edits.note("run_command", "a", seen("run_command", "EDIT_NOT_FOUND")) is None
    assert edits.note("edit_file", "a", seen("edit_file", "NOT_FOUND")) is None
    found = edits.note("edit_file", "a", refused)
    assert found is not None
    assert (found.path, found.source, found.refused) == ("a", "diff", REFUSED_MAX)
    assert edits.note("edit_file", "a", refused) is None, "said once"
