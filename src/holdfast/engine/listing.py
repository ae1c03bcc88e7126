"""Reading use cases of the nouns: rows as JSON objects, for `list` and `show`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec

from holdfast.domain.model import TaskSpec
from holdfast.domain.tiers import guess, tier_of
from holdfast.engine.digest import bundle_sizes, call, checks, turns
from holdfast.engine.outlook import goal_result, usage
from holdfast.engine.rows import need, outcome_of, spec_of, spent_by, step_of
from holdfast.store import Row, Tx

Json = dict[str, Any]
GAP = "gap"  # why the goal's checks wait: their follow-ups are used up


def goals(tx: Tx) -> list[Json]:
    """Every goal with its spend and how many of its tasks are done, oldest first."""
    counts = {row["goal_id"]: (row["tasks"], row["done"]) for row in tx.all("goal.counts")}
    return [
        {
            "goal": row["id"],
            "text": row["text"],
            "state": row["state"],
            "reason": row["reason"],
            "branch": row["branch"],
            "created_ms": row["created_ms"],
            "ended_ms": row["ended_ms"],
            "undone": row["undone_ms"] is not None,
            "tasks_total": counts.get(row["id"], (0, 0))[0],
            "tasks_done": counts.get(row["id"], (0, 0))[1],
            "usage": usage(spent_by(tx, row["id"])),
        }
        for row in tx.all("goal.list")
    ]


def goal(tx: Tx, goal_id: int) -> Json:
    """One goal: its result as it stands, its plans and its tasks with their attempts."""
    row = need(tx, "goal", id=goal_id)
    return {
        **goal_result(tx, goal_id),
        "type": "goal",
        "text": row["text"],
        "repository": row["repository"],
        "base_commit": row["base_commit"],
        "model": row["model"],
        "budget": {"tokens": row["budget_tokens"], "usd": row["budget_usd"]},
        "plans": [plan(tx, row["id"]) for row in tx.all("plan.of_goal", goal=goal_id)],
    }


def plans(tx: Tx, goal_id: int = 0) -> list[Json]:
    """The plans of a goal, or of every goal."""
    ids = [goal_id] if goal_id else [row["id"] for row in tx.all("goal.list")]
    return [plan(tx, row["id"]) for one in ids for row in tx.all("plan.of_goal", goal=one)]


def plan(tx: Tx, plan_id: int) -> Json:
    """One revision with its tasks."""
    row = need(tx, "plan", id=plan_id)
    return {
        "plan": plan_id,
        "goal": row["goal_id"],
        "revision": row["revision"],
        "source": row["source"],
        "state": row["state"],
        "reason": row["reason"],
        "tasks": [task_row(tx, task["id"]) for task in tx.all("task.of_plan", plan=plan_id)],
    }


def plan_specs(tx: Tx, plan_id: int) -> list[TaskSpec]:
    """The contracts of a plan's tasks, in plan order."""
    return [spec_of(row) for row in tx.all("task.of_plan", plan=plan_id)]


def tasks(tx: Tx, goal_id: int = 0) -> list[Json]:
    """The tasks of a goal, or of every goal."""
    ids = [goal_id] if goal_id else [row["id"] for row in tx.all("goal.list")]
    return [task_row(tx, task["id"]) for one in ids for task in tx.all("task.of_goal", goal=one)]


def task_row(tx: Tx, task_id: int) -> Json:
    """One task: contract, state, what blocks it, and its attempts."""
    row = need(tx, "task", id=task_id)
    spec = spec_of(row)
    return {
        "task": task_id,
        "goal": row["goal_id"],
        "key": row["key"],
        "plan": row["plan_id"],
        "title": spec.label,
        "prompt": spec.prompt,
        "kind": spec.kind,
        "model": spec.model,
        "files": list(spec.files),
        "command": spec.command,
        "state": row["state"],
        "reason": row["reason"],
        "blocked_by": [
            {"task": other["id"], "key": other["key"], "state": other["state"]}
            for other in (tx.all("task.unmet", id=task_id) if row["state"] == "blocked" else ())
        ],
        "requires": list(spec.requires),
        "checks": list(spec.checks),
        "creates": list(spec.creates),
        **_contract(spec),
        "not_before_ms": row["not_before_ms"],
        "ended_ms": row["ended_ms"],
        "undone": row["undone_ms"] is not None,
        "attempts": [_attempt(each) for each in tx.all("attempt.of_task", task=task_id)],
    }


def _contract(spec: TaskSpec) -> Json:
    """What a task declares beside its checks, and how hard it is: said, and by the heuristic."""
    found = guess(spec)
    return {
        "context": spec.context,
        "success_criteria": list(spec.success_criteria),
        "file_hints": [asdict(hint) for hint in spec.file_hints],
        "files": list(spec.files),
        "inputs": dict(spec.inputs),
        "preconditions": list(spec.preconditions),
        "postconditions": list(spec.postconditions),
        "effects": None if spec.effects is None else list(spec.effects),
        "priority": spec.priority or "normal",
        "tier": tier_of(spec),
        "tier_said": spec.tier,
        "tier_guess": found.tier,
        "tier_reason": found.reason,
        "policy": asdict(spec.policy),
    }


def attempt_row(tx: Tx, task_id: int, number: int) -> Json:
    """One attempt: when, by whom, how it ended and what it cost."""
    return _attempt(need(tx, "attempt", task=task_id, attempt=number))


def _attempt(row: Row) -> Json:
    outcome = outcome_of(row) if row["state"] == "ended" else None
    return {
        "attempt": f"{row['task_id']}.{row['number']}",
        "take": row["take"],
        "worker": row["worker"],
        "model": row["model"],
        "state": row["state"],
        "outcome": row["outcome"],
        "failure": row["failure"],
        "reason": row["reason"],
        "detail": outcome.detail if outcome else "",
        "checks": [msgspec.to_builtins(check) for check in outcome.checks] if outcome else [],
        "steps": row["steps"],
        "tokens": row["tokens_in"] + row["tokens_out"],
        "tokens_in": row["tokens_in"],
        "tokens_out": row["tokens_out"],
        "tokens_cached": row["tokens_cached"],
        "cost_usd": None if row["unpriced"] else row["cost_nusd"] / 1e9,
        "started_ms": row["started_ms"],
        "ended_ms": row["ended_ms"],
    }


def attempt(tx: Tx, task_id: int, number: int) -> Json:
    """One attempt with its outcome, bundle and turns, and the journal of its take in full."""
    row = need(tx, "attempt", task=task_id, attempt=number)
    task, take = need(tx, "task", id=task_id), tx.one("take.get", task=task_id, take=row["take"])
    assert take is not None
    outcome = outcome_of(row) if row["state"] == "ended" else None
    rows = tx.all("step.of_take", task=task_id, take=row["take"])
    journal = [_step(tx, step) for step in rows]
    digest = take["bundle_sha256"]
    bundle = msgspec.json.decode(tx.get(digest)) if digest else {}
    return {
        **_attempt(row),
        "task": task_id,
        "key": task["key"],
        "title": spec_of(task).label,
        "goal": task["goal_id"],
        "answer": outcome.answer if outcome else "",
        "done": list(outcome.done) if outcome else [],
        "remaining": list(outcome.remaining) if outcome else [],
        "commit": outcome.commit if outcome else "",
        "bundle": bundle_sizes(digest, bundle) if digest else None,
        "turns": turns(journal),
        "commands": [call(step) for step in journal if step["key"] == "command"],
        "check_runs": checks(journal),
        "journal": journal,
    }


def _step(tx: Tx, row: Row) -> Json:
    step = step_of(tx, row)
    return {
        "key": step.key,
        "generation": step.generation,
        "kind": step.kind,
        "effect": step.effect,
        "state": step.state,
        "by": step.attempt,
        "request": msgspec.json.decode(step.request),
        "result": None if step.result is None else msgspec.json.decode(step.result),
        "tree_after": step.tree_after,
        "tokens": step.usage.tokens,
        "cost_usd": None if step.usage.cost_nusd is None else step.usage.cost_nusd / 1e9,
        "took_ms": max((row["done_ms"] or row["intended_ms"]) - row["intended_ms"], 0),
    }


def waiting(tx: Tx) -> list[Json]:
    """Tasks that wait for a person, with the evidence and the key that an answer goes to."""
    found = []
    for row in tasks(tx):
        if row["state"] != "waiting":
            continue
        task = need(tx, "task", id=row["task"])
        steps = tx.all("step.of_take", task=row["task"], take=task["take"])
        asked = [(step["key"], step["generation"]) for step in steps if step["state"] == "unknown"]
        if row["reason"] == GAP:
            asked = [(GAP, 1 + sum(step["key"].startswith(f"{GAP}/answer#") for step in steps))]
        found.append(
            {
                "task": row["task"],
                "goal": row["goal"],
                "title": row["title"],
                "reason": row["reason"],
                "evidence": row["attempts"][-1]["detail"],
                "step": asked[-1][0] if asked else "",
                "generation": asked[-1][1] if asked else 0,
            }
        )
    return found
