"""The invariants of design §6, each a function over the rows of the store before and after a step.

A checker raises `Broken` or returns how many facts it looked at; one that never looks at any is a
checker that checks nothing, and a test says so. Checkers know the schema and the lifecycle table;
they call no code of the engine, so a bug there cannot hide itself.
"""

import itertools
import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.domain.lifecycle import ABSORBING
from simulate.scripts import ROUNDS, SECRET

KEYS = {
    "goals": ("id",),
    "plans": ("id",),
    "tasks": ("id",),
    "takes": ("task_id", "number"),
    "attempts": ("task_id", "number"),
    "steps": ("task_id", "take", "key", "generation"),
}
_SELECT = {table: f"SELECT * FROM {table}" for table in KEYS}
_LOG = """SELECT seq, at_ms, kind, goal_id, task_id, attempt, machine, entity, source, event,
                 target, body
          FROM log WHERE seq > ? ORDER BY seq"""
_BLOBS = "SELECT rowid, bytes FROM blobs WHERE rowid > ?"

Row = Any


class Broken(AssertionError):
    """An invariant does not hold; `invariants` names it, with the others that broke beside it."""

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.invariants = {invariant}


@dataclass
class Rows:
    """The whole store at one moment. `log` is shared between moments; `logged` is its length then.

    `states` is the fold of the log's transitions, entity by entity.
    """

    goals: dict[int, Row] = field(default_factory=dict)
    plans: dict[int, Row] = field(default_factory=dict)
    tasks: dict[int, Row] = field(default_factory=dict)
    takes: dict[tuple[int, int], Row] = field(default_factory=dict)
    attempts: dict[tuple[int, int], Row] = field(default_factory=dict)
    steps: dict[tuple[int, int, str, int], Row] = field(default_factory=dict)
    requires: list[tuple[int, int]] = field(default_factory=list)
    forced: set[tuple[int, int]] = field(default_factory=set)
    log: list[Row] = field(default_factory=list)
    fresh: list[Row] = field(default_factory=list)
    blobs: list[Row] = field(default_factory=list)


class Observer:
    """Reads the store from outside, with a connection of its own, and runs every checker."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._blobs = 0
        self.rows = Rows()
        self.facts: Counter[str] = Counter()

    def look(self) -> None:
        """Take the next snapshot and check it against the last one. Raises `Broken`."""
        before, now = self.rows, self._read()
        broken: list[Broken] = []
        for name, checker in CHECKERS.items():
            try:
                self.facts[name] += checker(before, now)
            except Broken as error:
                broken.append(error)
        self.rows = now
        if broken:
            broken[0].invariants = {name for error in broken for name in error.invariants}
            raise broken[0]

    def search(self) -> None:
        """I9 once more, in every byte of the store's files and of a copy of it. Raises `Broken`."""
        copy = self._path.with_name("copy.db")
        with closing(sqlite3.connect(copy)) as connection:
            self._connect().backup(connection)
        for path in self._path.parent.iterdir():
            if SECRET in path.read_bytes():
                raise Broken("I9", f"{path.name} holds the secret")
        copy.unlink()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(self._path, isolation_level=None)
            self._connection.row_factory = sqlite3.Row
        return self._connection

    def _read(self) -> Rows:
        connection, rows = self._connect(), Rows()
        connection.execute("BEGIN")
        for table, key in KEYS.items():
            found = getattr(rows, table)
            for row in connection.execute(_SELECT[table]):
                found[row[key[0]] if len(key) == 1 else tuple(row[name] for name in key)] = row
        links = connection.execute("SELECT from_id, to_id FROM task_links WHERE kind = 'requires'")
        rows.requires = [(row[0], row[1]) for row in links]
        forces = connection.execute("SELECT task_id, ignored_id FROM task_forces")
        rows.forced = {(row[0], row[1]) for row in forces}
        last = self.rows.log[-1]["seq"] if self.rows.log else 0
        rows.fresh = connection.execute(_LOG, (last,)).fetchall()
        rows.log = self.rows.log
        rows.log.extend(rows.fresh)
        rows.blobs = connection.execute(_BLOBS, (self._blobs,)).fetchall()
        self._blobs = rows.blobs[-1]["rowid"] if rows.blobs else self._blobs
        connection.execute("COMMIT")
        return rows


def one_attempt(before: Rows, now: Rows) -> int:
    """I1: at most one open attempt per task, and exactly one iff it is running."""
    open_of = Counter(key[0] for key, row in now.attempts.items() if row["state"] == "open")
    for task_id, task in now.tasks.items():
        wanted = 1 if task["state"] == "running" else 0
        if open_of[task_id] != wanted:
            raise Broken("I1", f"task {task_id} is {task['state']}, open: {open_of[task_id]}")
    return sum(open_of.values())


def fenced(before: Rows, now: Rows) -> int:
    """I2: attempt numbers rise by one; nothing of an ended attempt changes, nor writes a step."""
    seen = 0
    newest = Counter(key[0] for key in now.attempts)
    for (task_id, number), row in now.attempts.items():
        old = before.attempts.get((task_id, number))
        if number > newest[task_id] or now.tasks[task_id]["attempts"] != newest[task_id]:
            raise Broken("I2", f"attempts of task {task_id} are not numbered 1 to n")
        if old is None and number != newest[task_id]:
            raise Broken("I2", f"attempt {task_id}.{number} came after a later one")
        if old is not None and old["state"] == "ended":
            seen += 1
            if old != row:
                raise Broken("I2", f"attempt {task_id}.{number} ended and was written again")
    for key, step in now.steps.items():
        if step == before.steps.get(key) or step["attempt"] == 0:
            continue
        seen += 1
        was = before.attempts.get((key[0], step["attempt"]))
        if was is None or was["state"] != "open":
            raise Broken("I2", f"attempt {key[0]}.{step['attempt']} wrote step {key} after its end")
    return seen


def requirements(before: Rows, now: Rows) -> int:
    """I3: nothing leaves `blocked` before its requirements succeeded or a recorded force."""
    seen = 0
    for task_id, needed_id in now.requires:
        task = now.tasks[task_id]
        started = task_id in before.tasks and before.tasks[task_id]["attempts"] < task["attempts"]
        if task["state"] in ("ready", "running", "waiting", "succeeded") or started:
            seen += 1
            met = now.tasks[needed_id]["state"] == "succeeded" or (task_id, needed_id) in now.forced
            if not met:
                raise Broken("I3", f"task {task_id} is {task['state']} without {needed_id}")
    return seen


def absorbed(before: Rows, now: Rows) -> int:
    """I4: what reached a final state stays in it."""
    seen = 0
    for table, machine in _MACHINES.items():
        final = ABSORBING[machine]  # type: ignore[index]  # the keys of the table are its machines
        after = getattr(now, table)
        for key, row in getattr(before, table).items():
            if row["state"] in final:
                seen += 1
                if key not in after or after[key]["state"] != row["state"]:
                    raise Broken("I4", f"{machine} {key} left {row['state']}")
    for row in now.fresh:
        if row["kind"] == "transition" and row["source"] in ABSORBING[row["machine"]]:
            raise Broken("I4", f"{row['machine']} {row['entity']} left {row['source']}")
    return seen


def fixed(before: Rows, now: Rows) -> int:
    """I5: a request is fixed when intended, a result when done; nothing of a journal vanishes."""
    seen = 0
    for key, old in before.steps.items():
        new = now.steps.get(key)
        if new is None:
            raise Broken("I5", f"step {key} vanished")
        seen += 1
        for name in ("request", "effect", "kind", "position", "tree_before", "intended_ms"):
            if new[name] != old[name]:
                raise Broken("I5", f"step {key} changed its {name}")
        if old["state"] == "done" and new != old:
            raise Broken("I5", f"step {key} was done and changed")
    return seen


def begun(now: Rows, task: int, take: int, key: str) -> None:
    """I5 where an effect begins that is not pure: it is intended, all that came before is stored.

    A reply on which something was built and that is asked for again has changed.
    """
    journal = [row for row in now.steps.values() if (row["task_id"], row["take"]) == (task, take)]
    going = [row for row in journal if row["state"] == "intended"]
    if [row["key"] for row in going] != [key]:
        raise Broken("I5", f"{key} of task {task} begins beside {[row['key'] for row in going]}")
    missing = {*range(1, going[0]["position"])} - {row["position"] for row in journal}
    if missing:
        raise Broken("I5", f"{key} of task {task} begins before {missing} are stored")


def folded(before: Rows, now: Rows) -> int:
    """I6: folding the transitions gives every state back, and each begins where the last ended."""
    states: dict[tuple[str, str], str] = {}
    for row in now.log:
        if row["kind"] != "transition":
            continue
        entity = (row["machine"], row["entity"])
        if states.get(entity, "") != row["source"]:
            raise Broken("I6", f"{entity} was {states.get(entity, '')!r}, not {row['source']!r}")
        states[entity] = row["target"]
    actual = {
        (machine, _entity(machine, key)): row["state"]
        for table, machine in _MACHINES.items()
        for key, row in getattr(now, table).items()
    }
    if states != actual:
        wrong = sorted(set(states.items()) ^ set(actual.items()))[:4]
        raise Broken("I6", f"the log and the states differ: {wrong}")
    return len(states)


def within_budget(before: Rows, now: Rows) -> int:
    """I7: spent ≤ budget + one call in flight, counting what open attempts have reserved."""
    seen = 0
    for goal_id, goal in now.goals.items():
        if not goal["budget_tokens"]:
            continue
        tasks = {key for key, row in now.tasks.items() if row["goal_id"] == goal_id}
        used = sum(
            row["tokens_in"] + row["tokens_out"]
            for key, row in now.attempts.items()
            if key[0] in tasks
        )
        calls = [row for key, row in now.steps.items() if key[0] in tasks]
        held = sum(_in_flight(now, row) for row in calls)
        sizes = (
            row["tokens_in"] + row["tokens_out"]
            if row["state"] == "done"
            else row["reserve_tokens"]
            for row in calls
        )
        largest = max(sizes, default=0)
        seen += used > 0
        if used + held > goal["budget_tokens"] + largest:
            raise Broken("I7", f"goal {goal_id}: {used}+{held} of {goal['budget_tokens']}")
        begun = sum(_in_flight(now, row) for row in calls if before.steps.get(_key(row)) != row)
        if begun and used + held - begun >= goal["budget_tokens"]:
            raise Broken("I7", f"goal {goal_id}: a call begins, {used}+{held - begun} are gone")
    for key, attempt in now.attempts.items():
        steps = (row for row in now.steps.values() if (row["task_id"], row["attempt"]) == key)
        wanted = sum(_in_flight(now, row) for row in steps)
        seen += wanted > 0
        if attempt["reserved_tokens"] != wanted:
            raise Broken("I7", f"attempt {key} reserves {attempt['reserved_tokens']}, not {wanted}")
    return seen


def _key(step: Row) -> tuple[int, int, str, int]:
    return step["task_id"], step["take"], step["key"], step["generation"]


def _in_flight(now: Rows, step: Row) -> int:
    """The tokens that a step's open attempt has reserved for it."""
    attempt = now.attempts.get((step["task_id"], step["attempt"]))
    going = step["state"] == "intended" and attempt is not None and attempt["state"] == "open"
    return int(step["reserve_tokens"]) if going else 0


def briefed(before: Rows, now: Rows) -> int:
    """I8: one bundle a take, never exchanged; one take and, once ended, one outcome an attempt."""
    seen = 0
    written = {(key[0], key[1]) for key, row in now.steps.items() if row["attempt"]}
    for key, take in now.takes.items():
        if key in written and not take["bundle_sha256"]:
            raise Broken("I8", f"take {key} has steps and no bundle")
        old = before.takes.get(key)
        if old is not None and old["bundle_sha256"]:
            seen += 1
            if take != old:
                raise Broken("I8", f"take {key} changed after its brief")
    for key, row in now.attempts.items():
        if (key[0], row["take"]) not in now.takes:
            raise Broken("I8", f"attempt {key} has no take")
        ended = row["state"] == "ended"
        if ended != bool(row["outcome"]) or ended != (row["ended_ms"] is not None):
            raise Broken("I8", f"attempt {key} is {row['state']} with outcome {row['outcome']!r}")
    return seen


def hidden(before: Rows, now: Rows) -> int:
    """I9: no secret in any row that is new or changed, nor in any event or blob."""
    seen = 0
    written: list[Row] = [*now.fresh, *now.blobs]
    for table in KEYS:
        old = getattr(before, table)
        written += [row for key, row in getattr(now, table).items() if row != old.get(key)]
    for row in written:
        for name in row.keys():  # noqa: SIM118  a row is no mapping
            value = row[name]
            content = value.encode() if isinstance(value, str) else value
            if isinstance(content, bytes):
                seen += _MARK in content
                if SECRET in content:
                    raise Broken("I9", f"{name} of {dict(row)} holds the secret")
    return seen


def undone_backwards(before: Rows, now: Rows) -> int:
    """I10: compensations are planned and end in the reverse order of completion."""
    plans = {key for key, row in now.plans.items() if row["source"] == "undo"}
    if not plans:
        return 0
    ended = {
        int(row["entity"]): row["seq"]
        for row in now.log
        if row["machine"] == "task" and row["target"] in ("succeeded", "failed")
    }
    seen = 0
    for plan in plans:
        tasks = sorted(
            (row["position"], key) for key, row in now.tasks.items() if row["plan_id"] == plan
        )
        undoing = [key for _, key in tasks]
        undone = [json.loads(now.tasks[key]["spec"])["compensates"] for key in undoing]
        seen += max(len(undone) - 1, 0)
        if any(ended[one] < ended[other] for one, other in itertools.pairwise(undone)):
            raise Broken("I10", f"plan {plan} undoes {undone}, which ended {ended}")
        done = [ended[key] for key in undoing if key in ended]
        if done != sorted(done):
            raise Broken("I10", f"plan {plan} ended out of order")
    return seen


def proved(before: Rows, now: Rows) -> int:
    """I11: `passed` has at least one check, and each of them passed."""
    seen = 0
    for key, row in now.attempts.items():
        if row["outcome"] == "passed" and before.attempts.get(key) != row:
            seen += 1
            verdicts = [check["verdict"] for check in json.loads(row["report"]).get("checks", [])]
            if not verdicts or set(verdicts) != {"pass"}:
                raise Broken("I11", f"attempt {key} passed with {verdicts}")
    return seen


def never_twice(before: Rows, now: Rows) -> int:
    """I13: an irreversible effect is begun once, unless a person said to do it again.

    A step that is intended and lost in one transaction was never begun: it hands the question of
    an earlier take on.
    """
    allowed: Counter[tuple[int, str]] = Counter()
    times: Counter[tuple[int, str]] = Counter()
    irreversible: dict[str, tuple[int, str]] = {}
    for (task, take, key, generation), step in now.steps.items():
        if step["effect"] == "irreversible":
            irreversible[f"{task}/{take}/{key}#{generation}"] = (task, step["request"])
            answer = now.steps.get((task, take, f"{key}/answer#{generation}", 1))
            allowed[task, step["request"]] += answer is not None and answer["result"] == '"redo"'
    for row, after in zip(now.log, (*now.log, None)[1:], strict=True):
        effect = irreversible.get(row["entity"]) if row["machine"] == "step" else None
        if effect is None or row["event"] not in ("intend", "redo"):
            continue
        handed_on = after is not None and (after["entity"], after["event"]) == (
            row["entity"],
            "lose",
        )
        same = handed_on and after["at_ms"] == row["at_ms"] and after["attempt"] == row["attempt"]
        times[effect] += not (same and row["event"] == "intend" and row["entity"].endswith("#1"))
    for effect, count in times.items():
        if count > 1 + allowed[effect]:
            raise Broken("I13", f"task {effect[0]} begins {effect[1]} {count} times")
    return len(times)


def at_rest(rows: Rows) -> None:
    """I12: every goal has ended, and nobody still works. Judged once, when faults are off."""
    for goal_id, goal in rows.goals.items():
        if goal["state"] not in ("complete", "failed", "dropped"):
            raise Broken("I12", f"goal {goal_id} is still {goal['state']}")
    for plan_id, plan in rows.plans.items():
        if plan["state"] in ("running", "paused"):
            raise Broken("I12", f"plan {plan_id} is still {plan['state']}")
    for key, row in rows.attempts.items():
        if row["state"] == "open":
            raise Broken("I12", f"attempt {key} is still open")


def asked_once(before: Rows, now: Rows) -> int:
    """I14: what an outcome asks for is made once, with it and within its bound.

    A planning task that succeeded has made one plan, of what it proposed; conflicting work that
    was taken has one merge; a goal's checks have one follow-up for each round that asked for it.
    """
    if not any(row["machine"] in ("plan", "task") for row in now.fresh):
        return 0
    specs = {key: json.loads(row["spec"]) for key, row in now.tasks.items()}
    merges = Counter(spec["merges"] for spec in specs.values())
    seen = 0
    for task_id, spec in specs.items():
        task, asked = now.tasks[task_id], _asked(now, task_id)
        mates = [key for key, row in now.tasks.items() if row["plan_id"] == task["plan_id"]]
        if spec["kind"] == "verify":
            mends = [key for key in mates if specs[key]["provisional"]]
            seen += len(mends)
            if len(mends) != len(asked) or len(mends) > ROUNDS:
                raise Broken("I14", f"task {task_id} asked {len(asked)} times: {mends}")
        elif spec["kind"] == "plan":
            seen += _proposed(now, task, asked[0] if task["state"] == "succeeded" else None)
        else:
            seen += merges[task_id]
            wanted = task["state"] == "succeeded" and bool(asked)
            if merges[task_id] != wanted:
                raise Broken("I14", f"{merges[task_id]} merges of task {task_id} ({task['state']})")
    return seen


def _asked(now: Rows, task_id: int) -> list[list[str]]:
    """The keys that the ended attempts of a task asked for, each that asked for any."""
    reports = (
        json.loads(now.attempts[task_id, number]["report"] or "{}")
        for number in range(1, now.tasks[task_id]["attempts"] + 1)
    )
    return [[task["key"] for task in said["tasks"]] for said in reports if said.get("tasks")]


def _proposed(now: Rows, planning: Row, wanted: list[str] | None) -> int:
    """The plan that came of a planning task: the next of its goal, written by a model.

    One without tasks failed and was reopened: they went on in a later one.
    """
    full = {row["plan_id"] for row in now.tasks.values() if row["goal_id"] == planning["goal_id"]}
    plans = [(key, row) for key, row in now.plans.items() if key in full]
    later = [(key, row["source"]) for key, row in sorted(plans) if key > planning["plan_id"]]
    made = [key for key, _ in itertools.takewhile(lambda plan: plan[1] == "model", later)]
    if len(made) != (wanted is not None):
        raise Broken("I14", f"planning task {planning['id']} made plans {made}")
    if wanted is not None:
        mine = [row for row in now.tasks.values() if row["plan_id"] == made[0]]
        got = [row["key"] for row in sorted(mine, key=lambda row: row["position"])]
        if wanted != got[: len(wanted)]:
            raise Broken("I14", f"planning task {planning['id']} asked for {wanted}, not {got}")
    return len(made)


def _entity(machine: str, key: Any) -> str:
    if machine == "attempt":
        return f"{key[0]}.{key[1]}"
    if machine == "step":
        return f"{key[0]}/{key[1]}/{key[2]}#{key[3]}"
    return str(key)


_MARK = b"[redacted:"
_MACHINES = {
    "goals": "goal",
    "plans": "plan",
    "tasks": "task",
    "attempts": "attempt",
    "steps": "step",
}

CHECKERS: dict[str, Callable[[Rows, Rows], int]] = {
    "I1": one_attempt,
    "I2": fenced,
    "I3": requirements,
    "I4": absorbed,
    "I5": fixed,
    "I6": folded,
    "I7": within_budget,
    "I8": briefed,
    "I9": hidden,
    "I10": undone_backwards,
    "I11": proved,
    "I13": never_twice,
    "I14": asked_once,
}
