"""Previewing, steering and comparing bundles: what the `desk` builds on.

A preview calls what an attempt calls, on the same base, so its hash is the hash that the attempt
will record. A take that has begun keeps its bundle: its preview is the recorded one.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import unified_diff
from hashlib import sha256
from typing import Any, Literal

import msgspec

from holdfast.agent.conversation import encode
from holdfast.app import App
from holdfast.context.bundle import TRUST, Bundle, Item, prompt_type
from holdfast.context.tokens import count_tokens
from holdfast.domain.model import ContextOptions
from holdfast.engine.attempts import NAME_CHARS_MAX, attempt_record
from holdfast.engine.listing import task_row
from holdfast.engine.steering import next_claim, steer, steers_of
from holdfast.errors import Refused
from holdfast.store import Tx
from holdfast.worker.gather import gather
from holdfast.worker.merging import begin

Json = dict[str, Any]
Verb = Literal["pin", "exclude", "release"]


def preview(
    app: App, task: int, *, tokens: int | None = None, options: ContextOptions | None = None
) -> Json:
    """The bundle of the task's next attempt, as things stand now.

    `options` tries others than the task's own, `tokens` another budget: then the bundle is what an
    attempt with these would get, also when the take that is open has begun with another one.
    """
    if tokens is not None and tokens < 0:
        raise Refused("--tokens must be positive")
    claim, _ = app.engine.read(next_claim, task)
    if tokens is not None:  # 0 stands for the settings' size there; here nothing fits into it
        options = replace(options or claim.spec.policy.context, tokens=tokens or 1)
    bundle, content, recorded = next_bundle(app, task, options)
    return {
        "type": "context",
        "task": task,
        "take": claim.fence.take,
        "recorded": recorded,
        "state": app.engine.read(task_row, task)["state"],
        "sha256": sha256(content).hexdigest(),
        "model": bundle.model,
        "budget_tokens": bundle.budget_tokens,
        "tokens": bundle.tokens or count_tokens(bundle.user),
        "counter": bundle.counter,
        "options": msgspec.to_builtins(bundle.options),
        "order": bundle.order,
        "items": [_shown(item, bundle.user) for item in bundle.items],
        "steers": [
            msgspec.to_builtins(one) for one in app.engine.read(steers_of, task, claim.fence.take)
        ],
        "system": bundle.system,
        "text": bundle.user,
    }


def _shown(item: Item, text: str) -> Json:
    return {
        **msgspec.to_builtins(item),
        "type": prompt_type(item.kind),
        "trust": TRUST[item.kind],
        "excerpt": text[item.at : item.at + item.chars],
    }


def decide(
    app: App, task: int, verb: Verb, source: str, *, author: str, reason: str, once: bool = False
) -> None:
    """Pin, exclude or release one source; author and reason are redacted like any text."""
    app.engine.call(
        steer,
        task,
        verb,
        app.redact(source),
        author=app.redact(author),
        reason=app.redact(reason),
        once=once,
    )


def compare(app: App, left: str, right: str) -> Json:
    """Two bundles, each an attempt such as 3.1 or a task such as 3: items and text that differ."""
    one, other = _named(app, left), _named(app, right)
    before, after = ({item.source: item for item in bundle.items} for bundle in (one, other))
    changes = []
    for source in sorted({*before, *after}):
        was, now = before.get(source), after.get(source)
        if _without_place(was, one) != _without_place(now, other):
            sides = {"before": msgspec.to_builtins(was), "after": msgspec.to_builtins(now)}
            changes.append({"source": source, **sides})
    lines = unified_diff(
        one.user.splitlines(), other.user.splitlines(), left, right, lineterm="", n=1
    )
    return {
        "type": "context_diff",
        "equal": encode(one) == encode(other),
        "items": changes,
        "text": "\n".join(lines),
    }


def _without_place(item: Item | None, bundle: Bundle) -> tuple[Item, str] | None:
    """An item and its text; where in the whole it stands is nothing of its own."""
    if item is None:
        return None
    return replace(item, at=0), bundle.user[item.at : item.at + item.chars]


def next_bundle(
    app: App, task: int, options: ContextOptions | None = None
) -> tuple[Bundle, bytes, bool]:
    """The bundle of the next attempt with its bytes, and whether it is recorded already."""
    claim, digest = app.engine.read(next_claim, task)
    if digest and options in (None, claim.spec.policy.context):
        content = app.engine.read(Tx.get, digest)
        return msgspec.json.decode(content, type=Bundle), content, True
    repository = app.repository(claim)
    base = begin(app, claim, repository, app.git_dir(claim.spec.merges))
    made = gather(app, claim, base.repository, base.tree, options=options, conflict=base.conflict)
    return made, encode(made), False


def _named(app: App, name: str) -> Bundle:
    if name.isascii() and name.isdigit() and len(name) <= NAME_CHARS_MAX:
        return next_bundle(app, int(name))[0]
    return msgspec.json.decode(app.engine.read(attempt_record, name).bundle, type=Bundle)
