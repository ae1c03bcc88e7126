"""Run a program in this process, under the inner wall only.

Owns the life of a run: link, run, turn whatever ends it into a `Result`, commit definitions. Owns
no isolation: `pool` puts a process around this. Errors of Python that emitted code can cause are
translated here, once: a wrong number of arguments, an unbound definition, too deep a recursion.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from holdfast.lang import library
from holdfast.lang.api import Host, LangError, Limits, Result, Tool, Usage, Value, over_limit
from holdfast.lang.compiler import CodeCache, compile_source
from holdfast.lang.link import Linker
from holdfast.lang.machine import Ending, Machine
from holdfast.lang.meter import ACTIVE
from holdfast.lang.portable import bounded, measured_bytes
from holdfast.lang.reader import At, Source
from holdfast.lang.values import Reduced

HISTORY_DEPTH = 3
# Python frames that one call of the language may take: its own and those of a built-in between.
FRAMES_PER_CALL = 4
FRAMES_SPARE = 400
_ARITY = re.compile(
    r"(\S+)\(\) (?:takes (?:from )?(.*?) positional arguments? but (\d+) w|missing (\d+) )"
)


class NoHost(Host):
    """A host with nothing behind it: no tools, no journal, an empty budget."""


def run(
    source: str,
    *,
    context: Mapping[Any, Any] | None = None,
    memory: Mapping[str, Value] | None = None,
    history: Sequence[Value] = (),
    host: Host | None = None,
    limits: Limits | None = None,
    tools: Mapping[str, Tool] | Sequence[str] = (),
    cache: CodeCache | None = None,
) -> Result:
    """Run one program; never raises for what the program does.

    `context` is read as `data/…`, checked and copied in each run unless it is `Granted`. `memory`
    holds the definitions of earlier turns, `history` the last results, newest first. `tools` are
    the names (and docs) that may be called; `host` answers.
    """
    bounds = limits or Limits()
    known = dict(memory or {})
    machine = Machine(host or NoHost(), bounds)
    machine.catalog = lambda: catalogue(machine, offered)
    offered = tools if isinstance(tools, Mapping) else {name: Tool(name=name) for name in tools}
    token = ACTIVE.set(machine.root)
    started = time.monotonic()
    try:
        code = compile_source(source, limits=bounds, known=known, tools=offered, cache=cache)
        linker = Linker(machine, context=context or {}, memory=known, history=tuple(history))
        machine.adopt, machine.bind = linker.adopt, linker.define
        outcome = execute(machine, linker.link(code))
        result = _commit(machine, outcome, known, tuple(history))
    except LangError as error:
        result = Result(ending="error", error=error, memory=known, history=tuple(history))
    finally:
        ACTIVE.reset(token)
    return _finish(machine, result, started)


def execute(machine: Machine, main: Any) -> Ending:
    """Call the entry function; how it ended, or `LangError` with its place."""
    _DEPTH.enter(machine.limits.depth)
    machine.baton.acquire()
    machine.root.inside = True
    try:
        try:
            value = main()
        except Ending as ending:
            return ending
        except LangError as error:
            _locate(machine, error, error.__traceback__)
            raise
        except Exception as error:
            raise _translate(machine, error) from None
        return Ending("value", value.value if type(value) is Reduced else value)
    finally:
        machine.end()
        _DEPTH.leave()


class _Depth:
    """Python's recursion limit, which is the process's: raised while any run goes on.

    The last run to end puts it back, so that runs in several threads do not lower each other's.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = 0
        self._before = 0

    def enter(self, depth: int) -> None:
        here, frame = 0, sys._getframe()
        while frame.f_back is not None:
            here, frame = here + 1, frame.f_back
        needed = here + depth * FRAMES_PER_CALL + FRAMES_SPARE
        with self._lock:
            if self._runs == 0:
                self._before = sys.getrecursionlimit()
            self._runs += 1
            if sys.getrecursionlimit() < needed:
                sys.setrecursionlimit(needed)

    def leave(self) -> None:
        with self._lock:
            self._runs -= 1
            if self._runs == 0:
                sys.setrecursionlimit(self._before)


_DEPTH = _Depth()


def _translate(machine: Machine, error: Exception) -> LangError:
    """The error of the language that an error of Python stands for. Leaks no host text."""
    if isinstance(error, RecursionError):
        found = over_limit(
            "depth",
            "the recursion depth is exceeded (stack overflow)",
            hint="use loop and recur, or reduce",
        )
    elif isinstance(error, NameError):
        name = machine.names.get(getattr(error, "name", "") or "", "a name")
        found = LangError("unbound_var", f"{name} is not defined yet", hint="move its def up")
    elif isinstance(error, MemoryError):
        found = over_limit("memory_bytes", "the process is out of memory")
    elif isinstance(error, TypeError) and (match := _ARITY.match(str(error))):
        found = _arity_error(machine, match)
    elif isinstance(error, OverflowError | ZeroDivisionError | FloatingPointError):
        found = LangError("arithmetic_error", "the number is out of range")
    else:
        found = LangError("type_error", "a value of the wrong type was given")
    _locate(machine, found, error.__traceback__)
    return found


def _arity_error(machine: Machine, match: re.Match[str]) -> LangError:
    name, _, given, missing = match.groups()
    for code, info in machine.infos.items():
        if code.co_name == name.rpartition(".")[2]:
            shown = info.name or "the function"
            count = int(given) if given else info.arity - int(missing)
            wanted = f"{'at least ' if info.rest else ''}{info.arity}"
            noun = "argument" if wanted == "1" else "arguments"
            return LangError("arity_error", f"{shown} takes {wanted} {noun}, got {count}")
    row = library.ROWS.get(name)
    shown = row.name if row is not None else "the function"
    usage = row.usage if row is not None else ""
    count_text = f", got {given}" if given else ""
    return LangError(
        "arity_error",
        f"{shown} was called with a wrong number of arguments{count_text}",
        hint=usage,
    )


def _locate(machine: Machine, error: LangError, trace: TracebackType | None) -> None:
    """Find the innermost form: the last frame of translated code knows it by its line."""
    best: tuple[Source, At] | None = None
    while trace is not None:
        code = trace.tb_frame.f_code
        source = machine.sources.get(code.co_filename)
        if source is not None:
            best = source, _span(code, trace.tb_lasti)
        trace = trace.tb_next
    if best is not None:
        best[0].locate(error, best[1])


def _span(code: Any, instruction: int) -> At:
    """Source offsets of an instruction; lines of emitted code are offsets + 1."""
    for index, (line, end_line, _, _) in enumerate(code.co_positions()):
        if index * 2 == instruction:
            return (line or 1) - 1, (end_line or line or 1) - 1
    return 0, 0


def _commit(
    machine: Machine, outcome: Ending, known: dict[str, Value], history: tuple[Value, ...]
) -> Result:
    """The state of the next turn. A failed turn leaves everything as it was."""
    bounded(outcome.value, "the result", "result_bytes")
    if outcome.kind == "failed":
        return Result(ending="failed", value=outcome.value, memory=known, history=history)
    memory = dict(known)
    for generated, name in machine.names.items():
        if generated in machine.namespace:
            value = machine.namespace[generated]
            if machine.initial.get(generated, machine) is not value:
                memory[name] = value
    bounded(tuple(memory.values()), "what the definitions hold", "memory_bytes_kept")
    if outcome.kind == "returned":
        return Result(ending="returned", value=outcome.value, memory=memory, history=history)
    kept = (outcome.value, *history)[:HISTORY_DEPTH]
    while (
        kept and measured_bytes(kept, machine.limits.history_bytes) > machine.limits.history_bytes
    ):
        kept = kept[:-1]
    return Result(ending="value", value=outcome.value, memory=memory, history=kept)


def _finish(machine: Machine, result: Result, started: float) -> Result:
    root, limits = machine.root, machine.limits
    usage = Usage(
        fuel=max(root.fuel_used, 0),
        alloc_bytes=limits.alloc_bytes - root.alloc_left,
        output_bytes=limits.output_bytes - root.output_left,
        wall_ms=(time.monotonic() - started) * 1000,
    )
    return replace(
        result,
        prints=tuple(root.prints),
        tool_calls=tuple(machine.tool_calls),
        pmap_calls=tuple(machine.parallel),
        warnings=tuple(machine.warnings),
        summaries=dict(machine.summaries),
        usage=usage,
    )


def catalogue(machine: Machine, tools: Mapping[str, Tool]) -> dict[str, dict[str, Any]]:
    """Everything a program can name: built-ins, the run's tools and its definitions."""
    found = library.catalogue()
    for tool in tools.values():
        name = f"tool/{tool.name}"
        text = " ".join(filter(None, [tool.signature, tool.doc]))
        found[name] = library.about(name, "tool", text, usage=f"({name} {{…}})", cost="host")
    for name in machine.names.values():
        found.setdefault(name, library.about(name, "user", "A definition."))
    return found
