"""The single writer: group commit, whose error is whose, closing, fairness of processes."""

import asyncio
import itertools
import multiprocessing
import shutil
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.adapters.clock import SystemClock
from holdfast.engine import Engine
from holdfast.errors import Corrupt, Refused, Unavailable
from holdfast.store import Turnstile, Tx, Writer, open_store
from holdfast.store import writer as writers
from simulate.faults import SimClock, Wire


class Bench:
    """A writer over a real store whose connection can fail, and a gate that holds a commit."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "holdfast.db"
        connection = open_store(self.path, now_ms=1)
        connection.execute("PRAGMA synchronous = OFF")
        self.wire = Wire(connection)
        wire: Any = self.wire
        self.writer = Writer(wire, self.path, SimClock())
        self.entered, self.gate = threading.Event(), threading.Event()

    def hold(self, tx: Tx) -> None:
        self.entered.set()
        assert self.gate.wait(20)

    def busy(self) -> threading.Thread:
        """Start a commit that waits for the gate; returns once it is inside."""
        thread = threading.Thread(target=self.writer.run, args=(self.hold,))
        thread.start()
        assert self.entered.wait(20)
        return thread

    def queued(self, count: int) -> None:
        """Wait until that many jobs queue behind the commit."""
        while len(self.writer._queue) < count:
            threading.Event().wait(0.001)

    def blobs(self) -> int:
        reader = sqlite3.connect(self.path)
        try:
            return int(reader.execute("SELECT count(*) FROM blobs").fetchone()[0])
        finally:
            reader.close()

    def begins(self, work: Callable[[], None]) -> int:
        seen: list[str] = []
        self.wire._connection.set_trace_callback(seen.append)
        work()
        self.wire._connection.set_trace_callback(None)
        return sum(text.startswith("BEGIN") for text in seen)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.gate.set()
    made.writer.close()


def put(content: bytes) -> Callable[[Tx], str]:
    return lambda tx: tx.put(content)


def refuse(tx: Tx) -> None:
    tx.put(b"of the refused")
    raise Refused("no")


def test_an_idle_writer_commits_on_the_callers_own_thread(bench: Bench) -> None:
    assert bench.writer.run(lambda tx: threading.current_thread()) is threading.current_thread()


@pytest.mark.parametrize(("quick_s", "here"), [(0.0, False), (3600.0, True)])
def test_a_coroutine_commits_on_its_loops_thread_while_commits_are_quick(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, quick_s: float, here: bool
) -> None:
    monkeypatch.setattr(writers, "QUICK_S", quick_s)

    async def both() -> list[threading.Thread]:
        return [await bench.writer.arun(lambda tx: threading.current_thread()) for _ in range(2)]

    first, second = asyncio.run(both())
    assert first is threading.current_thread(), "nothing is known of this disk yet"
    assert (second is threading.current_thread()) is here


def test_coroutines_that_are_ready_at_once_share_a_commit_of_their_loop(bench: Bench) -> None:
    async def work() -> None:
        await asyncio.gather(*(bench.writer.arun(put(b"c%d" % n)) for n in range(20)))

    assert bench.begins(lambda: asyncio.run(work())) == 1
    assert bench.blobs() == 20


def test_a_coroutine_that_commits_alone_does_not_ask_each_time_who_else_is_ready(
    bench: Bench,
) -> None:
    async def work(commits: int) -> int:
        """How often the loop came round while one coroutine made so many commits."""
        rounds = -1  # the first is that in which the commits begin

        async def count() -> None:
            nonlocal rounds
            while True:
                rounds += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        await asyncio.sleep(0)
        for n in range(commits):
            await bench.writer.arun(put(b"c%d" % n))
        counting.cancel()
        return rounds

    assert asyncio.run(work(writers.IN_A_ROW + 1)) == 1
    assert asyncio.run(work(writers.IN_A_ROW + 2)) == 2, "the loop has other work as well"
    assert asyncio.run(work(3 * (writers.IN_A_ROW + 1))) == 3


def test_who_is_ready_beside_a_coroutine_that_was_alone_comes_into_its_commit(bench: Bench) -> None:
    async def work() -> None:
        async def steps(who: int) -> None:
            for n in range(5):
                await bench.writer.arun(put(b"%d %d" % (who, n)))

        await steps(0)
        await asyncio.gather(*(steps(who) for who in range(1, 5)))

    assert bench.begins(lambda: asyncio.run(work())) == 5 + 5
    assert bench.blobs() == 25


@pytest.mark.parametrize("first", ["run", "close", "cancel"])
def test_who_comes_before_a_coroutine_has_begun_its_commit_does_not_wait_for_it(
    bench: Bench, first: str
) -> None:
    """It could wait for ever: here both are on one thread."""

    async def work() -> None:
        job = asyncio.create_task(bench.writer.arun(put(b"promised")))
        await asyncio.sleep(0)
        assert bench.blobs() == 0
        match first:
            case "run":
                bench.writer.run(put(b"between"))
            case "close":
                bench.writer.close()
            case _:
                job.cancel()
        if first == "cancel":
            with pytest.raises(asyncio.CancelledError):
                await job
        else:
            await job

    asyncio.run(work())
    assert bench.blobs() == 1 + (first == "run")


@contextmanager
def with_a_turn(path: Path) -> Iterator[None]:
    other = Turnstile(path.parent)
    turn = other.enter()
    yield
    other.leave(turn)
    other.close()


@contextmanager
def with_the_lock(path: Path) -> Iterator[None]:
    """As any program that opens the file may, without a turn."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


@pytest.mark.parametrize("held", [with_a_turn, with_the_lock])
def test_a_loop_does_not_wait_for_another_process(
    tmp_path: Path, held: Callable[[Path], AbstractContextManager[None]]
) -> None:
    path = tmp_path / "holdfast.db"
    writer = Writer(open_store(path, now_ms=1), path, SimClock(), Turnstile(tmp_path))

    async def work() -> threading.Thread:
        with held(path):
            job = asyncio.create_task(writer.arun(lambda tx: threading.current_thread()))
            while not writer._thread:  # noqa: ASYNC110  its start is no event
                await asyncio.sleep(0)
            assert not job.done()
        return await job

    assert asyncio.run(work()) is writer._thread
    writer.close()


def test_all_that_wait_share_the_next_commit_threads_and_coroutines_alike(bench: Bench) -> None:
    held = bench.busy()
    threads = [
        threading.Thread(target=bench.writer.run, args=(put(b"t%d" % n),)) for n in range(20)
    ]

    async def coroutines() -> list[str]:
        jobs = [asyncio.create_task(bench.writer.arun(put(b"c%d" % n))) for n in range(20)]
        return await asyncio.gather(*jobs)

    def work() -> None:
        for thread in threads:
            thread.start()
        loop = threading.Thread(target=lambda: asyncio.run(coroutines()))
        loop.start()
        bench.queued(40)
        bench.gate.set()
        for thread in (*threads, loop, held):
            thread.join(20)

    assert bench.begins(work) == 1, "one transaction for forty jobs"
    assert bench.blobs() == 40


def test_many_callers_without_a_pause_lose_nothing(bench: Bench) -> None:
    def from_thread(who: int) -> None:
        for n in range(25):
            bench.writer.run(put(b"t%d.%d" % (who, n)))

    async def from_loop() -> None:
        async def one(who: int) -> None:
            for n in range(25):
                await bench.writer.arun(put(b"c%d.%d" % (who, n)))

        await asyncio.gather(*(one(who) for who in range(4)))

    threads = [threading.Thread(target=from_thread, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    asyncio.run(from_loop())
    for thread in threads:
        thread.join(20)
    assert bench.blobs() == 200


def test_one_jobs_error_is_its_own_and_what_it_wrote_is_taken_back(bench: Bench) -> None:
    held = bench.busy()

    async def both() -> list[Any]:
        jobs = [bench.writer.arun(put(b"good")), bench.writer.arun(refuse)]
        waiting = asyncio.gather(*jobs, return_exceptions=True)
        await asyncio.sleep(0)
        bench.gate.set()
        return await waiting

    good, bad = asyncio.run(both())
    held.join(20)
    assert isinstance(good, str)
    assert isinstance(bad, Refused)
    assert bench.blobs() == 1


def test_a_failed_commit_fails_every_job_in_it(bench: Bench) -> None:
    held = bench.busy()
    errors: list[BaseException] = []

    def one(n: int) -> None:
        try:
            bench.writer.run(put(b"%d" % n))
        except Unavailable as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    bench.queued(5)
    # The COMMIT of the held one, a BEGIN, a statement of each job, and the COMMIT that fails.
    bench.wire.arm("fail", 1 + 1 + 5 + 1)
    bench.gate.set()
    for thread in (*threads, held):
        thread.join(20)
    assert len(errors) == 5
    assert {getattr(error, "code", "") for error in errors} == {"disk_full"}
    assert bench.blobs() == 0
    bench.writer.run(put(b"afterwards"))
    assert bench.blobs() == 1


class Batch:
    """Twenty jobs that share one commit; the one in the middle raises. Counts each job's runs."""

    SIZE, BAD = 20, 10

    def __init__(self, bench: Bench, error: Callable[[Tx], BaseException]) -> None:
        self.bench, self._error = bench, error
        self.runs: Counter[int] = Counter()
        self.results: dict[int, object] = {}

    def together(self) -> None:
        """Bring them all while a commit is held, and wait for every answer."""
        held = self.bench.busy()
        threads = []
        for n in range(self.SIZE):
            threads.append(threading.Thread(target=self._bring, args=(n,)))
            threads[-1].start()
            self.bench.queued(n + 1)
        self.bench.gate.set()
        for thread in (*threads, held):
            thread.join(20)

    def bad(self) -> object:
        return self.results[self.BAD]

    def good(self) -> list[object]:
        return [self.results[n] for n in range(self.SIZE) if n != self.BAD]

    def _bring(self, n: int) -> None:
        try:
            self.results[n] = self.bench.writer.run(partial(self._work, n))
        except BaseException as error:
            self.results[n] = error

    def _work(self, n: int, tx: Tx) -> tuple[int, str]:
        self.runs[n] += 1
        before = self.blobs_seen(tx)
        digest = tx.put(b"job %d" % n)
        if n == self.BAD:
            raise self._error(tx)
        return before, digest

    @staticmethod
    def blobs_seen(tx: Tx) -> int:
        return int(tx._connection.execute("SELECT count(*) FROM blobs").fetchone()[0])


def check_that_only_one_of_the_batch_failed(batch: Batch) -> None:
    assert isinstance(batch.bad(), Refused)
    assert batch.bench.blobs() == batch.SIZE - 1
    seen = [result[0] for result in batch.good() if isinstance(result, tuple)]
    assert seen == list(range(batch.SIZE - 1)), "each saw what those before it wrote, once"


def test_one_of_twenty_that_raises_takes_nothing_of_the_others_with_it(bench: Bench) -> None:
    batch = Batch(bench, lambda tx: Refused("no"))
    batch.together()
    check_that_only_one_of_the_batch_failed(batch)
    # Those up to the bad one were rolled back and run again; the others had not been run.
    wanted = {n: 2 if n <= batch.BAD else 1 for n in range(batch.SIZE)}
    assert batch.runs == wanted


def test_a_batch_in_which_nobody_raises_runs_once_and_without_savepoints(bench: Bench) -> None:
    seen: list[str] = []
    batch = Batch(bench, lambda tx: Refused("no"))
    batch.BAD = -1
    bench.wire._connection.set_trace_callback(seen.append)
    batch.together()
    bench.wire._connection.set_trace_callback(None)
    assert set(batch.runs.values()) == {1}
    assert not [text for text in seen if "SAVEPOINT" in text]


def test_a_batch_that_is_not_run_again_loses_the_work_of_the_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check above is able to fail: this writer rolls back and forgets to begin again."""
    monkeypatch.setattr(Writer, "_run_each", lambda self, batch, now_ms: None)
    batch = Batch(bench, lambda tx: Refused("no"))
    batch.together()
    with pytest.raises(AssertionError):
        check_that_only_one_of_the_batch_failed(batch)


def test_a_disk_that_is_full_for_one_job_fails_that_job_alone(bench: Bench) -> None:
    batch = Batch(bench, lambda tx: sqlite3.OperationalError("database or disk is full"))
    batch.together()
    assert getattr(batch.bad(), "code", "") == "disk_full"
    assert bench.blobs() == batch.SIZE - 1


def test_a_batch_that_sqlite_itself_gave_up_fails_whole_and_is_not_run_again(bench: Bench) -> None:
    def give_up(tx: Tx) -> BaseException:
        tx._connection.execute("ROLLBACK")
        return sqlite3.OperationalError("database or disk is full")

    batch = Batch(bench, give_up)
    batch.together()
    assert {getattr(result, "code", "") for result in batch.results.values()} == {"disk_full"}
    assert len(batch.results) == batch.SIZE
    assert set(batch.runs.values()) == {1}
    assert bench.blobs() == 0
    bench.writer.run(put(b"afterwards"))
    assert bench.blobs() == 1


def test_the_error_of_a_job_that_is_alone_leaves_no_transaction_behind(bench: Bench) -> None:
    with pytest.raises(Refused):
        bench.writer.run(refuse)
    assert not bench.wire.in_transaction
    assert bench.blobs() == 0


def test_a_transaction_that_sqlite_itself_gave_up_is_told_to_all(bench: Bench) -> None:
    def gives_up(tx: Tx) -> None:
        tx._connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("database or disk is full")

    with pytest.raises(Unavailable, match="nothing of this step was stored"):
        bench.writer.run(gives_up)
    bench.writer.run(put(b"still works"))


def test_a_cancelled_caller_is_not_told_but_its_work_is_durable(bench: Bench) -> None:
    held = bench.busy()

    async def cancelled() -> None:
        job = asyncio.create_task(bench.writer.arun(put(b"kept")))
        await asyncio.sleep(0)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        bench.gate.set()
        await bench.writer.arun(put(b"next"))

    asyncio.run(cancelled())
    held.join(20)
    assert bench.blobs() == 2


def test_a_loop_that_ended_meanwhile_does_not_stop_the_writer(bench: Bench) -> None:
    held = bench.busy()

    async def leave() -> None:
        job = asyncio.ensure_future(bench.writer.arun(put(b"kept")))
        await asyncio.sleep(0)
        job.cancel()

    asyncio.run(leave())
    bench.gate.set()
    held.join(20)
    bench.writer.run(put(b"next"))
    assert bench.blobs() == 2


def test_closing_waits_for_the_commit_and_refuses_what_comes_later(bench: Bench) -> None:
    held = bench.busy()
    closing = threading.Thread(target=bench.writer.close)
    closing.start()
    while not bench.writer._closed:
        threading.Event().wait(0.001)
    with pytest.raises(Unavailable, match="closed"):
        bench.writer.run(put(b"late"))
    bench.gate.set()
    closing.join(20)
    held.join(20)
    bench.writer.close()
    assert bench.blobs() == 0


def test_a_writer_whose_thread_idles_closes_too(bench: Bench) -> None:
    bench.writer._quick = False
    asyncio.run(bench.writer.arun(put(b"x")))
    bench.writer.close()
    with pytest.raises(Unavailable):
        asyncio.run(bench.writer.arun(put(b"y")))


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_nothing_is_written_to_a_store_that_its_path_no_longer_names(
    bench: Bench, tmp_path: Path, replaced: bool
) -> None:
    aside = tmp_path / "aside.db"
    bench.path.rename(aside)
    if replaced:
        shutil.copy(aside, bench.path)
    with pytest.raises(Corrupt, match="removed or replaced"):
        bench.writer.run(put(b"after"))
    aside.rename(bench.path)
    bench.writer.run(put(b"before"))
    bench.writer.run(put(b"again"))
    assert bench.blobs() == 2


def _contend(folder: str, name: str, stop: Any) -> None:
    path = Path(folder) / "holdfast.db"
    connection = open_store(path, now_ms=1)
    writer = Writer(connection, path, SimClock(), Turnstile(path.parent))

    def turn(tx: Tx) -> None:
        last = tx._connection.execute("SELECT coalesce(max(seq), 0) FROM log").fetchone()[0]
        tx._connection.execute(
            "INSERT INTO log (seq, at_ms, kind, goal_id, task_id, attempt, body)"
            " VALUES (?, 0, 'decision', 0, 0, 0, ?)",
            (last + 1, name),
        )

    while not stop.is_set():
        writer.run(turn)
    writer.close()


def test_two_processes_take_turns_and_neither_starves(tmp_path: Path) -> None:
    open_store(tmp_path / "holdfast.db", now_ms=1).close()
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    both = [
        context.Process(target=_contend, args=(str(tmp_path), name, stop), daemon=True)
        for name in "ab"
    ]
    for process in both:
        process.start()
    reader = sqlite3.connect(tmp_path / "holdfast.db")
    names: list[str] = []
    while min(names.count("a"), names.count("b")) < 150:
        assert all(process.is_alive() for process in both)
        stop.wait(0.05)
        names = [row[0] for row in reader.execute("SELECT body FROM log ORDER BY seq")]
    stop.set()
    for process in both:
        process.join(60)
        assert process.exitcode == 0
    reader.close()
    begun = max(names.index("a"), names.index("b"))
    together = names[begun : begun + 200]
    changes = sum(one != other for one, other in itertools.pairwise(together))
    assert changes > 60, f"they alternated only {changes} times in {len(together)} turns"


class Impatient(threading.Event):
    """An event whose waiter is interrupted, as by Ctrl-C."""

    def wait(self, timeout: float | None = None) -> bool:
        raise KeyboardInterrupt


def test_a_caller_that_goes_away_while_it_waits_leaves_nobody_waiting_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(tmp_path / "a.db", SystemClock(), shared=False)
    leading, go = threading.Event(), threading.Event()

    def slow(tx: Tx) -> None:
        leading.set()
        assert go.wait(30)

    first = threading.Thread(target=lambda: engine.call(slow))
    first.start()
    assert leading.wait(30)
    with monkeypatch.context() as patch:
        patch.setattr("holdfast.store.writer.threading", SimpleNamespace(Event=Impatient))
        with pytest.raises(KeyboardInterrupt):
            engine.call(lambda tx: tx.run("link.add", from_id=1, to_id=2, kind="refers"))
    go.set()
    first.join(30)
    assert engine.call(lambda tx: tx.number("id.goal")) == 1
    engine.close()
