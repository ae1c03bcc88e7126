"""`python -m holdfast.trace run app.py …`: an unmodified program, traced if `AGENTLOG` says so.

Owns making the program believe that `python app.py …` (or `python -m module …`) started it: argv,
`sys.path[0]`, `__main__`, exit code, and a traceback without this package's frames. Whatever the
program does to `sys.excepthook`, its failure is recorded first.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import CodeType, TracebackType
from typing import Any

from holdfast import trace

_OWN = (os.path.dirname(__file__), "<frozen ")


class _Script(SourceFileLoader):
    """Compiles the script each time, as Python does: no byte code is written beside it."""

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def run(words: list[str]) -> None:
    """Run `app.py …` or `-m module …` as the main program; exits as it would have."""
    recorder = trace.active()
    sys.argv[:] = words[1:] if words[0] == "-m" else words
    if recorder is not None:
        recorder.session_id()
    try:
        if words[0] == "-m":
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            _run_script(words[0])
    except SystemExit:
        raise
    except BaseException as error:
        if recorder is not None:
            recorder.failure(error, "main")
        _die(error)


def _run_script(path: str) -> None:
    if not sys.flags.safe_path:  # where that is set, Python puts no folder in front either
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    path = os.path.abspath(path)
    loader = _Script("__main__", path)
    spec = spec_from_file_location("__main__", path, loader=loader)
    if spec is None or not os.path.isfile(path):
        sys.stderr.write(f"can't open file {path!r}: no such file\n")
        sys.exit(2)
    module = module_from_spec(spec)
    plain: dict[str, Any] = {
        "__spec__": None,
        "__package__": None,
        "__cached__": None,
        "__annotations__": {},
    }
    module.__dict__.update(plain)
    sys.modules["__main__"] = module
    loader.exec_module(module)


def _die(error: BaseException) -> None:
    """Report and exit as the interpreter does with an exception that nothing caught."""
    error.__traceback__ = _without_own_frames(error.__traceback__)
    sys.excepthook(type(error), error, error.__traceback__)
    if isinstance(error, KeyboardInterrupt):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        trace.forget_switch()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    raise SystemExit(1)


def _without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    found = traceback
    while found is not None and found.tb_frame.f_code.co_filename.startswith(_OWN):
        found = found.tb_next
    return found
