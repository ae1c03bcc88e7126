"""Task graphs: validation with the concrete loop, stable topological order, what blocks what.

Pure functions over keys. An edge `a → b` in `requires[a]` means a needs b first. Ties are broken by
priority (higher first), then by position in the plan, so the order is the same everywhere.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

from holdfast.errors import Refused
from holdfast.frozen import frozen

K = TypeVar("K", bound=Hashable)


@frozen
class Cycle(Generic[K]):
    """Tasks that wait for each other.

    `members` are those of one strongly connected component, nobody else; `loop` is one concrete way
    round, its first key repeated at the end; `remove` is the requirement whose removal frees them,
    and `frees_all` is false when the component has further loops beside it.
    """

    members: tuple[K, ...]
    loop: tuple[K, ...]
    remove: tuple[K, K]
    frees_all: bool


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


def find_cycle(requires: Mapping[K, Sequence[K]]) -> list[K]:
    """One concrete loop, first key repeated at the end; empty when there is none."""
    done: set[K] = set()
    for start in requires:
        path: list[K] = []
        on_path: set[K] = set()
        work: list[tuple[K, bool]] = [(start, True)]
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


def cycles(requires: Mapping[K, Sequence[K]]) -> list[Cycle[K]]:
    """Every set of tasks that wait for each other, in the order of their first members' keys."""
    found = []
    for members in _components(requires):
        inside = {key: [k for k in requires[key] if k in members] for key in members}
        loop = find_cycle(inside)
        if loop:
            found.append(_cycle(inside, loop))
    rank = {key: index for index, key in enumerate(requires)}
    return sorted(found, key=lambda cycle: rank[cycle.members[0]])


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


def levels(requires: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """How many requirements in a row stand before each task of an acyclic graph; 0 for a root."""
    level: dict[str, int] = {}
    for key in order(requires):
        level[key] = 1 + max((level[other] for other in requires[key]), default=-1)
    return level


def unmet(needed: Iterable[str], state: Mapping[str, str], forced: Iterable[str] = ()) -> list[str]:
    """The requirements that keep a task blocked: only `succeeded` or a recorded force satisfies."""
    ignored = set(forced)
    return [key for key in needed if key not in ignored and state.get(key) != "succeeded"]


def _cycle(inside: Mapping[K, Sequence[K]], loop: Sequence[K]) -> Cycle[K]:
    edges = list(pairwise(loop))
    for edge in edges:
        left = {key: [k for k in needed if (key, k) != edge] for key, needed in inside.items()}
        if not find_cycle(left):
            return Cycle(members=tuple(inside), loop=tuple(loop), remove=edge, frees_all=True)
    return Cycle(members=tuple(inside), loop=tuple(loop), remove=edges[-1], frees_all=False)


def _components(requires: Mapping[K, Sequence[K]]) -> Iterator[dict[K, None]]:
    """Strongly connected components, members in key order (Tarjan 1972, without recursion)."""
    number: dict[K, int] = {}
    low: dict[K, int] = {}
    open_keys: dict[K, None] = {}
    for root in requires:
        work: list[tuple[K, Iterator[K]]] = []
        entering: K | None = root if root not in number else None
        while work or entering is not None:
            if entering is not None:
                number[entering] = low[entering] = len(number)
                open_keys[entering] = None
                work.append((entering, iter(requires.get(entering, ()))))
                entering = None
            key, others = work[-1]
            for other in others:
                if other not in number and other in requires:
                    entering = other
                    break
                if other in open_keys:
                    low[key] = min(low[key], number[other])
            if entering is not None:
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[key])
            if low[key] == number[key]:
                members = [k for k in open_keys if number[k] >= number[key]]
                for member in members:
                    del open_keys[member]
                inside = set(members)
                yield {k: None for k in requires if k in inside}
