"""Calls of every kind: read, repaired where that changes nothing, else answered; never guessed."""

import json
from typing import Any

import pytest

from holdfast.adapters.tools import builtin_tools, check_arguments
from holdfast.agent.actions import CALLS_MAX, Actions, parse, read_object
from holdfast.domain.ports import FinishReason, ModelReply, ToolCall

TOOLS = {name: tool.spec for name, tool in builtin_tools(redact=lambda text: text).items()}
READ = {"path": "a.py"}
READ_JSON = json.dumps({"name": "read_file", "arguments": READ})


def read(text: str = "", *calls: tuple[str, str], finish: FinishReason = "stop") -> Actions:
    native = tuple(
        ToolCall(id=f"call_{at}", name=name, arguments=arguments)
        for at, (name, arguments) in enumerate(calls)
    )
    return parse(ModelReply(text=text, calls=native, finish_reason=finish), TOOLS, check_arguments)


def called(actions: Actions) -> list[tuple[str, dict[str, Any]]]:
    assert actions.kind == "calls", actions
    assert [call.problem for call in actions.calls] == [""] * len(actions.calls)
    return [(call.call.name, dict(call.arguments)) for call in actions.calls]


def problem(actions: Actions) -> str:
    [call] = actions.calls
    assert call.problem
    return call.problem


WRITTEN = {
    "a JSON fence": f"I look.\n```json\n{READ_JSON}\n```",
    "a tool fence": '```tool\n{"tool": "read_file", "args": {"path": "a.py"}}\n```',
    "bare JSON": READ_JSON,
    "OpenAI's own shape": json.dumps({"tool_calls": [{"function": json.loads(READ_JSON)}]}),
    "arguments encoded twice": json.dumps({"name": "read_file", "arguments": json.dumps(READ)}),
    "a tool_call tag": f"Let me look.<tool_call>\n{READ_JSON}\n</tool_call>",
    "a tool_call tag that a stop word cut": f"<tool_call>\n{READ_JSON}\n",
    "a tool_call tag with a trailing comma": (
        '<tool_call>{"name": "read_file", "arguments": {"path": "a.py",},}</tool_call>'
    ),
    "function and parameters": (
        "<tool_call>\n<function=read_file>\n<parameter=path>\na.py\n</parameter>\n</function>\n"
        "</tool_call>"
    ),
    "function without the tag": "<function=read_file><parameter=path>a.py</parameter></function>",
    "function with JSON": '<function=read_file>{"path": "a.py"}</function>',
    "invoke": (
        '<function_calls>\n<invoke name="read_file">\n<parameter name="path">a.py</parameter>\n'
        "</invoke>\n</function_calls>"
    ),
    "invoke with a prefix": (
        '<x:invoke name="read_file"><x:parameter name="path">a.py</x:parameter></x:invoke>'
    ),
    "keys and values": (
        "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.py</arg_value>\n</tool_call>"
    ),
    "tags in a fence": f"```xml\n<tool_call>{READ_JSON}</tool_call>\n```",
    "after a think block": f"<think><tool_call>no</tool_call></think>{READ_JSON}",
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_a_call_written_in_any_known_form_is_read(text: str) -> None:
    assert called(read(text)) == [("read_file", READ)]


NOT_CALLS = {
    "a tag in prose": "I taught the parser to read `<tool_call>` tags.",
    "data in a fence": 'The file now says:\n```json\n{"name": "left-pad", "version": "1"}\n```',
    "code that builds calls": "```python\nprint('<tool_call>')\n```\nDone.",
    "a list of data": "[1, 2, 3]",
    "broken data": '{"name": "left-pad",',
    "an element of HTML": "I added a <function> element and <invoke> too.",
}


@pytest.mark.parametrize("text", NOT_CALLS.values(), ids=NOT_CALLS)
def test_what_only_looks_like_a_call_is_an_answer(text: str) -> None:
    actions = read(text)
    assert (actions.kind, actions.answer, actions.calls) == ("answer", text, ())


UNREADABLE = {
    "JSON in a fence that is cut off": '```json\n{"tool": "write_file", "arguments": {"path": "a',
    "a fence that is closed": '```json\n{"tool": "read_file", "arguments": {"pa\n```',
    "bare JSON that is cut off": '{"name": "read_file", "arguments": {"path": ',
    "JSON in a tag that is cut off": '<tool_call>{"name": "read_file", "arguments": {"pa',
    "a value that is cut off": (
        "<function=write_file><parameter=path>a</parameter><parameter=content>half of it"
    ),
    "an end that is missing": "<function=read_file><parameter=path>a</parameter>",
    "text between parameters": (
        "<function=read_file><parameter=path>a</parameter>?</parameter></function>"
    ),
    "a parameter twice": (
        '<invoke name="read_file"><parameter name="path">a</parameter>'
        '<parameter name="path">b</parameter></invoke>'
    ),
    "JSON in an element that is cut off": '<function=read_file>{"path": ',
    "a pair that is cut off": "<tool_call>read_file<arg_key>path</arg_key><arg_value>a",
    "a key twice": '<tool_call>{"name":"read_file","args":{"path":"a","path":"b"}}</tool_call>',
    "a tag with prose": "<tool_call>please read a.py</tool_call>",
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_a_call_that_cannot_be_read_is_answered_and_not_performed(text: str) -> None:
    assert problem(read(text)).startswith(("INVALID_ARGUMENTS", "UNKNOWN_TOOL"))


def test_what_opens_first_owns_what_is_inside() -> None:
    content = f'```json\n{READ_JSON}\n```\n<tool_call>{READ_JSON}</tool_call>\n"quoted"'
    write = {"path": "doc.md", "content": content}
    element = (
        "<function=write_file><parameter=path>doc.md</parameter>"
        f"<parameter=content>{content}</parameter></function>"
    )
    fenced = "```json\n" + json.dumps({"tool": "write_file", "arguments": write}) + "\n```"
    for text in (element, fenced):
        assert called(read(text)) == [("write_file", write)]


def test_several_calls_keep_their_order_and_get_ids_of_their_own() -> None:
    text = (
        f"<tool_call>{READ_JSON}</tool_call>\n"
        "<function=list_directory></function>\n"
        '```json\n[{"tool": "read_file", "arguments": {"path": "b"}},\n'
        '{"tool": "read_file", "arguments": {"path": "c"}}]\n```'
    )
    actions = read(text)
    assert [name for name, _ in called(actions)] == [
        "read_file",
        "list_directory",
        "read_file",
        "read_file",
    ]
    assert len({call.call.id for call in actions.calls}) == 4


def test_native_ids_that_are_all_alike_are_told_apart() -> None:
    calls = tuple(
        ToolCall(id="call", name="read_file", arguments=f'{{"path":"{at}"}}') for at in "abc"
    )
    actions = parse(ModelReply(text="", calls=calls), TOOLS, check_arguments)
    assert [call.call.id for call in actions.calls] == ["call", "call_2", "call_3"]


def test_values_written_as_text_become_what_the_schema_wants_and_nothing_else() -> None:
    edits = [{"search": "1", "replace": "2"}]
    text = (
        "<function=read_file><parameter=path>7</parameter><parameter=start_line>2</parameter>"
        "</function><function=edit_file><parameter=path>a</parameter>"
        f"<parameter=edits>{json.dumps(edits)}</parameter></function>"
    )
    assert called(read(text)) == [
        ("read_file", {"path": "7", "start_line": 2}),
        ("edit_file", {"path": "a", "edits": edits}),
    ]
    for wrong in ('"true"', '"two"', '"1.5"', '"1e999"'):
        native = ("read_file", f'{{"path": "a", "start_line": {wrong}}}')
        assert "start_line" in problem(read("", native))


def test_a_tool_that_does_not_exist_is_answered_with_the_ones_that_do() -> None:
    said = problem(read("", ("delete_everything", "{}")))
    assert "UNKNOWN_TOOL" in said
    assert "read_file" in said
    assert called(read("", ("functions.read_file", json.dumps(READ)))) == [("read_file", READ)]


def test_a_repeated_call_is_done_once_unless_something_was_written_between() -> None:
    look, write = ("read_file", '{"path": "a"}'), ("write_file", '{"path": "a", "content": "b"}')
    problems = [bool(call.problem) for call in read("", look, look, write, look, write).calls]
    assert problems == [False, True, False, False, True]
    assert "REPEATED_CALL" in read("", look, look).calls[1].problem
    other = ("read_file", '{"path":  "a" }')
    assert "REPEATED_CALL" in read("", look, other).calls[1].problem, "blanks mean nothing"


def test_calls_beyond_the_limit_are_answered_and_none_below_it_is() -> None:
    def look(count: int) -> Actions:
        return read("", *(("read_file", f'{{"path": "{at}"}}') for at in range(count)))

    assert len(called(look(CALLS_MAX))) == CALLS_MAX
    over = look(CALLS_MAX + 5)
    assert len(over.calls) == CALLS_MAX + 1
    assert f"{CALLS_MAX + 5} calls" in over.calls[-1].problem


def test_a_reply_cut_at_its_limit_is_said_again_unless_its_calls_are_native() -> None:
    assert read("half", finish="length").kind == "cut"
    assert read(f"<tool_call>{READ_JSON}", finish="length").kind == "cut"
    whole, half = ("read_file", json.dumps(READ)), ("write_file", '{"path": "a", "content": "b')
    first, last = read("", whole, half, finish="length").calls
    assert (first.problem, last.problem[:17]) == ("", "INVALID_ARGUMENTS")
    assert read("  <think>hm</think> ").kind == "empty"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("", {}),
        ("  ", {}),
        ('{"a": 1}', {"a": 1}),
        ('Sure: {"a": 1} there', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('{"a": "x = [1,]",}', {"a": "x = [1,]"}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        (json.dumps(json.dumps({"a": 1})), {"a": 1}),
        ('{"a": 1', None),
        ('{"a": 1} {"a": 2}', None),
        ('{"a": 1}}', None),
        ('either {"a": 1} or {"a": 2}', None),
        ('{"a": "```json\n{"b": 1}\n```"}', None),
        ('{"a": 1, "a": 2}', None),
        ('{"a": NaN}', None),
        ('{"a": 1e999}', None),
        ('{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
        ('{"a": "\\ud800"}', None),
        ("[1]", None),
        ('{"a":' * 3000 + "1" + "}" * 3000, None),
    ],
)
def test_an_object_is_repaired_only_where_its_meaning_stays(text: str, meant: Any) -> None:
    assert read_object(text) == meant
