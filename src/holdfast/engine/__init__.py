"""Use cases over the store, and the façade through which shells reach them.

A use case is a function whose first argument is a transaction: load → decide → write. `Engine` runs
one in a single transaction, from a synchronous caller (`call`) or a coroutine (`acall`), and the
caller hears only after it is durable. `read` runs a function on a snapshot, writing nothing.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from holdfast.domain.ports import Clock
from holdfast.engine.dispatch import brief, claim, holders, renew
from holdfast.engine.intake import add_plan, cancel, force, pause, resume, signal, submit
from holdfast.engine.journal import irreversible_before, record, step, steps_of
from holdfast.engine.plans import approve, reject, replace_plan
from holdfast.engine.reopen import reopen
from holdfast.engine.settle import expire, settle, shown
from holdfast.engine.undo import compensate
from holdfast.store import WAIT_S, Translated, Turnstile, Tx, Writer, open_reader, open_store

P = ParamSpec("P")
R = TypeVar("R")

__all__ = [
    "Engine",
    "add_plan",
    "approve",
    "brief",
    "cancel",
    "claim",
    "compensate",
    "expire",
    "force",
    "holders",
    "irreversible_before",
    "pause",
    "record",
    "reject",
    "renew",
    "reopen",
    "replace_plan",
    "resume",
    "settle",
    "shown",
    "signal",
    "step",
    "steps_of",
    "submit",
]


class Engine:
    """The in-process engine over one store. Thread-safe; close it once.

    With `shared`, other processes may write the same store, and a write waits for theirs at most
    `wait_s`; without (the simulator) the locks between processes are left out. Every write goes
    through the one writer.
    """

    def __init__(
        self, path: Path, clock: Clock, *, shared: bool = True, wait_s: float = WAIT_S
    ) -> None:
        self.path, self.clock = path, clock
        connection = open_store(path, now_ms=clock.now_ms())
        turnstile = Turnstile(path.parent, wait_s=wait_s) if shared else None
        self._writer = Writer(connection, path, clock, turnstile)
        self._reader = open_reader(path)
        self._reading = threading.Lock()

    def call(
        self, use_case: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run a use case in one transaction; returns once it is on disk."""
        return self._writer.run(partial(_apply, use_case, args, kwargs))

    async def acall(
        self, use_case: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """The same from a coroutine; whatever waits at the same time shares one commit."""
        return await self._writer.arun(partial(_apply, use_case, args, kwargs))

    async def beside(
        self, work: Awaitable[R], store: Callable[[], Awaitable[None]], *, within_s: float
    ) -> R:
        """Await `work`, which has no effect; do `store` meanwhile once `within_s` are over.

        Work that fails is stored beside as well: nothing may come after it that would store it.
        """
        storing: list[asyncio.Future[None]] = []

        def late() -> None:
            storing.append(asyncio.ensure_future(store()))

        timer = asyncio.get_running_loop().call_later(within_s, late)
        try:
            return await work
        except (Exception, asyncio.CancelledError):
            if not storing:
                late()
            raise
        finally:
            timer.cancel()
            for task in storing:
                await task

    def read(self, query: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a reading function on one consistent snapshot, beside the writer."""
        with self._reading, Translated(self.path):
            self._reader.execute("BEGIN")
            try:
                return query(Tx(self._reader, self.clock.now_ms()), *args, **kwargs)
            finally:
                self._reader.execute("ROLLBACK")

    def close(self) -> None:
        """Wait for the commit in progress and let the store go. Idempotent."""
        self._writer.close()
        with self._reading:
            self._reader.close()


def _apply(
    use_case: Callable[..., R], args: tuple[object, ...], kwargs: dict[str, object], tx: Tx
) -> R:
    return use_case(tx, *args, **kwargs)
