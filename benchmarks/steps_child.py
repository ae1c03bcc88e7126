"""The systems that `benchmarks/steps.py` compares, one process each: every one does the same steps.

`python steps_child.py SYSTEM WORK FOLDER COUNT PARTS [free]` runs in the environment of its system.
WORK is `steps` (one task of COUNT steps), `parallel` (PARTS rounds of 20 tasks of COUNT steps) or
`pairs` (the same with claim and settle only, holdfast alone). The `Gate` stops the work after each
part, says on stdout how long it took and waits on stdin, so that the parent can put bare commits
between the parts; with `free` it never waits. A step's effect takes no time: what is measured is
what it costs to make a step durable. Imports stay few: memory is one of the results.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

TASKS = 20


class Gate:
    """The stopwatch around the parts of a run, worked by the parent process."""

    def __init__(self, count: int, parts: int, *, free: bool) -> None:
        self._every, self._free = max(1, count // parts), free
        self._since, self._seen, self._written = 0.0, 0, 0

    def begin(self) -> None:
        """Wait for the parent and start the clock."""
        if not self._free:
            sys.stdin.readline()
        self._written = self._written or written_bytes()
        self._since = perf_counter()

    def end(self) -> None:
        """Stop the clock and tell the parent."""
        tell(seconds=perf_counter() - self._since)

    def tick(self) -> None:
        """Called as each step of a sequence begins: a pause between two parts."""
        if self._seen and self._seen % self._every == 0:
            self.end()
            self.begin()
        self._seen += 1

    def close(self) -> None:
        """The last word: what this process wrote since the first begin, and its peak memory."""
        tell(written_bytes=written_bytes() - self._written, peak_rss_mb=peak_rss_mb())


def tell(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def written_bytes() -> int:
    """`wchar`: every byte this process handed to write(), pwrite() and their like."""
    return int(_proc("io", "wchar:"))


def peak_rss_mb() -> float:
    """`VmHWM` of this address space; `ru_maxrss` would carry the parent's over the exec."""
    return int(_proc("status", "VmHWM:")) / 1024


def _proc(file: str, field: str) -> str:
    lines = Path("/proc/self", file).read_text(encoding="ascii").splitlines()
    return next(line.split()[1] for line in lines if line.startswith(field))


def request(number: int) -> bytes:
    return b'{"arguments":{"command":"pytest -q tests/test_%05d.py"},"tool":"run"}' % number


def result(number: int) -> bytes:
    return b'{"error":null,"output":"%05d passed in 0.12s","success":true,"tool":"run"}' % number


# --- bare sqlite3: one row, one fsynced commit ----------------------------------------------------


def bare(work: str, folder: Path, count: int, parts: int, gate: Gate) -> None:
    import sqlite3

    assert work == "steps", f"bare does no {work} of {parts}"
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE steps (id INTEGER PRIMARY KEY, request TEXT, result TEXT)")
    gate.begin()
    for number in range(count):
        gate.tick()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            "INSERT INTO steps VALUES (?, ?, ?)",
            (number, request(number).decode(), result(number).decode()),
        )
        connection.execute("COMMIT")
    gate.end()
    connection.close()


# --- holdfast: through the façade, from claim to settle -------------------------------------------


def holdfast(work: str, folder: Path, count: int, parts: int, gate: Gate) -> None:
    """Steps from a synchronous caller; 20 tasks: 20 coroutines that share one writer."""
    import asyncio

    engine = open_engine(folder)
    if work == "steps":
        submit_tasks(engine, 1)
        gate.begin()
        run_task(engine, count, gate.tick)
        gate.end()
    elif work == "pairs":
        asyncio.run(_rounds(engine, 0, parts, gate))
    else:
        asyncio.run(_rounds(engine, count, parts, gate))
    engine.close()


def holdfast_async(work: str, folder: Path, count: int, parts: int, gate: Gate) -> None:
    """The same steps from one coroutine."""
    import asyncio

    async def run() -> None:
        gate.begin()
        await arun_task(engine, count, gate.tick)
        gate.end()

    engine = open_engine(folder)
    submit_tasks(engine, 1)
    asyncio.run(run())
    engine.close()


def open_engine(folder: Path) -> Any:
    from holdfast.adapters.clock import SystemClock
    from holdfast.engine import Engine

    return Engine(folder / "holdfast.db", SystemClock())


def submit_tasks(engine: Any, count: int) -> None:
    from holdfast.domain.model import GoalSpec, PlanSpec, TaskSpec
    from holdfast.engine import submit

    goal = GoalSpec(text="measure", repository="/", base_commit="", base_tree="", model="m")
    tasks = tuple(TaskSpec(key=f"t{number}", prompt="measure") for number in range(count))
    engine.call(submit, goal, PlanSpec(tasks=tasks))


def run_task(engine: Any, count: int, tick: Callable[[], None]) -> None:
    from holdfast.engine import claim

    for use_case, *arguments in task_of(engine.call(claim, "w", lease_s=60.0), count, tick):
        engine.call(use_case, *arguments)


async def arun_task(engine: Any, count: int, tick: Callable[[], None]) -> None:
    from holdfast.engine import claim

    for use_case, *arguments in task_of(await engine.acall(claim, "w", lease_s=60.0), count, tick):
        await engine.acall(use_case, *arguments)


def task_of(claimed: Any, count: int, tick: Callable[[], None]) -> Iterator[tuple[Any, ...]]:
    """The calls of one claimed task in order, batched as the live journal does: the done of a step
    with its usage and its event in one commit with the intended of the next; then settle."""
    from functools import partial
    from hashlib import sha256

    from holdfast.domain.model import Outcome
    from holdfast.domain.ports import Usage
    from holdfast.engine import brief, settle, step
    from holdfast.engine.journal import Done, Intend, Record, StepName

    fence = claimed.fence
    if count:
        yield partial(brief, base_commit="", base_tree=""), fence, b'{"task":"measure"}'
    pending: list[Any] = []
    for number in range(count):
        tick()
        name = StepName(key=f"turn-{number}")
        position, asked = number + 1, request(number)
        wanted = Intend(
            step=name, position=position, kind="model", effect="idempotent", request=asked
        )
        yield step, fence, [*pending, wanted]
        said = result(number)
        digest = sha256(said).hexdigest()
        usage = Usage(tokens_in=900, tokens_out=40, cost_nusd=1_500_000)
        body = b'{"call_id":"turn-%d","duration_ms":1,"tokens_in":900,"tokens_out":40}' % number
        pending = [
            Done(step=name, result=said, result_sha256=digest, usage=usage),
            Record(kind="llm_call", body=body),
        ]
    if pending:
        yield step, fence, pending
    yield settle, fence, Outcome(kind="unverified", reason="measured")


async def _rounds(engine: Any, count: int, parts: int, gate: Gate) -> None:
    """Rounds of TASKS workers at once; without steps each claims and settles TASKS tasks."""
    import asyncio

    times = 1 if count else TASKS

    async def worker() -> None:
        for _ in range(times):
            await arun_task(engine, count, lambda: None)

    for _ in range(parts):
        for _ in range(times):
            submit_tasks(engine, TASKS)
        gate.begin()
        await asyncio.gather(*(worker() for _ in range(TASKS)))
        gate.end()


# --- LangGraph: StateGraph on SqliteSaver, durability sync ----------------------------------------


def langgraph(work: str, folder: Path, count: int, parts: int, gate: Gate) -> None:
    """A node that loops, a checkpoint after each step; 20 tasks: 20 threads on one saver."""
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph
    from typing_extensions import TypedDict

    class State(TypedDict):
        number: int
        request: str
        result: str

    tick = gate.tick if work == "steps" else lambda: None

    def node(state: State) -> State:
        tick()
        number = state["number"]
        asked, said = request(number).decode(), result(number).decode()
        return {"number": number + 1, "request": asked, "result": said}

    builder = StateGraph(State)
    builder.add_node("step", node)
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", lambda state: END if state["number"] >= count else "step")
    with SqliteSaver.from_conn_string(str(folder / "langgraph.db")) as saver:
        saver.setup()
        graph = builder.compile(checkpointer=saver)

        def task(name: str) -> None:
            settings = {"configurable": {"thread_id": name}, "recursion_limit": count + 10}
            graph.invoke({"number": 0, "request": "", "result": ""}, settings, durability="sync")

        if work == "steps":
            gate.begin()
            if count:
                task("one")
            gate.end()
        else:
            _in_threads(task, parts, gate)


def _in_threads(task: Callable[[str], None], parts: int, gate: Gate) -> None:
    from concurrent.futures import ThreadPoolExecutor

    for part in range(parts):
        gate.begin()
        with ThreadPoolExecutor(TASKS) as pool:
            list(pool.map(task, [f"{part}-{number}" for number in range(TASKS)]))
        gate.end()


# --- DBOS: one workflow of steps on its SQLite system database ------------------------------------


def dbos(work: str, folder: Path, count: int, parts: int, gate: Gate) -> None:
    """Its documented SQLite configuration; 20 tasks: 20 workflows started at once."""
    from dbos import DBOS

    tick = gate.tick if work == "steps" else lambda: None

    @DBOS.step()
    def one(number: int) -> dict[str, str]:
        tick()
        return {"request": request(number).decode(), "result": result(number).decode()}

    @DBOS.workflow()
    def whole() -> None:
        for number in range(count):
            one(number)

    url = f"sqlite:///{folder / 'dbos.sqlite'}"
    DBOS(config={"name": "steps", "system_database_url": url, "log_level": "ERROR"})
    DBOS.launch()
    for _ in range(parts if work == "parallel" else 1):
        gate.begin()
        if work == "steps":
            whole()
        else:
            handles = [DBOS.start_workflow(whole) for _ in range(TASKS)]
            for handle in handles:
                handle.get_result()
        gate.end()
    DBOS.destroy()


SYSTEMS = {
    "bare": bare,
    "holdfast": holdfast,
    "holdfast_async": holdfast_async,
    "langgraph": langgraph,
    "dbos": dbos,
}


def main(system: str, work: str, folder: str, count: str, parts: str, free: str = "") -> None:
    gate = Gate(int(count), int(parts), free=bool(free))
    SYSTEMS[system](work, Path(folder), int(count), int(parts), gate)
    gate.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
