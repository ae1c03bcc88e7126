"""The command line's frame: help, unknown words, JSON errors, hostile text."""

import ast
import json
import re
import subprocess
import sys

import pytest

from holdfast import cli
from holdfast.domain.plain import plain


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


def test_every_command_is_in_one_group_of_the_help() -> None:
    grouped = [name for _, names in cli.GROUPS for name in names]
    assert sorted(grouped) == sorted(row.name for row in cli.COMMANDS)
    assert "More:" not in cli.overview()


def test_a_command_nobody_grouped_is_still_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    new = cli.Command("new", "holdfast.cli.goal", "something new")
    monkeypatch.setattr(cli, "COMMANDS", (*cli.COMMANDS, new))
    assert "More:\n  new " in cli.overview()


@pytest.mark.parametrize("row", cli.COMMANDS, ids=lambda row: row.name)
def test_the_help_of_a_command_shows_it_in_use(
    row: cli.Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([row.name, "--help"]) == 0
    assert re.search(rf"^\s*holdfast {row.name}\b", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["gaol"], "'goal'"),
        (["goal", "shwo"], "'show'"),
        (["run", "x", "--chek", "true"], "'--check'"),
        (["run", "x", "--bugdet-usd=3"], "'--budget-usd'"),
        (["plan", "exprot", "1"], "'export'"),
    ],
)
def test_a_slip_of_the_finger_is_answered_with_what_was_meant(
    words: list[str], near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    assert f"did you mean {near}" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["xyzzy"], ["goal", "qqqq"], ["run", "x", "--zzzzzz"], ["run"]])
def test_what_is_near_to_nothing_is_answered_with_where_it_is_taught(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert "did you mean" not in said
    assert "--help" in said


def test_hostile_characters_become_visible() -> None:
    assert plain("a\x1b[31mb\u202ec\td\n") == "a\\x1b[31mb\\u202ec\td\n"


def test_what_a_library_says_of_a_server_stays_off_the_terminal() -> None:
    """The SDKs' warnings and log lines quote replies, and a reply may hold escape codes."""
    script = (
        "import logging, sys, warnings\n"
        "from holdfast.cli import main\n"
        "sys.argv = ['holdfast', '--version']\n"
        "assert main() == 0\n"
        "logging.getLogger('cohere').warning('\\x1b[31mdata')\n"
        "warnings.warn('\\x1b[31mreason')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stderr == b""


def test_the_help_of_no_verb_loads_what_its_work_needs() -> None:
    """Each costs up to a tenth of a second, and `--help` has little more than that."""
    script = (
        "import sys; from holdfast import cli\n"
        "for row in cli.COMMANDS: cli.main([row.name, '--help'])\n"
        "print(sorted(name for name in sys.modules if name.startswith('holdfast.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = ast.literal_eval(done.stdout.splitlines()[-1])
    heavy = ("adapters", "agent", "app", "context", "engine", "lang", "store", "testing", "worker")
    assert [name for name in loaded if name.split(".")[1] in heavy] == []
    assert "holdfast.cli.goal" in loaded
