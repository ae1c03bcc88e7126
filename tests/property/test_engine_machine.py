"""The engine under any order of calls: several workers, a clock, deaths, and every invariant.

Hypothesis draws the order, over the real store. After each call the simulator's observer checks the
invariants; beside them, a call by an attempt that has ended is refused and changes nothing, and one
by an open attempt is not. The world of `tests/simulate` plays what workers would do; here anyone
may do anything, also what no worker would.
"""

import shutil
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from desk import task
from holdfast.domain.decide import Decision
from holdfast.domain.model import Budget, CheckResult, Claim, Fence, GoalSpec, Outcome, PlanSpec
from holdfast.domain.ports import Usage
from holdfast.engine import (
    brief,
    cancel,
    claim,
    expire,
    pause,
    renew,
    reopen,
    resume,
    settle,
    signal,
    step,
    submit,
)
from holdfast.engine.journal import Done, Intend, Lose, Redo, StepName, Write, record
from holdfast.engine.rows import encode
from holdfast.errors import HoldfastError, Refused, Stale, Unavailable
from simulate.checkers import Observer
from simulate.faults import Killed, SimClock, SimEngine
from simulate.mutants import MUTANTS, Plant, statement

PROCESSES = st.integers(0, 1)
RESERVE = 40
PASSED = CheckResult(command="true", verdict="pass")
OUTCOMES = (
    Outcome(kind="unverified"),
    Outcome(kind="passed", checks=(PASSED,)),
    Outcome(kind="partial", failure="budget", reason="turns"),
    Outcome(kind="failed", failure="logic", reason="checks_failed"),
    Outcome(kind="failed", failure="transient", reason="http_503"),
    Outcome(kind="waiting", reason="approval"),
    Outcome(kind="cancelled", failure="cancelled", reason="interrupted"),
)
UNPROVEN = Outcome(kind="passed", checks=(CheckResult(command="c", verdict="absent"),))


class Office(RuleBasedStateMachine):
    """Two processes over one store; a fence that was granted once may be used for ever."""

    fences = Bundle("fences")

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.path, self.clock = self.folder / "holdfast.db", SimClock()
        self.observer = Observer(self.path)
        self.engines = [self._open() for _ in range(2)]
        self.answers: dict[Fence, Decision] = {}

    def teardown(self) -> None:
        for engine in self.engines:
            engine.abandon()
        self.observer.close()
        shutil.rmtree(self.folder)

    # --- work -------------------------------------------------------------------------------------

    @initialize(second=st.booleans(), chained=st.booleans(), tokens=st.sampled_from((0, 100)))
    def submit(self, second: bool, chained: bool, tokens: int) -> None:
        """One goal or two; the later task may require the earlier one."""
        plan = PlanSpec(tasks=(task("a"), task("b", requires=("a",) if chained else ())))
        goal = GoalSpec(
            text="g",
            repository="/r",
            base_commit="c0",
            base_tree="t0",
            budget=Budget(tokens=tokens),
        )
        for _ in range(1 + second):
            self.engines[0].call(submit, goal, plan)

    @rule(target=fences, process=PROCESSES, lease_s=st.sampled_from((1.0, 5.0)))
    def claim(self, process: int, lease_s: float) -> Any:
        ready = {key for key, row in self.observer.rows.tasks.items() if row["state"] == "ready"}
        granted = self._call(process, claim, f"p{process}", lease_s=lease_s)
        if not isinstance(granted, Claim):
            return None
        assert granted.fence.task in ready
        return granted.fence

    @rule(process=PROCESSES, fence=fences)
    def renew(self, process: int, fence: Fence | None) -> None:
        if fence is not None:
            self._fenced(fence, process, renew, fence, lease_s=5.0)

    @rule(process=PROCESSES, fence=fences, effect=st.sampled_from(("compensable", "irreversible")))
    def work(self, process: int, fence: Fence | None, effect: Any) -> None:
        """The next write of a journal that keeps its rules: a brief, an intent or its end."""
        if fence is None:
            return
        if not self.observer.rows.takes[fence.task, fence.take]["bundle_sha256"]:
            bases = {"base_commit": "c0", "base_tree": "t0"}
            self._fenced(fence, process, brief, fence, b"bundle", **bases)
            return
        self._fenced(fence, process, step, fence, [self._write(fence, effect)])

    @rule(process=PROCESSES, fence=fences, outcome=st.sampled_from(OUTCOMES))
    def settle(self, process: int, fence: Fence | None, outcome: Outcome) -> None:
        if fence is None:
            return
        row = self.observer.rows.attempts[fence.task, fence.attempt]
        if row["state"] == "open" or row["report"] != encode(outcome).decode():
            self._fenced(fence, process, settle, fence, outcome)
            return
        again = self._call(process, settle, fence, outcome)
        if isinstance(again, Decision):
            assert self.answers.setdefault(fence, again) == again, "the same report, another answer"
        else:
            assert again is None or isinstance(again, Unavailable)

    @rule(process=PROCESSES, fence=fences)
    def claim_a_proof_that_there_is_not(self, process: int, fence: Fence | None) -> None:
        if fence is not None:
            said = self._call(process, settle, fence, UNPROVEN)
            assert said is None or isinstance(said, (Refused, Stale, Unavailable))

    @rule(process=PROCESSES, fence=fences)
    def expire(self, process: int, fence: Fence | None) -> None:
        if fence is not None:
            was_open = self._is_open(fence)
            decision = self._call(process, expire, fence, reason="died")
            assert was_open or decision is None or isinstance(decision, Unavailable)

    @rule(process=PROCESSES, fence=fences)
    def record(self, process: int, fence: Fence | None) -> None:
        """Evidence is taken from whoever has some, and changes no state."""
        if fence is not None:
            self._call(process, record, fence, "decision", b'{"question":"?","answer":"!"}')

    # --- people -----------------------------------------------------------------------------------

    @rule(process=PROCESSES, number=st.integers(1, 4))
    def signal(self, process: int, number: int) -> None:
        row = self.observer.rows.tasks.get(number)
        if row is not None:
            said = self._call(process, signal, number, f"answer-{row['attempts']}", "yes")
            assert row["state"] == "waiting" or said is None or isinstance(said, HoldfastError)

    @precondition(lambda self: len(self.observer.rows.log) > 60)
    @rule(process=PROCESSES, goal=st.integers(1, 2))
    def cancel(self, process: int, goal: int) -> None:
        if goal in self.observer.rows.goals:
            self._call(process, cancel, goal)

    @rule(process=PROCESSES, goal=st.integers(1, 2), tokens=st.sampled_from((0, 300)))
    def reopen(self, process: int, goal: int, tokens: int) -> None:
        row = self.observer.rows.goals.get(goal)
        if row is not None:
            said = self._call(process, reopen, goal, budget=Budget(tokens=tokens))
            assert row["state"] != "complete" or not isinstance(said, int)

    @rule(process=PROCESSES, goal=st.integers(1, 2), stop=st.booleans())
    def hold(self, process: int, goal: int, stop: bool) -> None:
        if goal in self.observer.rows.goals:
            self._call(process, pause if stop else resume, goal)

    # --- faults -----------------------------------------------------------------------------------

    @rule(ms=st.sampled_from((10, 2_000, 6_000)), jump=st.sampled_from((0, 0, -3_600_000, 60_000)))
    def time_passes(self, ms: int, jump: int) -> None:
        self.clock.advance(ms)
        self.clock.jump(jump)

    @rule(process=PROCESSES, fault=st.sampled_from(("crash", "fail", "lose")), n=st.integers(1, 12))
    def arm(self, process: int, fault: Any, n: int) -> None:
        """Something goes wrong at the n-th statement from now."""
        self.engines[process].wire.arm(fault, n, after=n % 2 == 0)

    @rule(process=PROCESSES)
    def kill(self, process: int) -> None:
        self._bury(process)

    # --- how calls are made and judged ------------------------------------------------------------

    def _call(self, process: int, use_case: Any, *args: Any, **kwargs: Any) -> Any:
        """What a call says: its result, its error, or None when the process died of it.

        A call that is refused has changed nothing.
        """
        before = len(self.observer.rows.log)
        try:
            return self.engines[process].call(use_case, *args, **kwargs)
        except Killed:
            self._bury(process)
            return None
        except HoldfastError as error:
            said = error
        told = isinstance(said, Unavailable)  # a full disk, or a commit whose reply was lost
        assert told or len(self.observer.rows.log) == before, f"{said!r} changed the store"
        return said

    def _fenced(self, fence: Fence, *call: Any, **kwargs: Any) -> Any:
        """A call that only the owner may make: `Stale` exactly when the attempt has ended."""
        was_open = self._is_open(fence)
        said = self._call(*call, **kwargs)
        if said is not None and not isinstance(said, Unavailable):
            assert isinstance(said, Stale) != was_open, f"{fence} open={was_open}: {said!r}"
        return said

    def _is_open(self, fence: Fence) -> bool:
        return bool(self.observer.rows.attempts[fence.task, fence.attempt]["state"] == "open")

    def _write(self, fence: Fence, effect: Any) -> Write:
        """End what the take has intended, or intend its next step."""
        mine = [
            row
            for key, row in self.observer.rows.steps.items()
            if key[:2] == (fence.task, fence.take)
        ]
        going = next((row for row in mine if row["state"] == "intended"), None)
        reserve = {"reserve_tokens": RESERVE}
        if going is None:
            name = StepName(key=f"s{fence.take}.{len(mine)}")
            request, place = f'"{fence.take}.{len(mine)}"'.encode(), len(mine) + 1
            return Intend(
                step=name, position=place, kind="tool", effect=effect, request=request, **reserve
            )
        name = StepName(key=going["key"])
        if going["attempt"] == fence.attempt:
            digest = sha256(b'"r"').hexdigest()
            spent = Usage(tokens_in=RESERVE // 2)
            return Done(step=name, result=b'"r"', result_sha256=digest, usage=spent, **reserve)
        return Lose(step=name) if going["effect"] == "irreversible" else Redo(step=name, **reserve)

    def _open(self) -> SimEngine:
        return SimEngine(self.path, self.clock, self.observer.look)

    def _bury(self, process: int) -> None:
        self.engines[process].abandon()
        self.engines[process] = self._open()


def play(examples: int, **values: Any) -> None:
    run_state_machine_as_test(
        Office, settings=settings(max_examples=examples, stateful_step_count=40, **values)
    )


def test_no_order_of_calls_and_deaths_breaks_an_invariant() -> None:
    play(30)


BUGS: dict[str, Plant] = {
    "an expired attempt leaves its task running": MUTANTS[0].plant,
    "who has lost a lease renews it": statement("attempt.renew", "AND state = 'open'", ""),
}


@pytest.mark.parametrize("bug", BUGS)
def test_the_machine_notices_a_planted_bug(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS[bug](monkeypatch)
    with pytest.raises(AssertionError):
        play(200, derandomize=True, database=None, phases=[Phase.generate])
