"""What a reply asks for: calls in every shape, answers, and what must be said again."""

import json

import pytest

from holdfast.agent.actions import CALLS_MAX, Actions, parse, read_object
from holdfast.domain.ports import ModelReply, ToolCall, ToolSpec

READ = ToolSpec(name="read_file", description="", parameters={"required": ["path"]}, effect="pure")
TOOLS = {"read_file": READ}


def problems(spec: ToolSpec, arguments: object) -> list[str]:
    missing = [name for name in spec.parameters["required"] if name not in arguments]  # type: ignore[operator]
    return [f"{name} is missing" for name in missing]


def read(text: str = "", *calls: ToolCall, finish: str = "stop") -> Actions:
    reply = ModelReply(text=text, calls=calls, finish_reason=finish)  # type: ignore[arg-type]
    return parse(reply, TOOLS, problems)


def native(arguments: str, name: str = "read_file") -> ToolCall:
    return ToolCall(id="1", name=name, arguments=arguments)


def test_a_native_call_is_ready_to_be_performed() -> None:
    said = read("Let me look.", native('{"path": "a"}'))
    assert (said.kind, said.answer) == ("calls", "Let me look.")
    assert said.calls[0].arguments == {"path": "a"}
    assert said.calls[0].problem == ""


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (native("{}", "fly"), "UNKNOWN_TOOL: there is no tool 'fly'; tools: read_file"),
        (native("path=a"), "INVALID_ARGUMENTS: the arguments are not one JSON object: path=a"),
        (native("[1]"), "not one JSON object"),
        (native("{}"), "INVALID_ARGUMENTS: path is missing"),
        (native(""), "INVALID_ARGUMENTS: path is missing"),
        (native("[" * 100_000), "not one JSON object"),
    ],
)
def test_a_wrong_call_is_answered_with_its_error_before_anything_happens(
    call: ToolCall, words: str
) -> None:
    said = read("", call)
    assert words in said.calls[0].problem
    assert said.calls[0].arguments == {}


SHAPES = [
    '{"tool": "read_file", "arguments": {"path": "a"}}',
    '{"name": "read_file", "parameters": {"path": "a"}}',
    '{"function": {"name": "read_file", "arguments": {"path": "a"}}}',
    '{"name": "read_file", "arguments": "{\\"path\\": \\"a\\"}"}',
    '{"name": "read_file", "args": {"path": "a"},}',
    'I look first.\n```json\n{"tool": "read_file", "arguments": {"path": "a"}}\n```\nThen I go on.',
    '```\n{"tool": "read_file", "arguments": {"path": "a"}}\n```',
    '```tool_call\n{"tool": "read_file", "arguments": {"path": "a"}}',
    '[{"tool": "read_file", "arguments": {"path": "a"}}]',
    '<think>{"tool": "fly"}</think>{"tool": "read_file", "arguments": {"path": "a"}}',
]


@pytest.mark.parametrize("text", SHAPES)
def test_a_call_in_text_is_read_in_every_usual_shape(text: str) -> None:
    said = read(text)
    assert said.kind == "calls"
    assert [(one.call.name, one.arguments, one.problem) for one in said.calls] == [
        ("read_file", {"path": "a"}, "")
    ]
    assert said.calls[0].call.id == "text_0"


def test_several_calls_in_text_keep_their_order() -> None:
    blocks = "\n".join(
        f'```json\n{{"tool": "read_file", "arguments": {{"path": "{name}"}}}}\n```' for name in "ab"
    )
    assert [one.arguments["path"] for one in read(blocks).calls] == ["a", "b"]


def test_a_call_without_arguments_counts_only_for_a_known_tool() -> None:
    assert read('{"tool": "read_file"}').calls[0].problem == "INVALID_ARGUMENTS: path is missing"
    assert read('{"name": "someone"}').kind == "answer"
    assert read('{"result": 3}').kind == "answer"
    assert read("[1, 2]").kind == "answer"
    assert read("```json\n{nothing\n```").kind == "answer"


def test_an_answer_is_the_text_without_think_blocks() -> None:
    said = read("<thinking>hm</thinking>\nDone. <THINK>more")
    assert (said.kind, said.answer) == ("answer", "Done.")
    assert read("<think>only thoughts").kind == "empty"
    assert read("  ").kind == "empty"


def test_a_cut_reply_does_nothing_unless_its_calls_came_whole() -> None:
    text = '```json\n{"tool": "read_file", "arguments": {"path": "a"}}\n```'
    assert read(text, finish="length").kind == "cut"
    assert read("", native('{"path": "a"}'), finish="length").kind == "calls"


def test_more_calls_than_allowed_are_left_out() -> None:
    calls = [native('{"path": "a"}')] * (CALLS_MAX + 1)
    assert len(read("", *calls).calls) == CALLS_MAX
    assert len(read("", *calls[1:]).calls) == CALLS_MAX


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ('Sure: {"a": 1} done', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('{"a": [1, 2,],}', {"a": [1, 2]}),
        ('{"a": "x\ny"}', {"a": "x\ny"}),
        (json.dumps('{"a": 1}'), {"a": 1}),
        ("{'a': 1}", None),
        ("[1]", None),
        ("3", None),
    ],
)
def test_only_repairs_that_keep_the_meaning_are_made(text: str, value: object) -> None:
    assert read_object(text) == value
