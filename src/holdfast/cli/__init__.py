"""The command line: one table of nouns, each loaded only when it is used.

Owns the table, the shared flags and the translation of errors into exit codes. Each command module
has `configure(parser)` and `run(arguments, console) -> int`, a few lines over `app`.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from typing import NoReturn, TextIO

from holdfast import __version__
from holdfast.cli.console import Console, OutputGone, silence
from holdfast.errors import HoldfastError, Refused

EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130


@dataclass(frozen=True)
class Command:
    """One row: the word, the module that implements it and the line `--help` shows."""

    name: str
    module: str
    summary: str


COMMANDS: tuple[Command, ...] = (
    Command("run", "holdfast.cli.run", "work on a goal until it is done and proven"),
    Command("resume", "holdfast.cli.resume", "go on with what was interrupted"),
    Command("events", "holdfast.cli.events", "the log of transitions and evidence"),
    Command("why", "holdfast.cli.why", "which goal, attempt, prompt and model wrote a line"),
    Command("diff", "holdfast.cli.diff", "what a goal or an attempt changed in files"),
    Command("undo", "holdfast.cli.undo", "walk a goal's work back, verified by tree hash"),
    Command("replay", "holdfast.cli.replay", "run an attempt again from its record, offline"),
    Command("goal", "holdfast.cli.goal", "list, show, cancel or reopen goals"),
    Command("plan", "holdfast.cli.plan", "list, show, export, pause or resume plans"),
    Command("task", "holdfast.cli.task", "list or show tasks, force one past a requirement"),
    Command("link", "holdfast.cli.link", "what requires or refers to what, and what blocks what"),
    Command("context", "holdfast.cli.context", "what an attempt is shown and why; pin, exclude"),
    Command("attempt", "holdfast.cli.attempt", "list attempts, show one with its journal"),
    Command("approval", "holdfast.cli.approval", "what waits for a person, and the answers"),
    Command("doctor", "holdfast.cli.doctor", "what this machine and this store can do"),
    Command("check", "holdfast.cli.care", "read the whole store: is it sound?"),
    Command("backup", "holdfast.cli.care", "a checked copy of the store, beside running work"),
    Command("restore", "holdfast.cli.care", "put a checked copy back"),
    Command("trace", "holdfast.cli.trace", "evidence: sessions, events, failures, exports"),
    Command("lisp", "holdfast.cli.lisp", "run PTC-Lisp: eval, repl, cases"),
    Command("demo", "holdfast.cli.demo", "a goal, a SIGKILL, a resume, why and undo, offline"),
)


# How `--help` groups them, by what a person is about to do.
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Start and go on", ("run", "resume", "demo")),
    ("Look", ("goal", "plan", "task", "attempt", "diff", "why", "events", "trace")),
    ("Decide", ("approval", "context", "link")),
    ("Go back", ("replay", "undo")),
    ("Write programs", ("lisp",)),
    ("Take care", ("doctor", "check", "backup", "restore")),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code. Nothing but results goes to stdout."""
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        _hush_libraries()
    _never_fail_to_encode(sys.stdout)
    console = Console(json="--json" in words)
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(overview())
        return 0
    if words[0] in ("-V", "--version"):
        sys.stdout.write(f"holdfast {__version__}\n")
        return 0
    command = next((row for row in COMMANDS if row.name == words[0]), None)
    if command is None:
        return console.refuse(
            f"there is no command {words[0]!r}", hint=_near(words[0]), exit_code=EXIT_REFUSED
        )
    return _dispatch(command, words[1:], console)


def _hush_libraries() -> None:
    """Warnings and log lines of libraries stay off the terminal: they may quote what a server sent,
    escape codes and all. `python -W` shows the warnings."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    logging.getLogger().addHandler(logging.NullHandler())


def _never_fail_to_encode(stream: TextIO) -> None:
    """A character that the terminal's alphabet lacks is shown by its number, as stderr does."""
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def overview() -> str:
    """The text of `holdfast --help`, made from the tables alone so that it loads nothing."""
    rows = {row.name: row for row in COMMANDS}
    grouped = {name for _, names in GROUPS for name in names}
    rest = ("More", tuple(name for name in rows if name not in grouped))
    width = max(map(len, rows), default=0)
    lines = [
        "usage: holdfast COMMAND [options]",
        "",
        "Does work with language models and does not let go of it.",
    ]
    for title, names in (*GROUPS, rest):
        if names:
            lines += ["", f"{title}:"]
            lines += [f"  {name:<{width}}  {rows[name].summary}" for name in names]
    return "\n".join([*lines, *_CLOSING]) + "\n"


def _dispatch(command: Command, words: list[str], console: Console) -> int:
    module = import_module(command.module)
    parser = _Parser(
        prog=f"holdfast {command.name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="one JSON object (or JSON lines)")
    parser.set_defaults(command=command.name)
    module.configure(parser)
    try:
        _refuse_other_encodings(words)
        arguments = parser.parse_args(words)
        return int(module.run(arguments, console))
    except SystemExit as stop:  # argparse has shown the help
        return int(stop.code or 0)
    except HoldfastError as error:
        return console.refuse(
            error.message, hint=error.hint, code=error.code, exit_code=EXIT_REFUSED
        )
    except KeyboardInterrupt:
        console.note("interrupted")
        return EXIT_INTERRUPTED
    except OutputGone as gone:
        console.note(f"holdfast: {gone}")
    except BrokenPipeError:  # argparse's own help
        pass
    silence(sys.stdout)
    return EXIT_INTERRUPTED


def _refuse_other_encodings(words: Sequence[str]) -> None:
    """An argument that is no text can be neither stored nor shown."""
    for number, word in enumerate(words, start=1):
        if any("\ud800" <= character <= "\udfff" for character in word):
            shown = word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            raise Refused(
                f"argument {number} is not UTF-8: {shown}",
                hint="write it in UTF-8, and see that LANG names a UTF-8 locale",
                code="usage",
            )


_CLOSING = (
    "",
    "Begin with:",
    '  holdfast run "Make the failing test pass" --model ollama:qwen3:8b --check "pytest -q"',
    "",
    "`holdfast COMMAND --help` teaches one command; `--json` works on every one.",
)


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line like every other refusal, also as JSON; names what is near."""

    def error(self, message: str) -> NoReturn:
        raise Refused(message, hint=self._remedy(message), code="usage")

    def _remedy(self, message: str) -> str:
        """What was probably meant, else where it is taught."""
        known = [flag for action in self._actions for flag in action.option_strings]
        known += [str(choice) for action in self._actions for choice in action.choices or ()]
        wrong = re.search(r"invalid choice: '([^']*)'|unrecognized arguments: (\S+)", message)
        word = next(filter(None, wrong.groups()), "") if wrong else ""
        close = get_close_matches(word.partition("=")[0], known, n=1)
        help_line = f"{self.prog} --help"
        return f"did you mean {close[0]!r}? {help_line}" if close else help_line


def _near(word: str) -> str:
    close = get_close_matches(word, [row.name for row in COMMANDS], n=1)
    return f"did you mean {close[0]!r}?" if close else "`holdfast --help` lists them"
