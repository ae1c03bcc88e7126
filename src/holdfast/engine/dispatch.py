"""Use cases of the lease: claim, brief, renew, and finding leases whose holder is gone.

The attempt number a claim opens is the fencing token of everything the holder writes. Ownership
ends with the `settle` or `expire` transition, never by a clock read in a writer.
"""

from __future__ import annotations

from holdfast.domain.model import Claim, Fence
from holdfast.engine.moves import move_goal, move_task
from holdfast.engine.rows import budget_of, fence_of, need, spec_of, step_of
from holdfast.errors import Stale
from holdfast.store import Row, Tx, transition


def claim(tx: Tx, worker: str, *, lease_s: float, goal: int = 0) -> Claim | None:
    """Grant the next ready task to a worker: opens its next attempt; None when nothing is ready.

    The attempt joins the task's open take, whose recorded steps come with the claim, or opens the
    next one. With `goal`, only that goal's tasks.
    """
    task = tx.one("task.next_ready_of_goal", goal=goal) if goal else tx.one("task.next_ready")
    if task is None:
        return None
    attempt = task["attempts"] + 1
    take = task["take"] if task["take_open"] else task["take"] + 1
    if not task["take_open"]:
        tx.run("take.open", task=task["id"], take=take, parent=0, parent_step="")
    goal_row = need(tx, "goal", id=task["goal_id"])
    spec = spec_of(task)
    transition(
        tx,
        "attempt",
        "open",
        source="",
        entity=f"{task['id']}.{attempt}",
        goal=task["goal_id"],
        task=task["id"],
        attempt=attempt,
        statement="open",
        values={
            "task": task["id"],
            "attempt": attempt,
            "take": take,
            "worker": worker,
            "model": spec.model or goal_row["model"],
            "lease_until_ms": tx.now_ms + round(lease_s * 1000),
        },
    )
    move_task(tx, task, "claim", statement="claim", attempt=attempt, take=take)
    if spec.kind == "verify" and goal_row["state"] == "executing":
        move_goal(tx, goal_row["id"], "executing", "verify")
    return _claim(tx, task, goal_row, attempt, take, lease_s)


def brief(tx: Tx, fence: Fence, bundle: bytes, *, base_commit: str, base_tree: str) -> str:
    """Give a take its bundle and base, once; returns the bundle's sha256. Idempotent by content."""
    attempt = need(tx, "attempt", task=fence.task, attempt=fence.attempt)
    if attempt["state"] != "open":
        raise Stale(f"attempt {fence.session} has ended; its bundle was not stored")
    digest = tx.put(bundle)
    changed = tx.run(
        "take.brief",
        task=fence.task,
        take=fence.take,
        bundle=digest,
        base_commit=base_commit,
        base_tree=base_tree,
    )
    if changed == 0:
        take = tx.one("take.get", task=fence.task, take=fence.take)
        if take is None or take["bundle_sha256"] != digest:
            raise Stale(f"take {fence.take} of task {fence.task} has another bundle already")
    return digest


def renew(tx: Tx, fence: Fence, *, lease_s: float) -> str:
    """Prolong a lease; the answer is `go on`, or `cancel` when its holder is asked to stop.

    Raises `Stale` when the attempt has ended: the holder no longer owns the task.
    """
    attempt = need(tx, "attempt", task=fence.task, attempt=fence.attempt)
    until = tx.now_ms + round(lease_s * 1000)
    if not tx.run("attempt.renew", task=fence.task, attempt=fence.attempt, lease_until_ms=until):
        raise Stale(f"attempt {fence.session} has ended; stop working on it")
    return "cancel" if attempt["cancel"] else "go on"


def holders(tx: Tx) -> list[tuple[str, Fence, int]]:
    """Every open attempt as (worker, fence, lease_until_ms), for whoever reaps the dead."""
    return [
        (row["worker"], fence_of(row, row["goal_id"]), row["lease_until_ms"])
        for row in tx.all("attempt.open")
    ]


def _claim(tx: Tx, task: Row, goal: Row, attempt: int, number: int, lease_s: float) -> Claim:
    take = tx.one("take.get", task=task["id"], take=number)
    assert take is not None
    rows = tx.all("step.of_take", task=task["id"], take=number)
    undoing = need(tx, "plan", id=task["plan_id"])["source"] == "undo"
    base = goal["branch_commit"] if undoing else goal["tip_commit"]
    return Claim(
        fence=Fence(task=task["id"], attempt=attempt, take=number, goal=goal["id"]),
        spec=spec_of(task),
        goal_text=goal["text"],
        repository=goal["repository"],
        branch=goal["branch"],
        model=goal["model"],
        base_commit=take["base_commit"] if take["bundle_sha256"] else base,
        base_tree=take["base_tree"],
        bundle_sha256=take["bundle_sha256"],
        seed=goal["seed"],
        budget=budget_of(goal),
        lease_s=lease_s,
        steps=tuple(step_of(tx, row) for row in rows),
    )
