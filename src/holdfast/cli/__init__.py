"""The command line: one table of nouns, each loaded only when it is used.

Owns the table, the shared flags and the translation of errors into exit codes. Each command module
has `configure(parser)` and `run(arguments, console) -> int`, a few lines over `app`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn

from holdfast import __version__
from holdfast.cli.console import Console, OutputGone
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
    Command("undo", "holdfast.cli.undo", "walk a goal's work back, verified by tree hash"),
    Command("replay", "holdfast.cli.replay", "run an attempt again from its record, offline"),
    Command("goal", "holdfast.cli.goal", "list, show or cancel goals"),
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code. Nothing but results goes to stdout."""
    words = list(sys.argv[1:] if argv is None else argv)
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


def overview() -> str:
    """The text of `holdfast --help`, made from the table alone so that it loads nothing."""
    width = max((len(row.name) for row in COMMANDS), default=0)
    lines = [
        "usage: holdfast COMMAND [options]",
        "",
        "Does work with language models and does not let go of it.",
        "",
        *(f"  {row.name:<{width}}  {row.summary}" for row in COMMANDS),
        "",
        "`holdfast COMMAND --help` teaches one command; `--json` works on every one.",
    ]
    return "\n".join(lines) + "\n"


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
        return _silenced()
    except BrokenPipeError:  # argparse's own help
        return _silenced()


def _silenced() -> int:
    """Nobody reads our results: let the interpreter's own flush at the end be silent too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
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


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line like every other refusal, also as JSON."""

    def error(self, message: str) -> NoReturn:
        raise Refused(message, hint=f"{self.prog} --help", code="usage")


def _near(word: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, [row.name for row in COMMANDS], n=1)
    return f"did you mean {close[0]!r}?" if close else "`holdfast --help` lists them"
