"""What a running program does to the world outside pure values: prints, tools, tasks, branches.

Owns `Machine` (one run) and `Branch` (one line of execution in it: its own share of fuel, its
position path, its prints). Branches of `pmap` are threads, but only one of them runs Lisp code at a
time: it holds the baton and lets go of it while the host works, so tool calls are in flight
together and everything else is as deterministic as one thread. On a switch the branch's fuel cell
and its view of the definitions are swapped in.

Paths name positions, never completion order: "12:3/0" is the first call of the form at line 12,
column 3; "12:3/0/b2/…" is in the third branch of the pmap there; "task:id#0/…" is inside a task.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import CodeType
from typing import Any

from holdfast.lang.api import (
    Hit,
    Host,
    LangError,
    Limits,
    ParallelRecord,
    ToolRecord,
    Value,
    over_limit,
)
from holdfast.lang.meter import ACTIVE, Meter
from holdfast.lang.naming import FnInfo, global_name
from holdfast.lang.portable import bounded, from_host, measured_bytes, tool_args
from holdfast.lang.reader import Source

_ABSENT = object()
TASK_WAIT_S = 0.5
_PATH_SIGNS = str.maketrans({"%": "%25", "#": "%23", "/": "%2F"})


Job = Callable[[], Value]


class Ending(BaseException):
    """`return` and `fail` unwind the program; a BaseException so that no handler keeps them."""

    def __init__(self, kind: str, value: Value) -> None:
        self.kind = kind
        self.value = value


class Branch(Meter):
    """One line of execution. The root branch is the program itself."""

    def __init__(self, machine: Machine, limits: Limits, path: str = "") -> None:
        super().__init__(limits)
        self.machine = machine
        self.path = path
        self.calls: dict[str, int] = {}
        self.prints: list[str] = []
        self.saved_cell = 0
        self.definitions: dict[str, Any] = {}
        self.inside = False  # holds the baton

    def position(self, place: str) -> str:
        """The path of the next call made by the form at `place`."""
        # Counted per path: a task that is a hit skips its calls and must not shift those after it.
        at = f"{self.path}{place}"
        count = self.calls.get(at, 0)
        self.calls[at] = count + 1
        return f"{at}/{count}"

    def definition(self, name: str) -> Value:
        generated = global_name(name)
        if generated not in self.machine.namespace:
            self.machine.bind(generated, name)
        found = self.machine.namespace.get(generated, _ABSENT)
        return super().definition(name) if found is _ABSENT else found


def current() -> Branch:
    found = ACTIVE.get()
    assert isinstance(found, Branch)
    return found


class Machine:
    """One run: the host, the namespace of the translated code, and the records of what happened."""

    def __init__(self, host: Host, limits: Limits) -> None:
        self.host = host
        self.limits = limits
        self.namespace: dict[str, Any] = {}
        self.names: dict[str, str] = {}
        self.warnings: list[str] = []
        self.summaries: dict[str, str] = {}
        self.tool_calls: list[ToolRecord] = []
        self.parallel: list[ParallelRecord] = []
        # Tasks being evaluated, with their branch and what to wait for. Changed under the baton.
        self.open_tasks: dict[str, tuple[Branch, threading.Event]] = {}
        self.baton = threading.Lock()
        self.slots = threading.Semaphore(max(limits.pmap_workers - 1, 0))
        # Why no branch may go on, as often as one comes back to hear it.
        self.over: Callable[[], LangError] | None = None
        self.initial: dict[str, Any] = {}
        self.sources: dict[str, Source] = {}
        self.infos: dict[CodeType, FnInfo] = {}
        # Gives stored functions and those of earlier turns their place in this run.
        self.adopt: Callable[[Value], Value] = _as_it_is
        # Brings in a definition of an earlier turn that only a var names.
        self.bind: Callable[[str, str], None] = _not_bound
        self.catalog: Callable[[], dict[str, dict[str, Any]]] = dict
        self.root = Branch(self, limits)

    # --- the baton ------------------------------------------------------------------------------

    def enter(self, branch: Branch) -> None:
        """Take the baton and put the branch's own state in place."""
        self.baton.acquire()
        if self.over:
            self.baton.release()
            raise self.over()
        branch.inside = True
        branch.cell[0] = branch.saved_cell
        for name, value in branch.definitions.items():
            if value is _ABSENT:
                self.namespace.pop(name, None)
            else:
                self.namespace[name] = value

    def leave(self, branch: Branch) -> None:
        """Let go of the baton; nothing to do for a branch that came back after the end."""
        if not branch.inside:
            return
        branch.inside = False
        branch.saved_cell = branch.cell[0]
        branch.definitions = self.definitions()
        self.baton.release()

    def end(self) -> None:
        """The program is over; a branch that still waits for its host ends when it comes back."""
        self.over = self.over or partial(LangError, "timeout", "the program is over")
        self.leave(self.root)

    def definitions(self) -> dict[str, Any]:
        return {name: self.namespace.get(name, _ABSENT) for name in self.names}

    @contextmanager
    def outside(self, branch: Branch) -> Iterator[None]:
        """The host works: other branches may run meanwhile, and the clock is read after."""
        self.leave(branch)
        try:
            yield
        finally:
            self.enter(branch)
        branch.check_clock()

    # --- parallel -------------------------------------------------------------------------------

    def run_all(self, kind: Any, place: str, jobs: Sequence[Job]) -> tuple[Value, ...]:
        """Every job in its own branch; results in order. The first failing branch fails all."""
        parent = current()
        started = time.monotonic()
        path = parent.position(place)
        branches = self._branches(parent, path, len(jobs))
        group = _Group(self, branches, jobs)
        threads: list[threading.Thread] = []
        while len(threads) < min(len(jobs), self.limits.pmap_workers) - 1:
            if not self.slots.acquire(blocking=False):
                break
            threads.append(threading.Thread(target=group.work, args=(True,), daemon=True))
        self.leave(parent)
        threads = self._started(threads)
        group.work(False)
        late = group.wait(threads, branches[0].deadline if branches else parent.deadline)
        for _ in threads:
            self.slots.release()
        self.enter(parent)
        ACTIVE.set(parent)
        for branch in branches:
            self._refund(parent, branch)
        failures = sum(1 for failure in group.failures if failure is not None)
        done = sum(1 for value in group.values if value is not _ABSENT)
        self.parallel.append(
            ParallelRecord(
                path=path,
                type=kind,
                count=len(jobs),
                success_count=done,
                error_count=failures,
                ms=(time.monotonic() - started) * 1000,
            )
        )
        if late:
            limit = branches[0].deadline_name
            text = f"{kind} ran longer than {getattr(self.limits, limit):g} s"
            self.over = partial(over_limit, limit, text, code="timeout")
            raise self.over()
        for index, failure in enumerate(group.failures):
            if failure is not None:
                raise _branch_failure(failure, kind, index)
        return tuple(group.values)

    def _started(self, threads: list[threading.Thread]) -> list[threading.Thread]:
        """The helpers that could start; with no room for more stacks, fewer do the work."""
        for index, thread in enumerate(threads):
            try:
                thread.start()
            except RuntimeError:
                for _ in threads[index:]:
                    self.slots.release()
                return threads[:index]
        return threads

    def _branches(self, parent: Branch, path: str, count: int) -> list[Branch]:
        """Fresh branches, each with an equal share of what the parent has left."""
        parent.saved_cell = parent.cell[0]
        fuel = parent.fuel_left + parent.cell[0]
        parent.fuel_left = parent.cell[0] = 0
        alloc, parent.alloc_left = parent.alloc_left, 0
        definitions = self.definitions()
        found = []
        for index in range(count):
            branch = Branch(self, self.limits, f"{path}/b{index}/")
            branch.cell = parent.cell
            branch.fuel_left = fuel // count + (index < fuel % count)
            branch.alloc_left = alloc // count + (index < alloc % count)
            branch.output_left, branch.prints_left = parent.output_left, parent.prints_left
            pmap_deadline = time.monotonic() + self.limits.pmap_s
            branch.deadline = min(parent.deadline, pmap_deadline)
            own = pmap_deadline < parent.deadline
            branch.deadline_name = "pmap_s" if own else parent.deadline_name
            branch.definitions = dict(definitions)
            found.append(branch)
        if not found:
            parent.fuel_left, parent.alloc_left = fuel, alloc
        return found

    def _refund(self, parent: Branch, branch: Branch) -> None:
        parent.fuel_left += branch.fuel_left + branch.saved_cell
        parent.alloc_left += branch.alloc_left
        for text in branch.prints:
            self.print_text(parent, text)

    # --- output and tools -----------------------------------------------------------------------

    def print_text(self, branch: Branch, text: str) -> None:
        branch.prints_left -= 1
        branch.output_left -= len(text)
        if branch.output_left < 0 or branch.prints_left < 0:
            limit = "output_bytes" if branch.output_left < 0 else "prints"
            raise over_limit(
                limit, f"the program printed more than {getattr(self.limits, limit)} ({limit})"
            )
        branch.prints.append(text)
        if branch is self.root:
            self.host.printed(text)

    def call_tool(self, place: str, name: str, args: Value = None) -> Value:
        branch = current()
        path = branch.position(place)
        bounded(args, f"what is given to tool {name}", "tool_result_bytes")
        given = tool_args(name, args)
        branch.spend(1)
        started = time.monotonic()
        value: Value = None
        error = ""
        try:
            with self.outside(branch):
                value = self.host.call_tool(path, name, given)
            value = self.adopt(from_host(value))
            bounded(value, f"the result of tool {name}", "tool_result_bytes")
            branch.allocate(measured_bytes(value, self.limits.tool_result_bytes))
        except LangError as failure:
            error = failure.message
            raise
        finally:
            ms = (time.monotonic() - started) * 1000
            self.tool_calls.append(
                ToolRecord(path=path, name=name, args=given, value=value, error=error, ms=ms)
            )
        return value

    # --- tasks ----------------------------------------------------------------------------------

    def task_begin(self, place: str, id: str, source: str) -> tuple[Value] | None:
        branch = current()
        path = branch.position(place)
        self._await_task(branch, id)
        with self.outside(branch):
            found = self.host.task_begin(path, id, source)
        if isinstance(found, Hit):
            self._close_task(branch, id)
            if found.warning:
                self.warnings.append(found.warning)
            return (self.adopt(from_host(found.value)),)
        branch.path = f"{branch.path}{_in_task(id)}{found.generation}/"
        return None

    def task_done(self, place: str, id: str, source: str, value: Value) -> None:
        branch = current()
        branch.path = branch.path[: branch.path.rindex(_in_task(id))]
        path = f"{branch.path}{place}"
        bounded(value, f"the value of task {id}", "memory_bytes_kept")
        with self.outside(branch):
            self.host.task_done(path, id, source, value)
        self._close_task(branch, id)

    def _await_task(self, branch: Branch, id: str) -> None:
        """Wait while another branch evaluates the task; one around this branch is no other."""
        while (found := self.open_tasks.get(id)) and not _is_within(branch, found[0]):
            self.leave(branch)
            found[1].wait(TASK_WAIT_S)
            self.enter(branch)
            branch.check_clock()
        self.open_tasks.setdefault(id, (branch, threading.Event()))

    def _close_task(self, branch: Branch, id: str) -> None:
        found = self.open_tasks.get(id)
        if found is not None and found[0] is branch:
            del self.open_tasks[id]
            found[1].set()

    def abandon(self, branch: Branch) -> None:
        """The branch is over: what it left unfinished is free for others."""
        for id in [id for id, (owner, _) in self.open_tasks.items() if owner is branch]:
            self._close_task(branch, id)

    def task_reset(self, place: str, id: str) -> None:
        branch = current()
        path = branch.position(place)
        with self.outside(branch):
            self.host.task_reset(path, id)


def _in_task(id: str) -> str:
    """The part of a path that says which task; no id can look like another's path."""
    return f"task:{id.translate(_PATH_SIGNS)}#"


def _is_within(branch: Branch, owner: Branch) -> bool:
    return branch is owner or branch.path.startswith(f"{owner.path}")


def _as_it_is(value: Value) -> Value:
    return value


def _not_bound(generated: str, name: str) -> None:
    return None


class _Group:
    """The branches of one pmap and who takes which next."""

    def __init__(self, machine: Machine, branches: list[Branch], jobs: Sequence[Job]) -> None:
        self.machine = machine
        self.branches = branches
        self.jobs = jobs
        self.values: list[Value] = [_ABSENT] * len(jobs)
        self.failures: list[BaseException | None] = [None] * len(jobs)
        self.lock = threading.Lock()
        self.next = 0
        self.failed = False

    def take(self) -> int | None:
        with self.lock:
            if self.failed or self.next >= len(self.jobs):
                return None
            self.next += 1
            return self.next - 1

    def work(self, own_thread: bool) -> None:
        while (index := self.take()) is not None:
            branch = self.branches[index]
            ACTIVE.set(branch)
            try:
                self.machine.enter(branch)
            except LangError as error:
                self.failures[index] = error
                return
            try:
                self.values[index] = self.jobs[index]()
            except (Exception, Ending) as error:
                self.failures[index] = error
                self.failed = True
            finally:
                self.machine.abandon(branch)
                self.machine.leave(branch)

    def wait(self, threads: list[threading.Thread], deadline: float) -> bool:
        """Join the helpers; true when one is still busy a moment after the deadline."""
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0) + 0.05)
        return any(thread.is_alive() for thread in threads)


def _branch_failure(failure: BaseException, kind: str, index: int) -> BaseException:
    """`return` and `fail` mean the whole program, which a branch cannot end."""
    if isinstance(failure, Ending):
        return LangError(
            "pmap_error",
            f"{'return' if failure.kind == 'returned' else 'fail'} inside branch {index} of {kind}",
            hint="give the branch's result as its value and return after the " + kind,
        )
    return failure
