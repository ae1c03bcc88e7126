"""The desk: what people and programs do to links, contexts and indexes, by name, as plain JSON.

Owns no rule: each method is one use case that the command line runs too. Thread-safe as the engine
is. `App.desk` is the way to it; `web` serves it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.app import context
from holdfast.context.bundle import TOO_SMALL
from holdfast.context.steer import named
from holdfast.domain.model import ContextOptions, Strategy
from holdfast.engine import links, schedule, steering
from holdfast.errors import Refused

if TYPE_CHECKING:
    from holdfast.app import App

Json = dict[str, Any]
K_MAX = 50
MANUAL_MAX = 100


class Desk:
    """One app's desk."""

    def __init__(self, app: App) -> None:
        self._app = app

    def create_link(self, from_id: int, to_id: int, kind: str) -> Json:
        """Link two tasks; idempotent. Answers the links of `from_id`, and whether it is new."""
        created = self._app.engine.call(links.create_link, from_id, to_id, kind)
        return {**self.list_links(from_id), "created": created}

    def delete_link(self, from_id: int, to_id: int, kind: str) -> Json:
        """Remove a link; `NotFound` when there is none. Answers the links that are left."""
        self._app.engine.call(links.delete_link, from_id, to_id, kind)
        return self.list_links(from_id)

    def list_links(self, task_id: int) -> Json:
        """`incoming` and `outgoing` links of a task, in one order."""
        return self._app.engine.read(links.list_links, task_id)

    def list_dependencies(self, task_id: int) -> list[Json]:
        """What a task requires and refers to, requirements first."""
        return self._app.engine.read(links.list_dependencies, task_id)

    def requires_dag_schedule(
        self, plan_id: int | None = None, *, strategy: Strategy = "dag"
    ) -> Json:
        """The order of a plan's tasks, or of all plans that are going on."""
        return self._app.engine.read(schedule.requires_dag_schedule, plan_id, strategy=strategy)

    def gather_context(
        self,
        task_id: int,
        include_plan: bool = True,
        include_deps: bool = True,
        k: int = 5,
        manual: Sequence[str | int] | None = None,
    ) -> Json:
        """The curated context of a task: `text`, and `sections` with id, kind, excerpt and size.

        `manual` names sources (a file, a task's number) that are pinned. Sizes are tokens.
        """
        wished = {"include_plan": include_plan, "include_deps": include_deps, "k": k}
        found = self.preview(task_id, {"mode": "curated", **wished, "manual": tuple(manual or ())})
        sections = [
            {
                "source": item["source"],
                "source_id": item["cite"] or item["source"],
                "kind": item["type"],
                "excerpt": item["excerpt"],
                "size": item["tokens"],
                "reason": item["reason"],
                "trust": item["trust"],
            }
            for item in found["items"]
            if item["fate"] != "out"
        ]
        return {
            "task_id": task_id,
            "sections": sections,
            "text": found["text"],
            "size": found["tokens"],
            "sha256": found["sha256"],
            "left_out": [
                {"source": item["source"], "kind": item["type"], "reason": item["reason"]}
                for item in found["items"]
                if item["fate"] == "out"
            ],
        }

    def preview(self, task_id: int, changes: Mapping[str, Any] | None = None) -> Json:
        """What the task's next attempt gets; `changes` to its options try something else."""
        if not changes:
            return context.preview(self._app, task_id)
        claim, _ = self._app.engine.read(steering.next_claim, task_id)
        options = with_changes(claim.spec.policy.context, changes, self._app.redact)
        self._app.engine.read(steering.need_sources, options.manual, task_id)
        return context.preview(self._app, task_id, options=options)

    def approve(
        self,
        task_id: int,
        *,
        pins: Sequence[str | int],
        excludes: Sequence[str | int],
        author: str,
        reason: str,
        once: bool = False,
    ) -> Json:
        """Record a whole choice of pins and exclusions, with the hash of the preview that it was
        made on (empty where nothing fits the budget); answers the preview that follows."""
        try:
            _, content, _ = context.next_bundle(self._app, task_id)
            seen = sha256(content).hexdigest()
        except Refused as refused:  # what is decided now may be the way out
            if refused.code != TOO_SMALL:
                raise
            seen = ""
        redact = self._app.redact
        self._app.engine.call(
            steering.approve,
            task_id,
            pins=[redact(source_of(one)) for one in pins],
            excludes=[redact(source_of(one)) for one in excludes],
            author=redact(author),
            reason=redact(reason),
            bundle_sha256=seen,
            once=once,
        )
        return context.preview(self._app, task_id)

    def history(self, task_id: int | None = None) -> Json:
        """Who decided what about a task's context, or about any task's, oldest first."""
        found = self._app.engine.read(steering.history, task_id)
        return {"type": "steers", "task": task_id, "steers": found}

    def compare(self, left: str, right: str) -> Json:
        """Two bundles, each an attempt such as 3.1 or a task such as 3."""
        return context.compare(self._app, left, right)

    def get_index(self, goal_id: int) -> Json:
        """A goal's INDEX.md, its version, and whether it is stale."""
        page = self._app.engine.read(steering.get_index, goal_id)
        return {"type": "index", "goal": goal_id, **msgspec.to_builtins(page)}

    def put_index(self, goal_id: int, text: str, *, version: int, author: str) -> Json:
        """Write the next version over `version`; raises `Stale` when another was first."""
        written, who = self._app.redact(text), self._app.redact(author)
        self._app.engine.call(steering.put_index, goal_id, written, version=version, author=who)
        return self.get_index(goal_id)


def with_changes(
    own: ContextOptions, changes: Mapping[str, Any], redact: Callable[[str], str]
) -> ContextOptions:
    """Options with some of them changed; refuses what is out of bounds."""
    changed = dict(changes)
    if "manual" in changed:
        changed["manual"] = tuple(redact(source_of(one)) for one in changed["manual"])
    made = replace(own, **changed)
    if not 0 <= made.k <= K_MAX:
        raise Refused(f"k is {made.k}; it is how many outputs are retrieved, 0 to {K_MAX}")
    if made.tokens < 0:
        raise Refused(f"tokens is {made.tokens}; 0 leaves it to the settings")
    if len(made.manual) > MANUAL_MAX:
        raise Refused(f"manual names {len(made.manual)} sources; at most {MANUAL_MAX}")
    return made


def source_of(source: str | int) -> str:
    """A source as bundles name it; a number is a task's."""
    return named(f"Task {source}" if isinstance(source, int) else source)
