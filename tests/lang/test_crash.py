"""kill -9 at every tool call, of the worker and of the parent: nothing recorded happens twice.

The program makes 50 calls: 30 in a loop, 10 in parallel branches, one in a task, 9 in a loop. The
tool writes every effect to a log of its own before it answers, as a payment provider would.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.lang.api import Limits, Result
from holdfast.lang.pool import SandboxPool
from holdfast.lang.recorder import FileJournal, Recorder
from lang.crash_parent import CALLS, PROGRAM, PROMISED, charge

LIMITS = Limits(wall_s=20)


@pytest.fixture(scope="module")
def pool() -> Iterator[SandboxPool]:
    with SandboxPool(1, LIMITS) as single:
        yield single


def run(pool: SandboxPool, journal: Path, work: Callable[[dict[str, Any]], Any]) -> Result:
    store = FileJournal(journal)
    try:
        return pool.run(PROGRAM, host=Recorder(store, {"charge": work}), tools=["charge"])
    finally:
        store.close()


def effects(log: Path) -> Counter[str]:
    return Counter(log.read_text().split()) if log.exists() else Counter()


def recorded(journal: Path) -> set[str]:
    """The orders whose call the journal holds as completed."""
    rows = [json.loads(line) for line in journal.read_text().splitlines() if line.endswith("}")]
    found = {row["row"]["args"]["order"] for row in rows if row["kind"] == "tool"}
    return {str(order) for order in found}


def test_an_undisturbed_run_makes_each_call_once(pool: SandboxPool, tmp_path: Path) -> None:
    log = tmp_path / "effects"
    result = run(pool, tmp_path / "journal", lambda args: charge(log, args))
    assert result.value == PROMISED, result.error
    assert effects(log) == Counter({str(order): 1 for order in range(CALLS)})


@pytest.mark.slow
@pytest.mark.parametrize("last", range(CALLS))
def test_a_worker_killed_at_a_call_loses_nothing_and_repeats_nothing(
    pool: SandboxPool, tmp_path: Path, last: int
) -> None:
    log, journal = tmp_path / "effects", tmp_path / "journal"
    started: list[int] = []

    def killing(args: dict[str, Any]) -> Any:
        started.append(1)
        if len(started) == last + 1:
            for worker in children(pool):  # one lives; another may be dead and not yet reaped
                os.kill(worker, signal.SIGKILL)
        return charge(log, args)

    broken = run(pool, journal, killing)
    assert broken.error is not None
    assert broken.error.details["wall"] == "process"
    # The parent finished and recorded what was in flight, so even that is not repeated.
    assert recorded(journal) == set(effects(log))
    resumed = run(pool, journal, lambda args: charge(log, args))
    assert resumed.value == PROMISED, resumed.error
    assert effects(log) == Counter({str(order): 1 for order in range(CALLS)})


def children(pool: SandboxPool) -> list[int]:
    assert pool._zygote is not None
    pid = pool._zygote._process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.slow
@pytest.mark.parametrize("last", range(CALLS))
def test_a_parent_killed_at_a_call_repeats_nothing_that_was_recorded(
    pool: SandboxPool, tmp_path: Path, last: int
) -> None:
    log, journal = tmp_path / "effects", tmp_path / "journal"
    when = "before" if last % 2 else "after"
    script = [sys.executable, "-m", "lang.crash_parent", str(journal), str(log), str(last), when]
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(script, cwd=tests, env={**os.environ, "PYTHONPATH": tests}, timeout=60)
    assert done.returncode == -signal.SIGKILL
    was_recorded, was_done = recorded(journal), effects(log)
    assert was_recorded <= set(was_done)
    # Only calls in flight at the kill can have happened without a record: one, or one per branch.
    assert len(set(was_done) - was_recorded) <= (10 if 30 <= last < 40 else 1)
    resumed = run(pool, journal, lambda args: charge(log, args))
    assert resumed.value == PROMISED, resumed.error
    total = effects(log)
    assert set(total) == {str(order) for order in range(CALLS)}
    for order in was_recorded:
        assert total[order] == 1, f"order {order} was recorded and charged again"
    assert max(total.values()) <= 2


def test_a_second_charge_of_a_recorded_call_would_be_noticed(tmp_path: Path) -> None:
    """The mutant: a journal that forgets, under the same checks."""
    log, journal = tmp_path / "effects", tmp_path / "journal"
    with SandboxPool(1, LIMITS) as single:
        run(single, journal, lambda args: charge(log, args))
        assert len(recorded(journal)) == CALLS
        journal.unlink()
        run(single, journal, lambda args: charge(log, args))
    assert set(effects(log).values()) == {2}


def test_calls_of_branches_are_in_flight_when_the_worker_dies_and_all_are_recorded(
    pool: SandboxPool, tmp_path: Path
) -> None:
    log, journal = tmp_path / "effects", tmp_path / "journal"
    inside = threading.Barrier(4, timeout=20)

    def together(args: dict[str, Any]) -> Any:
        if 30 <= args["order"] < 34:
            inside.wait()
            if args["order"] == 30:
                (worker,) = children(pool)
                os.kill(worker, signal.SIGKILL)
        return charge(log, args)

    assert run(pool, journal, together).error is not None
    assert {str(order) for order in range(30, 34)} <= recorded(journal)
    assert run(pool, journal, lambda args: charge(log, args)).value == PROMISED
    assert set(effects(log).values()) == {1}
