"""The whole path in half a minute, offline and without a key.

Makes a small repository with a failing test, serves a scripted model over HTTP on the loopback,
runs a goal of three tasks, kills itself with SIGKILL half-way, resumes, counts what was done twice,
asks why a line is as it is, and undoes the goal.

  holdfast demo
  holdfast demo --keep DIR      keep the repository and its store to look at
  holdfast demo --json          ends with one object
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.resources import files
from pathlib import Path
from signal import SIGKILL
from typing import TYPE_CHECKING, Any

from holdfast.cli.common import Lines
from holdfast.cli.console import Console
from holdfast.config import Settings
from holdfast.errors import HoldfastError, Refused

if TYPE_CHECKING:
    from holdfast.adapters.repository import Repository
    from holdfast.testing import ScriptedServer

KILL_AT = 8

PRICES = "def parse(text):\n    return float(text)\n"
TEST = """import unittest

from prices import parse


class Parse(unittest.TestCase):
    def test_a_price_may_have_a_currency_sign(self):
        self.assertEqual(parse("€12.50"), 12.5)
"""
PLAN = """[[tasks]]
key = "parser"
title = "Make the price parser pass its test"
prompt = "The test in test_prices.py fails. Make it pass."
checks = ["python3 -m unittest -q test_prices"]

[[tasks]]
key = "total"
title = "Add a total with tax"
prompt = "Add total(texts, tax=0.19) to prices.py, with a test."
requires = ["parser"]
checks = ["python3 -m unittest -q"]

[[tasks]]
key = "readme"
title = "Say in the README how to use it"
prompt = "Add how to use total() to the README."
requires = ["total"]
checks = ["grep -q total README.md", "python3 -m unittest -q"]
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", type=Path, metavar="DIR", help="work here and keep everything")


def run(arguments: argparse.Namespace, console: Console) -> int:
    if arguments.keep is not None:
        folder = arguments.keep.absolute()
        if folder.exists() and any(folder.iterdir()):
            raise Refused(f"{folder} is not empty", hint="name a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        return _demo(folder, console)
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as made:
        return _demo(Path(made), console)


def _demo(folder: Path, console: Console) -> int:
    from holdfast.testing import ScriptedServer

    repository = _make_repository(folder)
    script = Path(str(files("holdfast.cli").joinpath("demo.toml")))
    with ScriptedServer(script, log=folder / "model-calls.log") as server:
        console.say("1. A repository with a failing test, and a scripted model on the loopback")
        console.say("2. A goal of three tasks; its process kills itself half-way")
        _child(folder, KILL_AT, server, ends=-SIGKILL)
        console.say(f"   the process ended with signal {SIGKILL:d}")
        console.say("3. Resume")
        result = _child(folder, 0, server, ends=0)
    asked = (folder / "model-calls.log").read_text(encoding="utf-8").splitlines()
    model_calls = Counter(str(json.loads(line)["sha256"]) for line in asked)
    tool_calls = Counter((folder / "tool-calls.log").read_text(encoding="utf-8").splitlines())
    console.say(f"   goal {result['goal']} is {result['state']}, {result['outcome']}")
    console.say(
        f"   {model_calls.total()} model calls, {_repeated(model_calls)} repeated; "
        f"{tool_calls.total()} tool calls, {_repeated(tool_calls)} repeated"
    )
    found = {
        "type": "demo",
        "goal_state": result["state"],
        "outcome": result["outcome"],
        "kills": 1,
        "resumed": result["resumed"],
        "model_calls": model_calls.total(),
        "repeated_model_calls": _repeated(model_calls),
        "tool_calls": tool_calls.total(),
        "repeated_tool_calls": _repeated(tool_calls),
    }
    return _look_and_undo(folder, repository, console, found)


def _look_and_undo(
    folder: Path, repository: Repository, console: Console, found: dict[str, Any]
) -> int:
    from holdfast.app import HOME_NAME, build
    from holdfast.app.undo import undo
    from holdfast.app.why import why_line

    before = repository.tree_of("HEAD")
    app = build(Settings(), home=folder / "repo" / HOME_NAME, sink=Lines(console))
    try:
        console.say("4. Why is line 4 of prices.py as it is?")
        why = why_line(app, "prices.py", 4)
        spent = why["usage"]
        console.say(f"   {why['text']}")
        console.say(
            f"   task {why['task']}, attempt {why['attempt']}, step {why['step']}, "
            f"{why['model']}, {spent['tokens']} tokens, bundle {why['bundle'][:12]}"
        )
        console.say("5. Undo the goal")
        undone = undo(app, 1)
    finally:
        app.close()
    console.say(f"   tree before {before}")
    console.say(f"   tree after  {undone['tree']}")
    equal = undone["tree"] == before
    found |= {"why_task": why["task"], "tree": undone["tree"], "undo_tree_equal": equal}
    held = (
        equal
        and found["goal_state"] == "complete"
        and found["resumed"]
        and not found["repeated_model_calls"]
        and not found["repeated_tool_calls"]
    )
    console.say("It held." if held else "It did NOT hold; see above.")
    console.emit(found)
    return 0 if held else 1


def _make_repository(folder: Path) -> Repository:
    from holdfast.adapters.repository import Repository

    repo = folder / "repo"
    repo.mkdir()
    (repo / "prices.py").write_text(PRICES, encoding="utf-8")
    (repo / "test_prices.py").write_text(TEST, encoding="utf-8")
    (repo / "README.md").write_text("# Prices\n", encoding="utf-8")
    (repo / ".gitignore").write_text("__pycache__/\n", encoding="utf-8")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    identity = ["-c", "user.name=Demo", "-c", "user.email=demo@localhost"]
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        [*identity, "commit", "-q", "-m", "A failing test"],
    ):
        environment = {"PATH": os.defpath, "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", "-C", str(repo), *words], check=True, env=environment)  # noqa: S603, S607  constant words
    return Repository.open(repo)


def _child(folder: Path, kill_at: int, server: ScriptedServer, *, ends: int) -> dict[str, Any]:
    """Run the worker process; the object it ended with, empty when it was killed.

    Raises `HoldfastError` when it did not end as it should, with what it said.
    """
    # -P: nothing of the folder that somebody stands in is imported.
    words = [sys.executable, "-P", "-m", "holdfast.cli.demo_child", str(folder), str(kill_at)]
    done = subprocess.run(  # noqa: S603  our own module
        words, env={**os.environ, **server.environ()}, stdout=subprocess.PIPE, check=False
    )
    lines = done.stdout.decode().splitlines()
    said: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    if done.returncode != ends:
        code = done.returncode
        ended = f"signal {-code}" if code < 0 else f"exit code {code}"
        due = f"signal {-ends:d}" if ends else "exit code 0"
        raise HoldfastError(
            f"the demo's process ended with {ended} and not with {due}: "
            f"{said.get('message', 'see above')}",
            hint=said.get("hint", ""),
            code="demo_failed",
        )
    return said


def _repeated(calls: Counter[str]) -> int:
    return sum(count - 1 for count in calls.values())
