"""What can go wrong at the edge of the store: a connection that dies, fails or loses its reply.

Owns the simulated clock, the wrapped connection and the inline engine. It decides nothing about
when a fault happens: the world does. A dead connection stays dead, as a killed process would: what
it had not committed is gone when the file is opened again.
"""

import sqlite3
import types
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Literal, NoReturn

from holdfast.engine import Engine

Fault = Literal["crash", "fail", "lose"]

# Design §6, and what is counted when it really happens: a fault that was only wished for is none.
FAULTS = {
    "crash before a statement": "crash at the n-th statement",
    "crash after a statement": "crash at the n-th statement",
    "crash at a boundary": "crash at the n-th port boundary",
    "killed between statements": "crash anywhere else",
    "killed while a reply was held": "crash between a reply and its commit",
    "reply lost": "lost reply",
    "settled twice": "duplicate settle",
    "settled late": "late settle",
    "clock went forwards": "clock jump",
    "clock went back": "clock jump",
    "model was slow": "slow model",
    "model was malformed": "malformed model",
    "disk was full": "full disk",
    "killed during compensation": "kill during compensation",
}


class Killed(BaseException):
    """The process is gone at this very statement or boundary."""


class SimClock:
    """Time as the world says. `now_ms` may jump; `monotonic_s` never goes back."""

    def __init__(self, now_ms: int = 1_800_000_000_000) -> None:
        self._now_ms, self._monotonic_ms, self._latest_ms = now_ms, 0, now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_s(self) -> float:
        return self._monotonic_ms / 1000

    async def sleep(self, seconds: float) -> None:
        self.advance(round(seconds * 1000))
        await pause()

    def advance(self, ms: int) -> None:
        self._now_ms += ms
        self._monotonic_ms += ms

    def jump(self, ms: int) -> None:
        """Only the wall clock moves, forwards or back."""
        self._latest_ms = max(self._latest_ms, self._now_ms)
        self._now_ms += ms

    def set_right(self) -> None:
        """The wall clock is never behind a time that it has shown."""
        self._now_ms = max(self._latest_ms, self._now_ms)


@types.coroutine
def pause() -> Generator[None, None, None]:
    """Let the world choose who goes on."""
    yield


class Wire:
    """A connection with a fault waiting in it.

    `arm("crash", n)` ends the process at the n-th statement from now, before SQLite sees it, or
    after with `after`. `fail` refuses the statement as a full disk does. `lose` lets the next
    COMMIT happen and tells the caller that it did not.
    """

    def __init__(
        self, connection: sqlite3.Connection, happened: Counter[str] | None = None
    ) -> None:
        self._connection = connection
        self._happened: Counter[str] = Counter() if happened is None else happened
        self.statements = 0
        self.dead = False
        self._fault: Fault | None = None
        self._at, self._after = 0, False

    def arm(self, fault: Fault, in_statements: int = 1, *, after: bool = False) -> None:
        self._fault, self._at = fault, self.statements + in_statements
        self._after = after

    def disarm(self) -> None:
        self._fault = None

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if self.dead:
            raise Killed
        self.statements += 1
        fault = self._due(sql)
        if fault == "crash" and not self._after:
            self.die("crash before a statement")
        if fault == "fail":
            self._happened["disk was full"] += 1
            raise sqlite3.OperationalError("database or disk is full")
        cursor = self._connection.execute(sql, *values)
        if fault == "crash":
            self.die("crash after a statement")
        if fault == "lose":
            self._happened["reply lost"] += 1
            raise sqlite3.OperationalError("disk I/O error")
        return cursor

    def close(self) -> None:
        self._connection.close()

    def forget(self) -> None:
        """Let go of the file as a dead process does. A traceback may still hold a cursor, which
        would keep the transaction open behind a closed connection, so it is ended first."""
        if self._connection.in_transaction:
            self._connection.rollback()
        self._connection.close()

    def _due(self, sql: str) -> Fault | None:
        if self._fault is None:
            return None
        if self._fault == "lose":
            due = sql == "COMMIT"
        else:
            due = self.statements >= self._at and not sql.startswith("ROLLBACK")
        if not due:
            return None
        fault, self._fault = self._fault, None
        return fault

    def die(self, how: str) -> NoReturn:
        self._happened[how] += 1
        self.dead = True
        raise Killed


class SimEngine(Engine):
    """The real engine, inline: a coroutine's call runs on the spot, and everyone can look after."""

    def __init__(
        self,
        path: Path,
        clock: SimClock,
        observe: Callable[[], None],
        happened: Counter[str] | None = None,
    ) -> None:
        super().__init__(path, clock, shared=False)
        raw: Any = self._writer._connection
        raw.execute("PRAGMA synchronous = OFF")  # no power is lost here, only processes
        self._happened: Counter[str] = Counter() if happened is None else happened
        self.wire = Wire(raw, self._happened)
        self._deadly = 0
        self._writer._connection = self.wire  # type: ignore[assignment]  # the seam of all faults
        self._observe = observe
        self.closed = False

    def call(self, use_case: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().call(use_case, *args, **kwargs)
        finally:
            self._observe()

    async def acall(self, use_case: Any, *args: Any, **kwargs: Any) -> Any:
        await pause()
        return self.call(use_case, *args, **kwargs)

    @types.coroutine
    def beside(self, work: Any, store: Any, *, within_s: float) -> Generator[Any, Any, Any]:  # type: ignore[override]
        """The same in simulated time, and whoever dies in it dies with what was held."""
        late_s, late = self.clock.monotonic_s() + within_s, False
        try:
            while True:
                try:
                    yield work.send(None)
                except StopIteration as end:
                    return end.value
                except Exception:
                    if not late:
                        yield from store().__await__()
                    raise
                if not late and self.clock.monotonic_s() >= late_s:
                    late = True
                    self._happened["held too long"] += 1
                    yield from store().__await__()
        except (Killed, GeneratorExit):
            self._happened["killed while a reply was held"] += not late
            raise
        finally:
            work.close()

    def die_at_boundary(self, nth: int) -> None:
        """End the process at the n-th boundary from now, of a step or around a port's effect."""
        self._deadly = nth

    def boundary(self, name: str, key: str) -> None:
        """The journal's probe; ports call it as well."""
        if self._deadly:
            self._deadly -= 1
            if not self._deadly:
                self.wire.die("crash at a boundary")

    def calm(self) -> None:
        """Whatever fault still waits does not happen."""
        self._deadly = 0
        self.wire.disarm()

    def abandon(self) -> None:
        """What the kernel does to a killed process: descriptors close, nothing is committed."""
        self.wire.dead = self.closed = True
        self.wire.forget()
        self._reader.close()
