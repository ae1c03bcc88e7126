"""Task graphs: validation with the concrete loop, stable topological order, what blocks what.

Pure functions over keys. An edge `a → b` in `requires[a]` means a needs b first. Ties are broken by
priority (higher first), then by position in the plan, so the order is the same everywhere.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

from holdfast.errors import Refused


def validate(requires: Mapping[str, Sequence[str]]) -> None:
    """Refuse a requirement that is not there, a self-link or a cycle, each with its path."""
    for key, needed in requires.items():
        for other in needed:
            if other == key:
                raise Refused(f"task {key!r} requires itself", code="plan_cycle")
            if other not in requires:
                raise Refused(
                    f"task {key!r} requires {other!r}, which is not in the plan",
                    hint="tasks: " + ", ".join(requires),
                    code="plan_missing",
                )
    loop = find_cycle(requires)
    if loop:
        path = " → ".join(loop)
        raise Refused(
            f"the plan has a cycle: {path}",
            hint=f"remove the requirement of {loop[-2]!r} on {loop[-1]!r}",
            code="plan_cycle",
        )


def find_cycle(requires: Mapping[str, Sequence[str]]) -> list[str]:
    """One concrete loop, first key repeated at the end; empty when there is none."""
    done: set[str] = set()
    for start in requires:
        path: list[str] = []
        on_path: set[str] = set()
        work: list[tuple[str, bool]] = [(start, True)]
        while work:
            key, entering = work.pop()
            if not entering:
                on_path.discard(path.pop())
                done.add(key)
            elif key in on_path:
                return [*path[path.index(key) :], key]
            elif key not in done:
                path.append(key)
                on_path.add(key)
                work.append((key, False))
                work.extend((other, True) for other in reversed(requires.get(key, ())))
    return []


def order(
    requires: Mapping[str, Sequence[str]], priority: Mapping[str, int] | None = None
) -> list[str]:
    """A stable topological order of an acyclic graph (Kahn 1962, with a heap for the ties)."""
    rank = {key: (-(priority or {}).get(key, 0), index) for index, key in enumerate(requires)}
    waiting = {key: len(set(needed)) for key, needed in requires.items()}
    dependants: dict[str, list[str]] = {key: [] for key in requires}
    for key, needed in requires.items():
        for other in set(needed):
            dependants[other].append(key)
    ready = [(rank[key], key) for key, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    result: list[str] = []
    while ready:
        _, key = heapq.heappop(ready)
        result.append(key)
        for dependant in dependants[key]:
            waiting[dependant] -= 1
            if waiting[dependant] == 0:
                heapq.heappush(ready, (rank[dependant], dependant))
    assert len(result) == len(requires), "order() needs an acyclic graph; validate() first"
    return result


def unmet(needed: Iterable[str], state: Mapping[str, str], forced: Iterable[str] = ()) -> list[str]:
    """The requirements that keep a task blocked: only `succeeded` or a recorded force satisfies."""
    ignored = set(forced)
    return [key for key in needed if key not in ignored and state.get(key) != "succeeded"]
