"""The pool as its callers see it: results, limits, order, deaths, and what survives them."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.lang import walls, wire
from holdfast.lang.api import LangError, Limits, Result
from holdfast.lang.pool import SandboxPool
from holdfast.lang.recorder import Recorder
from holdfast.lang.run import run
from lang.confined import on_a_thread_of_its_own, refuse_landlock

TOOLS = ("echo", "add", "boom", "meet", "stop", "wait", "huge")


@pytest.fixture(scope="module")
def pool() -> Iterator[SandboxPool]:
    with SandboxPool(2, Limits(wall_s=10)) as shared:
        yield shared


def host(journal: dict[Any, Any] | None = None, **more: Callable[[Any], Any]) -> Recorder:
    return Recorder({} if journal is None else journal, {"echo": lambda args: args, **more})


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def wait_for(fact: Callable[[], bool]) -> None:
    """Poll without a deadline of its own; the test's own timeout ends what never comes true."""
    gate = threading.Event()
    while not fact():
        gate.wait(0.005)


@pytest.mark.parametrize(
    "source",
    [
        "(+ 1 2)",
        '{:a [1 2.5 nil true] :b #{:x} "c" {1 2}}',
        "(def x 1) (defn f [y] (+ x y)) (f 2)",
        "(return {:status :done})",
        '(fail "no")',
        "(inc nil)",
        "(undefined 1)",
        "(",
        '(println 1) (println "two") 3',
        "(reduce * (range 1 200))",
        "(+ *1 (count data/rows) old)",
        "##NaN",
        '(step-done "a" "done") 1',
        "(pmap inc [1 2 3])",
    ],
)
def test_a_program_ends_in_the_pool_as_it_does_in_process(pool: SandboxPool, source: str) -> None:
    inputs: dict[str, Any] = {
        "context": {"rows": ({"a": 1}, {"a": 2})},
        "memory": {"old": 40},
        "history": (5, "x"),
    }
    here = run(source, host=host(), **inputs)
    there = pool.run(source, host=host(), **inputs)
    assert plain(there) == plain(here)


def plain(result: Result) -> dict[str, Any]:
    """What must be equal: all but timings and the identity of functions."""
    return {
        "ending": result.ending,
        "value": None if result.error else wire.encode(result.value),
        "error": result.error and result.error.as_dict(),
        "memory": wire.encode_all(result.memory),
        "history": [wire.encode(value) for value in result.history],
        "prints": tuple(result.prints),
        "warnings": tuple(result.warnings),
        "summaries": dict(result.summaries),
        "pmap": [(call.path, call.type, call.count) for call in result.pmap_calls],
        "fuel": result.usage.fuel,
    }


def test_definitions_of_one_program_are_usable_in_the_next(pool: SandboxPool) -> None:
    first = pool.run("(defn area [r] (* r r)) (def side 3) (area side)")
    second = pool.run("(area (+ side 1))", memory=first.memory, history=first.history)
    assert (first.value, second.value) == (9, 16)


def test_a_program_leaves_nothing_to_the_next_one_not_even_in_its_scope(pool: SandboxPool) -> None:
    for scope in ("", "same"):
        pool.run('(def leak 1) (defn inc [x] 99) (keyword "left") (inc 1)', scope=scope)
        assert pool.run("(inc 1)", scope=scope).value == 2
        unbound = pool.run("leak", scope=scope).error
        assert unbound is not None
        assert unbound.code == "unbound_var"


def test_as_many_programs_run_as_the_pool_is_large_and_never_more(pool: SandboxPool) -> None:
    running: list[int] = []
    most: list[int] = []
    both = threading.Barrier(pool.size, timeout=30)

    def meet(args: Any) -> Any:
        running.append(1)
        most.append(len(running))
        both.wait()
        running.pop()
        both.wait()
        return args

    threads = [
        threading.Thread(
            target=lambda: pool.run("(tool/meet {})", host=host(meet=meet), tools=TOOLS)
        )
        for _ in range(4 * pool.size)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 4 * pool.size
    assert max(most) == pool.size


def test_callers_are_served_in_the_order_they_came() -> None:
    gate, order = threading.Event(), list[int]()
    hold = host(wait=lambda _: gate.wait(30))
    with SandboxPool(1) as single:
        first = threading.Thread(
            target=single.run, args=("(tool/wait {})",), kwargs={"host": hold, "tools": TOOLS}
        )
        first.start()
        wait_for(lambda: single._busy == 1)
        threads = []
        for number in range(5):
            caller = host(echo=lambda _, n=number: order.append(n))
            thread = threading.Thread(
                target=single.run, args=("(tool/echo {})",), kwargs={"host": caller, "tools": TOOLS}
            )
            thread.start()
            threads.append(thread)
            wait_for(lambda count=number + 1: len(single._queue) == count)
        gate.set()
        for thread in [first, *threads]:
            thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_tool_calls_of_parallel_branches_are_in_flight_together(pool: SandboxPool) -> None:
    barrier = threading.Barrier(4, timeout=20)
    caller = host(meet=lambda args: (barrier.wait(), args["x"])[1])
    result = pool.run("(pmap (fn [x] (tool/meet {:x x})) [1 2 3 4])", host=caller, tools=TOOLS)
    assert result.value == (1, 2, 3, 4)
    assert len(result.tool_calls) == 4


def test_a_tool_error_is_the_programs_and_names_its_place(pool: SandboxPool) -> None:
    def boom(_: Any) -> None:
        raise LangError("tool_error", "boom")

    result = pool.run("(do\n  (tool/boom {}))", host=host(boom=boom), tools=TOOLS)
    assert result.error is not None
    assert (result.error.code, result.error.line, result.error.column) == ("tool_error", 2, 3)
    assert [call.name for call in result.tool_calls] == ["boom"]


class Suspended(BaseException):
    """What an agent raises through a tool to stop for a person."""


@pytest.mark.parametrize(
    "source",
    ["(tool/stop {})", "(pmap (fn [x] (tool/stop {:x x})) [1 2 3])", "(println (tool/stop {}))"],
)
def test_what_the_host_raises_ends_the_worker_and_reaches_the_caller(
    pool: SandboxPool, source: str
) -> None:
    class Stopping(Recorder):
        def call_tool(self, path: str, name: str, args: dict[str, Any]) -> Any:
            raise Suspended(name)

    with pytest.raises(Suspended):
        pool.run(source, host=Stopping({}, {}), tools=TOOLS)
    assert pool.run("(+ 1 1)").value == 2


def test_a_failing_print_sink_is_the_callers_bug_and_not_the_workers(pool: SandboxPool) -> None:
    class Broken(Recorder):
        def printed(self, text: str) -> None:
            raise KeyError(text)

    with pytest.raises(KeyError):
        pool.run("(println 1)", host=Broken({}, {}))


def test_granted_inputs_do_not_count_as_the_programs_memory(pool: SandboxPool) -> None:
    limits = Limits(memory_bytes=6_000_000, wall_s=20)
    context = {"rows": tuple(f"row {number} " * 20 for number in range(100_000))}
    result = pool.run("(count data/rows)", context=context, limits=limits)
    assert result.value == 100_000
    hoard = "(mapv (fn [x] (str x x x x)) data/rows)"
    refused = pool.run(f"(count {hoard})", context=context, limits=limits).error
    assert refused is not None
    assert (refused.code, refused.details["limit"]) == ("memory_exceeded", "memory_bytes")
    lifted = Limits(memory_bytes=400_000_000, wall_s=20)
    assert pool.run(f"(count {hoard})", context=context, limits=lifted).value == 100_000


def test_the_stacks_of_parallel_branches_do_not_count_as_the_programs_memory(
    pool: SandboxPool,
) -> None:
    gate = threading.Barrier(8, timeout=20)
    caller = host(meet=lambda args: (gate.wait(), args["x"])[1])
    source = "(reduce + (pmap (fn [x] (tool/meet {:x x})) (range 8)))"
    result = pool.run(
        source, host=caller, tools=TOOLS, limits=Limits(memory_bytes=4_000_000, wall_s=20)
    )
    assert result.value == 28, result.error


@pytest.mark.parametrize(
    "body",
    [
        "(first (map f [x]))",
        "(sort-by f [x x])",
        "(sort (fn [a b] (f 1)) [1 2])",
        "(update {:a x} :a f)",
    ],
)
def test_recursion_without_end_in_a_branch_ends_at_the_depth_and_not_at_the_stack(
    pool: SandboxPool, body: str
) -> None:
    error = pool.run(f"(defn f [x] {body}) (pmap f [1 2 3])").error
    assert error is not None
    assert error.details["limit"] == "depth"


def test_inputs_that_fit_no_frame_are_refused_by_name(pool: SandboxPool) -> None:
    refused = pool.run("(count data/x)", context={"x": "x" * 70_000_000}).error
    assert refused is not None
    assert refused.details == {"wall": "channel", "limit": "frame"}


def test_a_pool_starts_nothing_before_it_is_asked_and_close_is_idempotent() -> None:
    before = children(os.getpid())
    idle = SandboxPool(2)
    assert children(os.getpid()) == before
    assert idle.run("1").value == 1
    idle.close()
    idle.close()
    assert children(os.getpid()) == before
    with pytest.raises(LangError, match="closed"):
        idle.run("1")
    with pytest.raises(LangError, match="closed"):
        idle.start()
    with pytest.raises(ValueError, match="at least one"):
        SandboxPool(0)


def test_closing_refuses_those_who_wait_and_ends_those_who_run() -> None:
    ends: list[object] = []
    inside, gate = threading.Event(), threading.Event()
    single = SandboxPool(1)

    def hold(_: Any) -> None:
        inside.set()
        gate.wait(30)

    def call(source: str) -> None:
        try:
            ends.append(single.run(source, host=host(wait=hold), tools=TOOLS))
        except LangError as error:
            ends.append(error)

    runner = threading.Thread(target=call, args=("(tool/wait {})",))
    runner.start()
    inside.wait(30)
    waiter = threading.Thread(target=call, args=("1",))
    waiter.start()
    wait_for(lambda: len(single._queue) == 1)
    single.close()
    waiter.join()
    gate.set()
    runner.join()
    refused, ended = ends
    assert isinstance(refused, LangError)
    assert isinstance(ended, Result)
    assert ended.error is not None
    assert ended.tool_calls[0].name == "wait"


def test_a_zygote_or_an_idle_worker_that_dies_is_replaced() -> None:
    with SandboxPool(2) as hurt:
        assert hurt.run("1").value == 1
        for victim in ("worker", "zygote", "worker"):
            assert hurt._zygote is not None
            zygote = hurt._zygote._process.pid
            wait_for(lambda pid=zygote: len(children(pid)) == 2)
            targets = children(zygote) if victim == "worker" else [zygote]
            for pid in targets:
                os.kill(pid, signal.SIGKILL)
                wait_for(lambda pid=pid: not alive(pid))
            assert [hurt.run("(+ 1 1)").value for _ in range(4)] == [2] * 4


PARENT = """
import os, sys, threading
from holdfast.lang.pool import SandboxPool
pool = SandboxPool(2)
assert pool.run("1").value == 1
pool.standing()
sys.stdout.write(f"{pool._zygote._process.pid}\\n")
sys.stdout.flush()
threading.Event().wait()
"""


def test_a_dying_parent_takes_zygote_and_workers_with_it() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        zygote = int(parent.stdout.readline())
        family = [zygote]

        def whole() -> bool:  # a worker that only warms up the zygote comes and goes
            family[1:] = children(zygote)
            return len(family) == 3 and all(alive(pid) for pid in family)

        try:
            wait_for(whole)
        finally:
            parent.kill()
            parent.wait()
    wait_for(lambda: not any(alive(pid) for pid in family))


def test_a_policy_that_the_machine_cannot_meet_is_refused_and_nothing_runs() -> None:
    def work() -> tuple[object, object, object]:
        refuse_landlock()
        with SandboxPool(1, require="landlock+seccomp") as strict:
            try:
                refused: object = strict.run("1")
            except LangError as error:
                refused = error
        with SandboxPool(1, require="seccomp") as modest:
            return refused, modest.standing().level, modest.run("(+ 1 1)").value

    answer = on_a_thread_of_its_own(work)
    assert isinstance(answer, tuple), answer
    refused, level, value = answer
    assert isinstance(refused, LangError)
    assert refused.code == "sandbox_unavailable"
    assert refused.details == {"level": "seccomp", "require": "landlock+seccomp"}
    assert (level, value) == ("seccomp", 2)


def test_this_machine_reaches_what_the_probe_says(pool: SandboxPool) -> None:
    assert pool.standing().level == walls.probe().level
