"""`python -m holdfast.trace run app.py …`: an unmodified program, traced if `AGENTLOG` says so.

Owns making the program believe that `python app.py …` (or `python -m module …`, a folder, a zip
file) started it: argv, `sys.path[0]`, a fresh `__main__`, exit code, and a traceback without this
package's frames, also where the program's own `sys.excepthook` fails. Whatever the program does to
that hook, its failure is recorded first. What remains visible: frames below the program's own for
who walks the stack, and the recursion limit, which is higher by them.
"""

from __future__ import annotations

import builtins
import os
import runpy
import signal
import sys
from importlib.machinery import SourceFileLoader
from pkgutil import get_importer
from types import FrameType, ModuleType
from typing import Any, NoReturn

from holdfast import trace
from holdfast.trace.capture import traceback_of
from holdfast.trace.describe import isinstance_of

_OWN = os.path.dirname(__file__)


def run(words: list[str]) -> None:
    """Run `app.py …` or `-m module …` as the main program; exits as it would have."""
    named = words[0] == "-m"
    if named and len(words) < 2:
        sys.stderr.write("Argument expected for the -m option\n")
        sys.exit(2)
    recorder = trace.active()
    sys.argv[:] = words[1:] if named else words
    if recorder is not None:
        recorder.session_id()
    uncaught = _outcome(words, named=named)
    if uncaught is not None:  # no longer being handled, so that a failing hook is not chained to it
        if recorder is not None:
            recorder.failure(uncaught, "main")
        _die(uncaught)


def _outcome(words: list[str], *, named: bool) -> BaseException | None:
    """Run the program; what it did not catch, except for its exit."""
    script = not named and get_importer(words[0]) is None
    # What the program may use of the stack is as much as without the frames below its own.
    sys.setrecursionlimit(sys.getrecursionlimit() + _depth() + (3 if script else 2))
    try:
        if script:
            _run_script(words[0])
        elif named:
            sys.argv[0] = "-m"  # as Python has it until the module is found
            _run_module(words[1])
        else:
            sys.path[0] = os.path.abspath(words[0])
            _run_module("")
    except SystemExit:
        raise
    except BaseException as error:
        return error
    return None


def _run_module(name: str) -> None:
    """By the function that `python -m` itself calls; without a name the `__main__` in the path."""
    _fresh_main()
    run_as_main: Any = vars(runpy)["_run_module_as_main"]  # the same frames, messages and globals
    run_as_main(name or "__main__", alter_argv=bool(name))


def _run_script(path: str) -> None:
    if not sys.flags.safe_path:  # where that is set, Python puts no folder in front either
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    path = os.path.abspath(path)
    try:
        with open(path, "rb") as stream:
            source = stream.read()
    except OSError as error:
        problem = f"can't open file {path!r}: [Errno {error.errno}] {error.strerror}"
        sys.stderr.write(f"{sys.executable}: {problem}\n")
        sys.exit(2)
    module = _fresh_main()
    loader = SourceFileLoader("__main__", path)
    module.__dict__.update(__file__=path, __cached__=None, __loader__=loader)
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102  that is what a runner does


def _fresh_main() -> ModuleType:
    module = ModuleType("__main__")
    module.__dict__.update(__builtins__=builtins, __annotations__={})
    sys.modules["__main__"] = module
    return module


def _depth() -> int:
    frame: FrameType | None = sys._getframe(1)
    depth = 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def _die(error: BaseException) -> NoReturn:
    """Report and exit as the interpreter does with an exception that nothing caught."""
    _drop_own_frames(error)
    try:
        if not hasattr(sys, "excepthook"):
            sys.stderr.write("sys.excepthook is missing\n")
        hook = getattr(sys, "excepthook", sys.__excepthook__)
        hook(type(error), error, traceback_of(error))
    except SystemExit:
        raise
    except BaseException as broken:
        _drop_own_frames(broken)
        sys.stderr.write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(broken), broken, traceback_of(broken))
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(type(error), error, traceback_of(error))
    if isinstance_of(type(error), (KeyboardInterrupt,)):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        trace.forget_switch()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    raise SystemExit(1)


def _drop_own_frames(error: BaseException) -> None:
    """Without asking the exception itself, whose class may run code for it."""
    found = traceback_of(error)
    while found is not None and os.path.dirname(found.tb_frame.f_code.co_filename) == _OWN:
        found = found.tb_next
    BaseException.__dict__["__traceback__"].__set__(error, found)
