"""The four ways an exception ends a piece of a program unseen, each hooked, each chained.

Owns `sys.excepthook`, `threading.excepthook`, `sys.unraisablehook` and asyncio's handler of lost
exceptions. Does not own what is recorded. Invariants: the hook that stood before always runs, with
the same arguments, whatever happens here; a failure inside a hook is never reported through it;
`uninstall` restores only what is still ours; asyncio is patched when the program imports it, never
imported for its own sake.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType, TracebackType
from typing import Any

_LOOPS = "asyncio.base_events"

# Records one exception: what, how it came, and the session it belongs to if that is known.
Record = Callable[[BaseException, str, str], object]


class Hooks:
    """Installed at most once a process; `record` must not raise. `session` is the ambient id."""

    def __init__(self, record: Record, session: Callable[[], str]) -> None:
        self._record, self._session = record, session
        self._finder = _AsyncioFinder(self)
        self._tasks: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._before: dict[str, Any] = {}
        self._ours: dict[str, Any] = {}

    def install(self) -> None:
        self._set("excepthook", sys, "excepthook", self._main)
        self._set("thread", threading, "excepthook", self._thread)
        self._set("unraisable", sys, "unraisablehook", self._unraisable)
        loops = sys.modules.get(_LOOPS)
        if loops is not None:
            self.patch_asyncio(loops)
        else:
            sys.meta_path.insert(0, self._finder)

    def uninstall(self) -> None:
        for key, (owner, name) in self._places().items():
            if key in self._ours and getattr(owner, name) is self._ours[key]:
                setattr(owner, name, self._before[key])
        self._ours.clear()
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)

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

        self._set("asyncio", loop_class, "call_exception_handler", call_exception_handler)
        self._set("tasks", loop_class, "create_task", create_task)

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

    def _set(self, key: str, owner: Any, name: str, hook: Any) -> None:
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


class _AsyncioFinder(MetaPathFinder):
    """Waits for the program to import asyncio's loops, then patches them and steps aside."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _LOOPS:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            load, hooks = spec.loader.exec_module, self._hooks

            def exec_module(module: ModuleType) -> None:
                load(module)
                hooks.patch_asyncio(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]  # this loader only
        return spec
