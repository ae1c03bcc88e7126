"""What the routes are sent, as exact types: an unknown field or a wild number is told as such.

Owns shapes and bounds of the wire alone; what is true about tasks and sources is decided below.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.domain.model import Strategy

Json = dict[str, Any]
Id = Annotated[int, Meta(ge=1, le=2**53 - 1)]
Count = Annotated[int, Meta(ge=0, le=10**9)]
Line = Annotated[str, Meta(max_length=2000)]
Sources = Annotated[tuple[Id | Annotated[str, Meta(min_length=1)], ...], Meta(max_length=100)]


class Exact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A body or a query whose every field is known."""


class LinkBody(Exact, frozen=True):
    from_id: Id
    to_id: Id
    kind: Line


class Shown(Exact, frozen=True):
    """Options of a context; what was not sent stays as it is."""

    include_plan: bool | UnsetType = UNSET
    include_deps: bool | UnsetType = UNSET
    k: Annotated[int, Meta(ge=0, le=50)] | UnsetType = UNSET
    manual: Sources | UnsetType | None = UNSET
    tokens: Count | UnsetType = UNSET
    summary: Literal["extract", "model"] | UnsetType = UNSET

    def changes(self, use_context: bool | None) -> Json:
        """The fields that were sent, by the names of the task's options."""
        names = ("include_plan", "include_deps", "k", "manual", "tokens", "summary")
        sent = {name: getattr(self, name) for name in names}
        found = {name: value for name, value in sent.items() if value is not UNSET}
        if "manual" in found:
            found["manual"] = found["manual"] or ()
        if use_context is not None:
            found["mode"] = "curated" if use_context else "plain"
        return found


class PreviewBody(Shown, frozen=True):
    """`options` may hold the same fields, as they are sent to `/run`, and wins."""

    use_context: bool | None = None
    options: Shown | None = None


class ApproveBody(Exact, frozen=True):
    pins: Sources = ()
    excludes: Sources = ()
    author: Line = ""
    reason: Line = ""
    once: bool = False


class IndexBody(Exact, frozen=True):
    text: str
    version: Count
    author: Line = ""


class DiffQuery(Exact, frozen=True):
    left: Line
    right: Line


class ScheduleQuery(Exact, frozen=True):
    plan_id: Id | None = None
    strategy: Strategy = "dag"


class RunOptions(Shown, frozen=True):
    """Options of a new goal. `again` makes one although a goal of this title is over; with `wait`
    the answer comes when it rests."""

    model: Line = ""
    checks: Annotated[tuple[Line, ...], Meta(max_length=50)] = ()
    max_turns: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    budget_tokens: Count = 0
    budget_usd: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    again: bool = False
    wait: bool = False


class RunBody(Exact, frozen=True):
    title: Annotated[str, Meta(max_length=20_000)] | None = None
    strategy: Strategy | None = None
    use_context: bool | None = None
    options: RunOptions = RunOptions()
