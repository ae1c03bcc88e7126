"""The single writer: group commit without a timer, and a turnstile between processes.

A caller hears only after its commit is on disk (WAL, synchronous=FULL: one fsync a commit). An idle
writer commits on its caller's own thread; while it commits, whoever comes waits in a queue that the
next commit takes whole; one job's error is its own, and a failed commit fails them all.

A coroutine commits on its loop's thread too, with all that are ready there, while commits are
quick: to wake a thread and be woken by it costs half a commit. Where they are not, or another
process has its turn, the writer's own thread commits: one slow commit keeps a loop, not two.

A batch is run without savepoints, which would copy every page it touches. When one of its jobs
raises, all of it is rolled back and run again, each job in a savepoint. So a job may be run twice:
it is a function of its transaction, and its effects leave it only through its result.

Every commit first looks whether the path still names the file that was opened: who writes on to a
store that was removed or restored beside it would lose all of it without a word.

Between processes two `flock`s stand before BEGIN IMMEDIATE: who wants to write queues at `next`,
then at `write`. SQLite's own busy retry sleeps and starves; the kernel's queue does not. A process
that is stopped inside holds the others up, but not for ever: they are told who it is.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from holdfast.domain.ports import Clock
from holdfast.errors import Corrupt, Unavailable
from holdfast.store.database import BUSY_MS, Translated
from holdfast.store.gates import Gate, held_by, holder
from holdfast.store.tx import Tx

T = TypeVar("T")


WAIT_S = 30.0
# A commit on an idle disk takes a tenth of this.
QUICK_S = 0.002
IN_A_ROW = 16  # commits, which take a few ms


class Turnstile:
    """Fair mutual exclusion between processes that write one store. For one thread at a time."""

    def __init__(self, folder: Path, *, wait_s: float = WAIT_S) -> None:
        self._next, self._write = Gate(folder / "next.lock"), Gate(folder / "write.lock")
        self._wait_s = wait_s

    def enter(self, *, wait: bool = True) -> int:
        """Take the turn, for `leave`. Raises `Unavailable`, naming who has it, when it is not given
        in time, and `Busy` at once when another process has it and there is no time to wait.
        """
        deadline = time.monotonic() + self._wait_s if wait else 0.0
        first = self._enter(self._next, deadline)
        try:
            return self._enter(self._write, deadline)
        finally:
            self._next.leave(first)

    def leave(self, turn: int) -> None:
        self._write.leave(turn)

    def close(self) -> None:
        self._next.close()
        self._write.close()

    def _enter(self, gate: Gate, deadline: float) -> int:
        turn = gate.enter(deadline)
        if turn is None and not deadline:
            raise Busy
        if turn is None:
            raise held_by(holder(self._write.path) or holder(self._next.path), self._wait_s)
        return turn


class Busy(Exception):
    """Another process has its turn at the turnstile, or holds SQLite's lock."""


class _Job(Generic[T]):
    """One unit of work: filled by whoever leads the commit, heard by whoever brought it."""

    __slots__ = ("done", "error", "future", "leads", "result", "work")

    def __init__(self, work: Callable[[Tx], T], future: asyncio.Future[T] | None = None) -> None:
        self.work = work
        self.result: T
        self.error: BaseException | None = None
        self.leads = False
        self.future = future
        self.done: threading.Event | None = None  # a thread that waits for the commit of another


class _Again(Exception):
    """One of several jobs raised, and all were rolled back: each runs again on its own account."""


class Writer:
    """Owns the writing connection. Thread-safe; close it once."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        clock: Clock,
        turnstile: Turnstile | None = None,
    ) -> None:
        self._connection, self._path, self._clock = connection, path, clock
        self._turnstile = turnstile
        self._name = str(path)
        self._file = _file_at(self._name)
        self._lock = threading.RLock()
        self._state = threading.Condition(self._lock)  # told when the lead changes hands
        self._queue: deque[_Job[Any]] = deque()
        self._led = False
        self._promised: _Job[Any] | None = None  # a coroutine will lead; who comes first may too
        self._quick = True
        self._leader = self._in_a_row = 0
        self._patient = True  # the connection waits for SQLite's own lock, as it was opened
        self._closed = False
        self._thread: threading.Thread | None = None
        self._thread_leads = False

    def run(self, work: Callable[[Tx], T]) -> T:
        """Do `work` in one transaction; returns after it is durable. Blocks the thread."""
        job = _Job(work)
        with self._lock:
            self._admit(job)
            if self._led and self._promised is None:
                job.done = threading.Event()
            else:
                self._led, self._promised, job.leads = True, None, True
        if job.done is not None:
            try:
                job.done.wait()
            except BaseException:  # Ctrl-C: nobody else may wait for a leader that has gone
                self._abandon(job)
                raise
        if job.leads:  # from the start, or handed over by the leader before
            self._lead()
        if job.error is not None:
            raise job.error
        return job.result

    async def arun(self, work: Callable[[Tx], T]) -> T:
        """Do `work` in one transaction; the event loop waits for one that is quick, see above."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        job = _Job(work, future)
        with self._lock:
            self._admit(job)
            if not self._led:
                self._led = True
                if self._quick:
                    self._promised = job
                else:
                    self._wake()
        if self._promised is job:
            try:
                if not self._alone():
                    await asyncio.sleep(0)  # those who are ready by now come into the same commit
            finally:  # also for a loop that ends here: others may have joined
                self._lead_if_promised(job)
        return await future

    def _alone(self) -> bool:
        """Whether the coroutine that made the last commit, and nobody with it, makes this one too.

        Nobody else was ready then, and to let the loop look again costs a tenth of a step. It looks
        all the same after `IN_A_ROW` of them: it has other work as well.
        """
        leader = id(asyncio.current_task())
        alone = leader == self._leader and self._in_a_row < IN_A_ROW
        self._leader, self._in_a_row = leader, self._in_a_row + 1 if alone else 0
        return alone

    def close(self) -> None:
        """Wait for the commit in progress, then close the connection. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._state.notify_all()
            promised = self._promised
        if promised is not None:
            self._lead_if_promised(promised)
        with self._lock:
            self._state.wait_for(lambda: not self._led)
            thread = self._thread
        if thread is not None:
            thread.join()
        self._connection.close()
        if self._turnstile is not None:
            self._turnstile.close()

    def _wake(self) -> None:
        """Let the writer's own thread lead. The caller holds the lock."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="holdfast-writer", daemon=True)
            self._thread.start()
        self._thread_leads = True
        self._state.notify_all()

    def _lead_if_promised(self, job: _Job[Any]) -> None:
        """Lead as promised, unless someone did meanwhile."""
        with self._lock:
            if self._promised is not job:
                return
            self._promised = None
        self._lead(wait=False)

    def _abandon(self, job: _Job[Any]) -> None:
        """The caller goes away: take its job back, or lead if the lead was just handed to it."""
        with self._lock:
            if not job.leads and job in self._queue:
                self._queue.remove(job)
        if job.leads:
            self._lead()

    def _admit(self, job: _Job[Any]) -> None:
        if self._closed:
            raise Unavailable("the store is closed")
        self._queue.append(job)

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._state.wait_for(lambda: self._thread_leads or (self._closed and not self._led))
                if not self._thread_leads:
                    return
                self._thread_leads = False
            self._lead()

    def _lead(self, *, wait: bool = True) -> None:
        """Commit one batch, then hand the lead to whoever came first meanwhile.

        Who may not wait for another process hands the lead over before.
        """
        batch: list[_Job[Any]] = []
        since_s = time.monotonic()
        try:
            self._commit(batch, wait=wait)
            self._quick = time.monotonic() - since_s < QUICK_S
            self._leader = self._leader if len(batch) == 1 else 0
        except Busy:
            with self._lock:
                self._wake()
            return
        except BaseException as error:
            if not batch:  # the store did not even let us begin
                self._take(batch)
            for job in batch:
                job.error = error
        with self._lock:
            if not self._queue:
                self._led = False
            elif (heir := self._queue[0]).done is not None:
                heir.leads = True
                heir.done.set()
            else:
                self._wake()
            if self._closed:
                self._state.notify_all()  # else it would wake an idle thread for nothing
        _tell(batch)

    def _take(self, batch: list[_Job[Any]]) -> None:
        """Fill the batch with all that wait, as late as can be: a turn may be long in coming."""
        with self._lock:
            batch.extend(self._queue)
            self._queue.clear()

    def _commit(self, batch: list[_Job[Any]], *, wait: bool) -> None:
        if self._turnstile is None:
            self._transact(batch, wait=wait)
            return
        turn = self._turnstile.enter(wait=wait)
        try:
            self._transact(batch, wait=wait)
        finally:
            self._turnstile.leave(turn)

    def _transact(self, batch: list[_Job[Any]], *, wait: bool) -> None:
        if _file_at(self._name) != self._file:
            raise Corrupt(
                f"the store {self._path} was removed or replaced while it was in use",
                hint="look at what is there now with `holdfast check`, then `holdfast resume`",
            )
        with Translated(self._path):
            try:
                self._transaction(self._run_all, batch, wait=wait)
            except _Again:
                self._transaction(self._run_each, batch, wait=True)

    def _run_all(self, batch: list[_Job[Any]]) -> None:
        """Take and run every job, or raise: the only job's error as it is, else `_Again`."""
        self._take(batch)
        tx = Tx(self._connection, self._clock.now_ms())
        try:
            for job in batch:
                job.result = job.work(tx)
        except Exception as error:
            if len(batch) == 1 or not self._connection.in_transaction:
                raise  # SQLite itself may have rolled everything back (full disk, I/O error)
            raise _Again from error

    def _run_each(self, batch: list[_Job[Any]]) -> None:
        """Run every job in a savepoint: one that raises takes back its own writes alone."""
        execute, now_ms = self._connection.execute, self._clock.now_ms()
        for job in batch:
            execute("SAVEPOINT job")
            try:
                with Translated(self._path):
                    job.result = job.work(Tx(self._connection, now_ms))
            except Exception as error:
                if not self._connection.in_transaction:
                    raise  # as above
                execute("ROLLBACK TO job")
                job.error = error
            execute("RELEASE job")

    def _transaction(
        self, run: Callable[[list[_Job[Any]]], None], batch: list[_Job[Any]], *, wait: bool
    ) -> None:
        execute = self._connection.execute
        self._begin(wait=wait)
        try:
            run(batch)
            execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                execute("ROLLBACK")
            raise

    def _begin(self, *, wait: bool) -> None:
        """Take SQLite's own lock, which a program that knows no turnstile may hold."""
        if self._patient is not wait:
            self._connection.execute(f"PRAGMA busy_timeout = {BUSY_MS if wait else 0}")
            self._patient = wait
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if not wait and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise Busy from error
            raise


def _file_at(path: str) -> tuple[int, int] | None:
    """Which file a path names: what is written to one that it no longer names is lost."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _tell(batch: list[_Job[Any]]) -> None:
    """Wake everyone whose job this commit held: one call into each event loop, not one a job."""
    here = _running_loop()
    elsewhere: dict[asyncio.AbstractEventLoop, list[_Job[Any]]] = {}
    for job in batch:
        if job.future is not None:
            loop = job.future.get_loop()
            if loop is here:
                _resolve(job)
            else:
                elsewhere.setdefault(loop, []).append(job)
        elif job.done is not None and not job.leads:
            job.done.set()
    for loop, jobs in elsewhere.items():
        try:
            loop.call_soon_threadsafe(_resolve, *jobs)
        except RuntimeError:
            continue  # the loop ended while we committed: nobody is left to hear it


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _resolve(*jobs: _Job[Any]) -> None:
    for job in jobs:
        assert job.future is not None
        if job.future.done():
            continue  # the caller was cancelled; its work is durable all the same
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
