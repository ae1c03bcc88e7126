"""The five ways an exception ends a piece of a program unseen, each hooked, each chained.

Owns `sys.excepthook`, `threading.excepthook`, `sys.unraisablehook`, asyncio's handler of lost
exceptions and the end of a process of `multiprocessing`. Does not own what is recorded. Invariants:
the hook that stood before always runs, with the same arguments, whatever happens here; a failure
inside a hook is never reported through it; `uninstall` restores only what is still ours; asyncio
and multiprocessing are met when the program imports them, never imported for their own sake.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType, TracebackType
from typing import Any

_LOOPS, _PROCESSES = "asyncio.base_events", "multiprocessing.util"
_FIRST_AT_EXIT = 100  # the standard library's own finalizers stop at 15

# Records one exception: what, how it came, and the session it belongs to if that is known.
Record = Callable[[BaseException, str, str], object]


class Hooks:
    """Installed at most once a process; `record` must not raise. `session` is the ambient id.

    `ends` is called where a process of `multiprocessing` ends, which knows no `atexit`.
    """

    def __init__(
        self, record: Record, session: Callable[[], str], ends: Callable[[], None]
    ) -> None:
        self._record, self._session, self._ends = record, session, ends
        self._finder = _LateFinder({_LOOPS: self.patch_asyncio, _PROCESSES: self.meet_processes})
        self._tasks: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._before: dict[str, Any] = {}
        self._ours: dict[str, Any] = {}

    def install(self) -> None:
        self._set("excepthook", self._main)
        self._set("thread", self._thread)
        self._set("unraisable", self._unraisable)
        self._finder.install()

    def uninstall(self) -> None:
        for key, (owner, name) in self._places().items():
            if key in self._ours and getattr(owner, name) is self._ours[key]:
                setattr(owner, name, self._before[key])
        self._ours.clear()
        self._finder.uninstall()

    def patch_asyncio(self, loops: ModuleType) -> None:
        loop_class = loops.BaseEventLoop
        handle, create = loop_class.call_exception_handler, loop_class.create_task
        hooks = self

        def call_exception_handler(loop: Any, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if isinstance(error, BaseException):
                task = context.get("task") or context.get("future")
                hooks._record(error, "asyncio", hooks._session_of(task))
            handle(loop, context)

        def create_task(loop: Any, coro: Any, **named: Any) -> Any:
            task = create(loop, coro, **named)
            hooks._remember(task)
            return task

        self._set("asyncio", call_exception_handler)
        self._set("tasks", create_task)

    def meet_processes(self, util: ModuleType) -> None:
        """Look at what is being raised where a child ends: it prints that and calls no hook."""

        def begun(hooks: Hooks) -> None:
            before = sys.exc_info()[1]  # a child may have been forked where one was handled

            def ends() -> None:
                error = sys.exc_info()[1]
                exits = issubclass(type(error), SystemExit)
                if error is not None and error is not before and not exits:
                    hooks._record(error, "process", "")
                hooks._ends()

            if hooks._ours:
                util.Finalize(None, ends, exitpriority=_FIRST_AT_EXIT)

        util.register_after_fork(self, begun)
        process = sys.modules["multiprocessing.process"].current_process()
        if getattr(process, "_inheriting", False):  # spawned: it forks no more
            begun(self)

    def entered(self) -> None:
        """A session was opened or closed: note it for the asyncio task that runs, if any."""
        asyncio = sys.modules.get("asyncio")
        try:
            task = asyncio.current_task() if asyncio is not None else None
        except Exception:  # no loop runs here, or asyncio is half imported
            return
        if task is not None:
            self._remember(task)

    def _remember(self, task: Any) -> None:
        # A task class of the program's own may refuse to be hashed or weakly referenced.
        with suppress(Exception):
            self._tasks[task] = self._session()

    def _session_of(self, task: Any) -> str:
        with suppress(Exception):
            return self._tasks.get(task, "")
        return ""

    def _places(self) -> dict[str, tuple[Any, str]]:
        places: dict[str, tuple[Any, str]] = {
            "excepthook": (sys, "excepthook"),
            "thread": (threading, "excepthook"),
            "unraisable": (sys, "unraisablehook"),
        }
        loops = sys.modules.get(_LOOPS)
        if loops is not None:
            places["asyncio"] = (loops.BaseEventLoop, "call_exception_handler")
            places["tasks"] = (loops.BaseEventLoop, "create_task")
        return places

    def _set(self, key: str, hook: Any) -> None:
        owner, name = self._places()[key]
        self._before[key], self._ours[key] = getattr(owner, name), hook
        setattr(owner, name, hook)

    def _main(
        self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        self._record(error, "main", "")
        self._before["excepthook"](kind, error, traceback)

    def _thread(self, given: Any, /) -> None:
        if given.exc_value is not None and given.exc_type is not SystemExit:
            self._record(given.exc_value, "thread", "")
        self._before["thread"](given)

    def _unraisable(self, given: Any, /) -> None:
        if given.exc_value is not None:
            self._record(given.exc_value, "unraisable", "")
        self._before["unraisable"](given)


class _LateFinder(MetaPathFinder):
    """Hands a module to what waits for it: now if it is loaded, else when the program loads it."""

    def __init__(self, meet: Mapping[str, Callable[[ModuleType], None]]) -> None:
        self._meet = dict(meet)

    def install(self) -> None:
        for name in [name for name in self._meet if name in sys.modules]:
            self._meet.pop(name)(sys.modules[name])
        if self._meet:
            sys.meta_path.insert(0, self)

    def uninstall(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        met = self._meet.pop(fullname, None)
        if met is None:
            return None
        if not self._meet:
            self.uninstall()
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                met(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]  # this loader only
        return spec
