"""What reaches a terminal: nothing hostile, and with JSON nothing else on stdout."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.console import Console
from holdfast.domain.plain import plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\rb", "a\\x0db"),
        ("\x9b31m", "\\x9b31m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("‮evil", "\\u202eevil"),
        ("one\u2028two", "one\\u2028two"),
        ("tab\tand\nline é 漢 🙂", "tab\tand\nline é 漢 🙂"),
    ],
)
def test_a_hostile_character_becomes_visible(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(st.text())
def test_no_text_keeps_a_control_character(text: str) -> None:
    shown = plain(text)
    assert all(char in "\n\t" or not (ord(char) < 32 or 127 <= ord(char) < 160) for char in shown)
    assert not set(shown) & set("\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u2028")
    assert plain(shown) == shown


def test_with_json_stdout_carries_json_alone(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(json=True)
    console.say("for a person")
    console.emit({"text": "\x1b[0m ü"})
    console.note("progress \x1b")
    assert console.refuse("no", hint="do so", code="c", exit_code=2) == 2
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines == [
        {"text": "\x1b[0m ü"},
        {"type": "error", "code": "c", "message": "no", "hint": "do so"},
    ]
    assert "\x1b" not in out + err
    assert err == "progress \\x1b\nholdfast: no\n  do so\n"


def test_without_json_a_person_reads_lines(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(json=False)
    console.say("hello")
    console.say()
    assert console.refuse("no", exit_code=1) == 1
    assert capsys.readouterr() == ("hello\n\n", "holdfast: no\n")
