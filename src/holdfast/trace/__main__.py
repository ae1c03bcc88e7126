"""`python -m holdfast.trace`: the verbs of `commands`, and `run` for a program to be traced.

Owns the parser and a plain console. Needs nothing but the standard library.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from io import TextIOWrapper
from typing import Any

from holdfast.trace import commands
from holdfast.trace.run import run
from holdfast.trace.store import to_json

_HOSTILE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class _Output:
    """Results on stdout, notes on stderr; control and direction characters made visible."""

    def __init__(self, *, json: bool) -> None:
        self.json = json

    def say(self, text: str = "") -> None:
        if not self.json:
            sys.stdout.write(_plain(text) + "\n")

    def emit(self, value: dict[str, Any], /) -> None:
        sys.stdout.write(to_json(value) + "\n")
        sys.stdout.flush()

    def note(self, text: str) -> None:
        sys.stderr.write(_plain(text) + "\n")


def _plain(text: str) -> str:
    return _HOSTILE.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def main(words: list[str]) -> int:
    """Run one command line; returns the exit code, except for `run`, which exits as its program."""
    if words[:1] == ["run"]:
        return _run(words[1:])
    if isinstance(sys.stdout, TextIOWrapper):  # a character its alphabet lacks: by its number
        sys.stdout.reconfigure(errors="backslashreplace")
    parser = argparse.ArgumentParser(
        prog="python -m holdfast.trace",
        description="Evidence for agents. `run app.py …` starts a program traced (AGENTLOG=true).",
    )
    parser.set_defaults(json=False)
    commands.configure(parser)
    arguments = parser.parse_args(words)
    try:
        return commands.run(arguments, _Output(json=arguments.json))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Nobody reads any more; so that the interpreter's own flush stays silent too:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 130


def _run(words: list[str]) -> int:
    """Every word after the program's name is the program's own, so no parser looks at them."""
    if words and words[0] not in ("-h", "--help"):
        run(words)
        return 0
    stream = sys.stdout if words else sys.stderr
    stream.write("usage: python -m holdfast.trace run app.py [ARGUMENT …]\n")
    stream.write("       python -m holdfast.trace run -m module [ARGUMENT …]\n")
    return 0 if words else commands.EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
