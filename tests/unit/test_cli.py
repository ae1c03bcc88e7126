"""The command line's frame: help, unknown words, JSON errors, hostile text."""

import json

import pytest

from holdfast import cli
from holdfast.cli.console import plain


def test_help_names_every_command_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    for row in cli.COMMANDS:
        assert row.name in out


def test_an_unknown_command_is_refused_with_exit_code_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["no-such-command", "--json"]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["type"] == "error"
    assert "no-such-command" in captured.err


def test_hostile_characters_become_visible() -> None:
    assert plain("a\x1b[31mb\u202ec\td\n") == "a\\x1b[31mb\\u202ec\td\n"
