"""Run PTC-Lisp: one program, a read-eval-print loop, or a file of conformance cases.

    holdfast lisp eval -e '(+ 1 2)'            one program in a walled process; or a file, or -
    holdfast lisp eval f.lisp --data rows.json inputs are read as data/name in the program
    holdfast lisp [repl]                       definitions stay; *1 *2 *3 are the last results
    holdfast lisp manual                       forms, built-ins and limits, as docs/lisp.md
    holdfast lisp cases cases.json --json      {"passed": n, "failed": […], "skipped": n}

Exit codes: 0 a value or a return, 1 an error, a fail or a failed case, 2 a wrong command line.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.console import Console
from holdfast.errors import Refused

if TYPE_CHECKING:
    from holdfast.lang.api import Limits, Result

HISTORY_FILE = ".holdfast_lisp_history"
HISTORY_LINES = 1000
LEVELS = ("none", "rlimits", "seccomp", "landlock+seccomp")


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    parser.set_defaults(verb="repl", wall_s=None, loop_iterations=None, fuel=None)
    run = verbs.add_parser("eval", help="run one program")
    run.add_argument("file", nargs="?", help="a file, or - for standard input")
    run.add_argument("-e", dest="source", help="the program itself")
    run.add_argument("--data", help="inputs as JSON text, or a JSON file; read as data/name")
    run.add_argument(
        "--wall",
        choices=LEVELS,
        default="seccomp",
        help="the least wall around the process that runs it; refused where it cannot be had",
    )
    repl = verbs.add_parser("repl", help="read, evaluate, print, again")
    cases = verbs.add_parser("cases", help="run a file of conformance cases")
    cases.add_argument("file", help="cases in the documented encoding")
    page = verbs.add_parser("manual", help="the language's page, as docs/lisp.md has it")
    page.add_argument("--json", action="store_true", help="one JSON object")
    for each in (run, repl, cases):
        each.add_argument("--json", action="store_true", help="one JSON object")
        each.add_argument("--wall-s", type=float, help="longest a program may run")
        each.add_argument("--loop-iterations", type=int, help="rounds a loop may go")
        each.add_argument("--fuel", type=int, help="work a program may do")


def run(arguments: argparse.Namespace, console: Console) -> int:
    verbs = {"eval": evaluate, "manual": manual, "repl": repl, "cases": cases}
    return verbs[arguments.verb](arguments, console)


def limits_of(arguments: argparse.Namespace) -> Limits:
    from holdfast.lang.api import Limits

    names = ("wall_s", "loop_iterations", "fuel")
    found = {name: getattr(arguments, name) for name in names}
    for name, each in found.items():
        if each is not None and not 0 < each < 1e15:
            raise Refused(f"--{name.replace('_', '-')} must be a number above 0")
    return replace(Limits(), **{name: each for name, each in found.items() if each is not None})


# --- eval ----------------------------------------------------------------------------------------


def evaluate(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.lang.pool import SandboxPool

    source = _source(arguments)
    context = _data(arguments.data)
    with SandboxPool(1, limits_of(arguments), require=arguments.wall) as pool:
        result = pool.run(source, context=context)
    _tell(result, console)
    return 0 if result.ok else 1


def _source(arguments: argparse.Namespace) -> str:
    if (arguments.source is None) == (arguments.file is None):
        raise Refused("give a program with -e, or a file", hint="holdfast lisp eval -e '(+ 1 2)'")
    return _read(arguments.file) if arguments.source is None else str(arguments.source)


def _read(name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"cannot read {name}: {error}") from error


def _data(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    if not text.lstrip().startswith(("{", "[")):
        text = _read(text)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"--data is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise Refused("--data must be a JSON object", hint="--data '{\"rows\": […]}'")
    return found


def report(result: Result) -> dict[str, Any]:
    """A result as JSON-safe data: the ending, the encoded value, prints, usage and the error."""
    from holdfast.lang import cases as runner

    return {
        "ending": result.ending,
        "value": None if result.error else runner.encoded(result.value),
        "error": result.error.as_dict() if result.error else None,
        "prints": list(result.prints),
        "warnings": list(result.warnings),
        "summaries": dict(result.summaries),
        "usage": {
            "fuel": result.usage.fuel,
            "alloc_bytes": result.usage.alloc_bytes,
            "output_bytes": result.usage.output_bytes,
            "wall_ms": round(result.usage.wall_ms, 3),
        },
    }


def _tell(result: Result, console: Console) -> None:
    if console.json:  # then nothing is on stderr either
        console.emit(report(result))
        return
    for text in result.prints:
        console.say(text)
    for warning in result.warnings:
        console.note(f"warning: {warning}")
    if result.error is not None:
        console.note(result.error.render())
        return
    lead = "failed: " if result.ending == "failed" else ""
    console.say(lead + _text(result.value))


def _text(value: Any) -> str:
    """A value as the reader would read it, within the default limits."""
    from holdfast.lang.api import LangError, Limits
    from holdfast.lang.meter import ACTIVE, Meter
    from holdfast.lang.printer import readable

    token = ACTIVE.set(Meter(Limits()))
    try:
        return readable(value)
    except LangError as error:
        return f"(not shown: {error.message})"
    finally:
        ACTIVE.reset(token)


def manual(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.lang.manual import manual as page

    console.emit({"manual": page()})
    console.say(page().rstrip("\n"))
    return 0


# --- cases ---------------------------------------------------------------------------------------


def cases(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.lang import cases as runner

    try:
        found = runner.load(_read(arguments.file))
    except ValueError as error:
        raise Refused(f"{arguments.file} holds no cases: {error}") from error
    outcome = runner.run_cases(found, limits=limits_of(arguments))
    for each in outcome["failed"]:
        console.say(f"{each['expr']}")
        console.say(f"  expected {json.dumps(each['expected'], ensure_ascii=False)}")
        console.say(f"  got      {json.dumps(each['got'], ensure_ascii=False)}")
    Console(json=True).emit(outcome)  # a person reads the counts there too
    return 0 if not outcome["failed"] else 1


# --- repl ----------------------------------------------------------------------------------------


def repl(arguments: argparse.Namespace, console: Console) -> int:
    """Read forms until they are complete; an error leaves definitions as they were."""
    from holdfast.lang.compiler import CodeCache
    from holdfast.lang.run import run as run_program

    memory: dict[str, Any] = {}
    history: tuple[Any, ...] = ()
    limits, cache = limits_of(arguments), CodeCache()
    interactive = sys.stdin.isatty()
    if interactive:
        _line_editing(memory)
        console.note('PTC-Lisp; (apropos "part") finds, (doc \'name) explains, end of input leaves')
    while True:
        try:
            source = _program(interactive, limits)
            if source is None:
                return 0
            if not source.strip():
                continue
            result = run_program(source, memory=memory, history=history, limits=limits, cache=cache)
            _tell(result, console)
        except KeyboardInterrupt:
            if not interactive:
                raise
            console.note("interrupted; end of input leaves")
            continue
        memory.clear()
        memory.update(result.memory)
        history = tuple(result.history)


def _program(interactive: bool, limits: Limits) -> str | None:
    """The next complete program from standard input; None at its end."""
    from holdfast.lang.api import LangError
    from holdfast.lang.reader import Source, read

    lines: list[str] = []
    while True:
        try:
            prompt = ("lisp> " if not lines else "  ... ") if interactive else ""
            lines.append(input(prompt))
        except EOFError:
            return "\n".join(lines) if lines else None
        text = "\n".join(lines)
        try:
            read(Source(text), limits)
        except LangError as error:
            if "never closed" in error.message and lines[-1].strip():
                continue
        return text


def _line_editing(memory: dict[str, Any]) -> None:
    """History in the home folder and completion of built-ins, forms and definitions."""
    try:
        import readline
    except ImportError:
        return
    import atexit

    from holdfast.lang import library
    from holdfast.lang.forms import HANDLERS

    path = Path.home() / HISTORY_FILE
    try:
        readline.read_history_file(path)
    except OSError:
        path.touch(mode=0o600, exist_ok=True)
    readline.set_history_length(HISTORY_LINES)
    atexit.register(readline.write_history_file, path)

    def complete(part: str, state: int) -> str | None:
        names = sorted({*library.names(), *HANDLERS, *memory})
        hits = [name for name in names if name.startswith(part)]
        return hits[state] if state < len(hits) else None

    readline.set_completer_delims(" \t\n()[]{}\"'`,;#@^~")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
