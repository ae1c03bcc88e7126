"""One planted bug (at least) for every invariant: a changed statement, rule or use case.

Each is small and plausible: a forgotten condition, an ignored count, a sorted list that is not. A
test plays seeds under each until its checker speaks; a mutant that no seed reveals is a hole in the
world or in the checker.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import pytest

from holdfast.adapters import diffs, plan_file
from holdfast.adapters.models import replies
from holdfast.agent import loop
from holdfast.agent.journal import LiveJournal
from holdfast.domain import decide, lifecycle
from holdfast.engine import undo
from holdfast.store import queries, tx
from holdfast.trace import redact
from holdfast.worker import merging

settling: Any = import_module("holdfast.engine.settle")  # the package names its use case so too

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """A planted bug and the invariant that it breaks.

    `seed` is one that revealed it and is played first; when the world changes, others are tried.
    """

    invariant: str
    bug: str
    plant: Plant
    seed: int = 0


def statement(name: str, old: str, new: str) -> Plant:
    """A named statement that is slightly wrong."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        statements = dict(queries.load())
        assert old in statements[name], f"{name} no longer says {old!r}"
        statements[name] = statements[name].replace(old, new)
        patch.setattr(tx, "_STATEMENTS", queries.prepare(statements))

    return plant


def _task_left_behind(patch: pytest.MonkeyPatch) -> None:
    move = settling._move_task

    def forget(tx: Any, task: Any, outcome: Any, decision: Any) -> None:
        if outcome.kind != "expired":
            move(tx, task, outcome, decision)

    patch.setattr(settling, "_move_task", forget)


def _done_again(patch: pytest.MonkeyPatch) -> None:
    """The table lets a finished goal be dropped, and so does the database."""
    row = lifecycle.Transition("goal", "complete", "drop", "dropped")
    patch.setitem(lifecycle._NEXT, ("goal", "complete", "drop"), "dropped")
    patch.setattr("holdfast.store.database.TRANSITIONS", (*lifecycle.TRANSITIONS, row))
    finish = settling._finished

    def finish_and_drop(tx: Any, plan: Any) -> None:
        finish(tx, plan)
        if plan["source"] != "undo":
            settling.move_goal(tx, plan["goal_id"], "complete", "drop")

    patch.setattr(settling, "_finished", finish_and_drop)


def _silent_retry(patch: pytest.MonkeyPatch) -> None:
    execute = tx.Tx._execute

    def forget(self: Any, name: str, values: Any) -> Any:
        if name == "log.transition" and values["event"] == "retry":
            return None
        return execute(self, name, values)

    patch.setattr(tx.Tx, "_execute", forget)


def _no_reserve(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide, "reserve", lambda budget, spent, tokens, nusd: None)


def _one_form(patch: pytest.MonkeyPatch) -> None:
    """A configured credential is looked for only as it stands in a web address."""
    patch.setattr(redact, "_forms", lambda secret: [f"={secret}&"])


def _raw_diff(patch: pytest.MonkeyPatch) -> None:
    original = diffs.told
    patch.setattr(diffs, "told", lambda diff, totals, redact: original(diff, totals, str))


def _raw_arguments(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replies, "_redact_arguments", lambda text, redact: text)


def _oldest_first(patch: pytest.MonkeyPatch) -> None:
    original = undo.to_undo
    patch.setattr(undo, "to_undo", lambda tx, goal: list(reversed(original(tx, goal))))


def _by_the_clock(patch: pytest.MonkeyPatch) -> None:
    original = undo.to_undo

    def by_time(tx: Any, goal: int) -> list[Any]:
        found = original(tx, goal)
        return sorted(found, key=lambda task: (task["ended_ms"], task["id"]), reverse=True)

    patch.setattr(undo, "to_undo", by_time)


def _absent_passes(patch: pytest.MonkeyPatch) -> None:
    def lenient(results: Any) -> bool:
        return bool(results) and all(result.verdict != "fail" for result in results)

    patch.setattr(loop, "proven", lenient)
    patch.setattr(settling, "_proven", lambda fence, outcome: None)  # the second wall falls too


def _again_and_again(patch: pytest.MonkeyPatch) -> None:
    def forever(why: str, outcome: Any, history: Any, policy: Any) -> decide.Decision:
        return decide.Decision(event="retry", reason=why, delay_ms=1000)

    patch.setattr(decide, "_again", forever)


def _redo_everything(patch: pytest.MonkeyPatch) -> None:
    effect = LiveJournal._effect

    async def brave(self: Any, effectful: Any, row: Any, generation: int) -> bytes:
        milder = row if row is None else replace(row, effect="compensable")
        return await effect(self, effectful, milder, generation)

    patch.setattr(LiveJournal, "_effect", brave)


def _begin_unstored(patch: pytest.MonkeyPatch) -> None:
    """What is intended waits for the next commit too, and its effect does not wait for that."""
    commit = LiveJournal._commit

    async def later(self: Any, writes: Any) -> None:
        if writes:
            self._hold(*writes)
        else:
            await commit(self, writes)

    patch.setattr(LiveJournal, "_commit", later)


def _read_unstored(patch: pytest.MonkeyPatch) -> None:
    """An intent is stored at once, without what it follows from."""

    async def alone(self: Any, writes: Any) -> None:
        held, self._pending = self._pending, []
        await commit(self, writes or held)
        if writes:
            self._pending = held

    commit = LiveJournal._commit
    patch.setattr(LiveJournal, "_commit", alone)


def _forget_earlier_takes(patch: pytest.MonkeyPatch) -> None:
    async def nothing(self: Any, effectful: Any) -> None:
        return None

    patch.setattr(LiveJournal, "_done_before", nothing)


def _asked_again(patch: pytest.MonkeyPatch) -> None:
    then = settling._history_then

    def ask_again(tx: Any, task: Any, attempt: Any) -> Any:
        outcome = settling.outcome_of(attempt)
        if settling.spec_of(task).planning is not None and outcome.tasks:
            settling._ask_for(tx, task, outcome, decide.Decision(event="succeed"))
        return then(tx, task, attempt)

    patch.setattr(settling, "_history_then", ask_again)


def _merge_of_nothing(patch: pytest.MonkeyPatch) -> None:
    """Conflicting work is tried again, as it was before there were merges."""
    original = settling.decide

    def again(outcome: Any, history: Any, policy: Any) -> decide.Decision:
        if settling.conflicts(outcome):
            return decide.Decision(event="retry", reason="merge_conflict", fresh=True)
        decided: decide.Decision = original(outcome, history, policy)
        return decided

    patch.setattr(settling, "decide", again)


def _merge_of_one_side(patch: pytest.MonkeyPatch) -> None:
    original = merging.work_of
    patch.setattr(merging, "work_of", lambda tx, task: replace(original(tx, task), commit=""))


def _merge_unawaited(patch: pytest.MonkeyPatch) -> None:
    require = settling._require

    def forget(tx: Any, tasks: Any, needed: Any) -> None:
        if not any(settling.spec_of(settling.need(tx, "task", id=key)).merges for key in needed):
            require(tx, tasks, needed)

    patch.setattr(settling, "_require", forget)


def _round_too_many(patch: pytest.MonkeyPatch) -> None:
    original = plan_file.goal_checks

    def generous(*args: Any, rounds: int) -> Any:
        return original(*args, rounds=rounds + 1)

    patch.setattr(plan_file, "goal_checks", generous)


MUTANTS = (
    Mutant("I1", "an expired attempt leaves its task running", _task_left_behind),
    Mutant(
        "I2",
        "a step is accepted after its attempt ended",
        statement("attempt.spend", "AND state = 'open'", ""),
        seed=3,
    ),
    Mutant(
        "I3",
        "a failed requirement counts as met",
        statement("task.unmet", "r.state <> 'succeeded'", "r.state = 'blocked'"),
        seed=3,
    ),
    Mutant(
        "I3", "who waits for conflicting work does not wait for its merge", _merge_unawaited, seed=3
    ),
    Mutant("I4", "a complete goal is dropped", _done_again, seed=9),
    Mutant(
        "I5",
        "doing a step again rewrites what was asked",
        statement(
            "transition.step.redo", "attempt = :attempt,", "attempt = :attempt, request = '{}',"
        ),
        seed=1,
    ),
    Mutant("I5", "a call begins before its intent is stored", _begin_unstored),
    Mutant("I5", "a call begins before the reply that it follows from is stored", _read_unstored),
    Mutant("I6", "a retry is not logged", _silent_retry),
    Mutant(
        "I6",
        "renewing writes a state behind the log's back",
        statement("attempt.ask_cancel", "SET cancel = 1", "SET cancel = 1, state = 'ended'"),
        seed=1,
    ),
    Mutant("I7", "nothing is reserved", _no_reserve, seed=12),
    Mutant(
        "I7",
        "what is in flight does not count",
        statement("goal.spent", "coalesce(sum(a.reserved_tokens), 0)", "0"),
        seed=39,
    ),
    Mutant(
        "I7",
        "the reserve of an attempt that ended stays",
        statement("transition.attempt", "reserved_tokens = 0", "reserved_tokens = reserved_tokens"),
        seed=1,
    ),
    Mutant(
        "I7",
        "the reserve of a step that is done stays",
        statement("attempt.spend", "+ :reserved_tokens", "+ max(:reserved_tokens, 0)"),
    ),
    Mutant(
        "I8",
        "a take's bundle can be exchanged",
        statement("take.brief", " AND bundle_sha256 = ''", ""),
        seed=3,
    ),
    Mutant("I9", "a credential is known in one spelling only", _one_form),
    Mutant("I9", "what a step changed is told as it is", _raw_diff),
    Mutant("I9", "the arguments of a call are not redacted", _raw_arguments),
    Mutant("I10", "the oldest work is undone first", _oldest_first),
    Mutant("I10", "completion is ordered by a clock that jumps", _by_the_clock, seed=21),
    Mutant("I11", "an absent check passes", _absent_passes, seed=9),
    Mutant("I12", "transient failures are tried for ever", _again_and_again),
    Mutant(
        "I12",
        "what is reopened stays with the plan that failed",
        statement("task.inherit", "plan_id = :plan", "plan_id = plan_id"),
        seed=43,
    ),
    Mutant("I13", "a lost irreversible step is done again", _redo_everything, seed=4),
    Mutant("I13", "a new take forgets what earlier ones did", _forget_earlier_takes, seed=13),
    Mutant("I14", "a report that comes twice makes its plan twice", _asked_again, seed=3),
    Mutant("I14", "a merge is made although its work is tried again", _merge_of_nothing, seed=3),
    Mutant("I14", "a merge forgets the commit that it merges", _merge_of_one_side, seed=9),
    Mutant("I14", "a goal's checks have a round too many", _round_too_many, seed=30),
)
