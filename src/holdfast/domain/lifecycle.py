"""Every lifecycle as rows of one literal table, and the one function that reads it.

The rows are read by the guard (`advance`), by the database (each transition event is a foreign key
to the same rows), by the diagrams in docs/lifecycles.md and by the property tests. A source of ""
is birth. Nothing else in Holdfast knows which state may follow which.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from holdfast.errors import IllegalTransition

Machine = Literal["goal", "plan", "task", "attempt", "step"]


class Transition(NamedTuple):
    machine: Machine
    source: str
    event: str
    target: str


TRANSITIONS: tuple[Transition, ...] = (
    Transition("goal", "", "submit", "submitted"),
    Transition("goal", "submitted", "decompose", "decomposing"),
    Transition("goal", "decomposing", "execute", "executing"),
    Transition("goal", "executing", "verify", "verifying"),
    Transition("goal", "verifying", "complete", "complete"),
    Transition("goal", "verifying", "gap", "executing"),
    Transition("goal", "decomposing", "fail", "failed"),
    Transition("goal", "executing", "fail", "failed"),
    Transition("goal", "verifying", "fail", "failed"),
    Transition("goal", "failed", "reopen", "executing"),
    Transition("goal", "failed", "decompose", "decomposing"),  # reopened where planning failed
    Transition("goal", "submitted", "drop", "dropped"),
    Transition("goal", "decomposing", "drop", "dropped"),
    Transition("goal", "executing", "drop", "dropped"),
    Transition("goal", "verifying", "drop", "dropped"),
    Transition("goal", "failed", "drop", "dropped"),
    #
    Transition("plan", "", "draft", "draft"),
    Transition("plan", "draft", "propose", "proposed"),
    Transition("plan", "proposed", "approve", "running"),
    Transition("plan", "proposed", "reject", "rejected"),
    Transition("plan", "running", "finish", "succeeded"),
    Transition("plan", "running", "pause", "paused"),
    Transition("plan", "paused", "resume", "running"),
    Transition("plan", "running", "break", "compensating"),
    Transition("plan", "compensating", "undone", "failed"),
    Transition("plan", "draft", "supersede", "superseded"),
    Transition("plan", "proposed", "supersede", "superseded"),
    Transition("plan", "running", "supersede", "superseded"),
    Transition("plan", "paused", "supersede", "superseded"),
    Transition("plan", "draft", "cancel", "cancelled"),
    Transition("plan", "proposed", "cancel", "cancelled"),
    Transition("plan", "running", "cancel", "cancelled"),
    Transition("plan", "paused", "cancel", "cancelled"),
    #
    Transition("task", "", "block", "blocked"),
    Transition("task", "", "unblock", "ready"),
    Transition("task", "blocked", "unblock", "ready"),
    Transition("task", "ready", "block", "blocked"),
    Transition("task", "ready", "claim", "running"),
    Transition("task", "running", "succeed", "succeeded"),
    Transition("task", "running", "retry", "ready"),
    Transition("task", "running", "wait", "waiting"),
    Transition("task", "running", "fail", "failed"),
    Transition("task", "waiting", "signal", "ready"),
    Transition("task", "blocked", "cancel", "cancelled"),
    Transition("task", "ready", "cancel", "cancelled"),
    Transition("task", "running", "cancel", "cancelled"),
    Transition("task", "waiting", "cancel", "cancelled"),
    Transition("task", "failed", "reopen", "ready"),
    Transition("task", "blocked", "expire", "failed"),
    Transition("task", "ready", "expire", "failed"),
    Transition("task", "waiting", "expire", "failed"),
    Transition("task", "ready", "fail", "failed"),
    #
    Transition("attempt", "", "open", "open"),
    Transition("attempt", "open", "settle", "ended"),
    Transition("attempt", "open", "expire", "ended"),
    #
    Transition("step", "", "intend", "intended"),
    Transition("step", "", "done", "done"),
    Transition("step", "intended", "done", "done"),
    Transition("step", "intended", "redo", "intended"),
    Transition("step", "intended", "lose", "unknown"),
)

MACHINES: tuple[Machine, ...] = get_args(Machine)

ABSORBING: dict[Machine, frozenset[str]] = {
    "goal": frozenset({"complete", "dropped"}),
    "plan": frozenset({"rejected", "superseded", "succeeded", "failed", "cancelled"}),
    "task": frozenset({"succeeded", "cancelled"}),
    "attempt": frozenset({"ended"}),
    "step": frozenset({"done", "unknown"}),
}

_NEXT = {(row.machine, row.source, row.event): row.target for row in TRANSITIONS}


def advance(machine: Machine, source: str, event: str) -> str:
    """The state that follows, or `IllegalTransition` naming the events that are possible."""
    target = _NEXT.get((machine, source, event))
    if target is None:
        possible = ", ".join(events(machine, source)) or "nothing"
        raise IllegalTransition(
            f"a {source or 'new'} {machine} cannot {event}", hint=f"possible here: {possible}"
        )
    return target


def events(machine: Machine, source: str) -> list[str]:
    """The events a state allows, sorted: which buttons exist."""
    return sorted(row.event for row in TRANSITIONS if row[:2] == (machine, source))


def states(machine: Machine) -> list[str]:
    """Every state of a machine, in table order."""
    found = dict.fromkeys(row.target for row in TRANSITIONS if row.machine == machine)
    return list(found)


def diagram(machine: Machine) -> str:
    """A Mermaid state diagram of one machine, for the docs."""
    lines = ["stateDiagram-v2"]
    for row in TRANSITIONS:
        if row.machine == machine:
            lines.append(f"    {row.source or '[*]'} --> {row.target}: {row.event}")
    lines.extend(f"    {state} --> [*]" for state in sorted(ABSORBING[machine]))
    return "\n".join(lines) + "\n"
