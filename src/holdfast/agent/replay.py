"""Replay: run an attempt again from its record alone, and name the first byte that differs.

The same executor runs with a journal that only remembers and with parts that refuse to be used: no
model, tool, clock, random or network access happens. Every request is rebuilt from the bundle and
the recorded replies and compared byte for byte with the recorded one; at the end the outcome is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from holdfast.agent.conversation import encode, first_difference
from holdfast.agent.executors import perform
from holdfast.agent.journal import EndOfJournal, ReplayJournal, Undecided
from holdfast.agent.loop import Job
from holdfast.context.bundle import Bundle
from holdfast.domain.model import Outcome
from holdfast.domain.ports import (
    Diff,
    ModelReply,
    ModelRequest,
    Progress,
    Sandbox,
    ToolSpec,
)
from holdfast.engine.attempts import AttemptRecord
from holdfast.errors import Divergence
from holdfast.frozen import frozen


@frozen
class Difference:
    """The first divergence: the step, its field, the first differing byte, and where it showed."""

    step: str
    field: str
    byte: int
    detail: str


@frozen
class Replayed:
    """What replay found. `equal` means every compared step and the outcome are byte-identical."""

    attempt: str
    compared: int
    equal: bool
    outcome: str
    difference: Difference | None = None


Check = Callable[[ToolSpec, Mapping[str, Any]], list[str]]


async def replay(record: AttemptRecord, *, problems: Check) -> Replayed:
    """Replay one recorded attempt. Performs no effect of any kind; repeatable."""
    journal = ReplayJournal(record.steps, base_tree=record.base_tree)
    try:
        bundle = msgspec.json.decode(record.bundle, type=Bundle)
    except msgspec.MsgspecError as error:
        told = re.search(r"\(byte (\d+)\)", str(error))
        byte = int(told[1]) if told else -1
        return _differs(record, journal, "bundle", "bundle", byte, f"cannot be read: {error}")
    nobody = _Nobody()
    job = Job(
        bundle=bundle,
        journal=journal,
        workspace=nobody,
        model=lambda name: nobody,
        tools={},
        problems=problems,
        cost=lambda name, usage: 0,
        sink=nobody,
        fence=record.fence,
        clock=None,
    )
    try:
        outcome = await perform(job)
    except Divergence as error:
        return _named(record, journal, error)
    except (EndOfJournal, Undecided) as end:
        return _ended(record, journal, end)
    except msgspec.MsgspecError as error:
        step = journal.changed or "unknown"
        return _differs(record, journal, step, "result", -1, f"cannot be read: {error}")
    return _compare(record, journal, outcome, bundle)


def _named(record: AttemptRecord, journal: ReplayJournal, error: Divergence) -> Replayed:
    """A changed result shows in the request after it: name the step whose bytes were changed."""
    if journal.changed and journal.changed != error.step:
        detail = f"its result was changed; seen in {error.step} {error.field}"
        return _differs(record, journal, journal.changed, "result", error.byte, detail)
    return _differs(record, journal, error.step, error.field, error.byte, error.message)


def _ended(
    record: AttemptRecord, journal: ReplayJournal, end: EndOfJournal | Undecided
) -> Replayed:
    """The record stops here: as it must for an attempt that was cut short, else it is missing."""
    key = end.key if isinstance(end, EndOfJournal) else end.row.key
    outcome = record.outcome
    complete = outcome is not None and (
        outcome.kind in ("passed", "unverified", "partial") or bool(outcome.checks)
    )
    if complete:
        return _differs(record, journal, key, "step", 0, "this step was never recorded")
    return _whole(record, journal, outcome.kind if outcome else "open")


def _compare(
    record: AttemptRecord, journal: ReplayJournal, outcome: Outcome, bundle: Bundle
) -> Replayed:
    again = encode(bundle)
    if not _as_written(record) and again != record.bundle:  # a name that nothing reads any more
        field, byte = first_difference(record.bundle, again)
        return _differs(record, journal, "bundle", field or "bundle", byte, "it was changed")
    recorded = record.outcome
    if recorded is None or recorded.kind in ("expired", "cancelled"):
        return _whole(record, journal, recorded.kind if recorded else "open")
    before, now = _essence(recorded), _essence(outcome)
    if before != now and recorded.reason != "merge_conflict":
        field, byte = first_difference(before, now)
        step = journal.changed or "outcome"
        return _differs(record, journal, step, field, byte, f"the outcome differs at {field}")
    return _whole(record, journal, recorded.kind)


def _as_written(record: AttemptRecord) -> bool:
    """Whether the bundle is the recorded one; it may be of a version that knew fewer fields."""
    return sha256(record.bundle).hexdigest() == record.bundle_sha256


def _whole(record: AttemptRecord, journal: ReplayJournal, outcome: str) -> Replayed:
    """Everything compared equal; what was never compared must still be what was written."""
    if not _as_written(record):
        return _differs(record, journal, "bundle", "bundle", -1, "its hash is not the recorded one")
    if journal.changed:
        return _differs(record, journal, journal.changed, "result", -1, "its hash differs")
    return Replayed(
        attempt=record.fence.session, compared=journal.compared, equal=True, outcome=outcome
    )


def _differs(
    record: AttemptRecord,
    journal: ReplayJournal,
    step: str,
    field: str,
    byte: int,
    detail: str,
) -> Replayed:
    return Replayed(
        attempt=record.fence.session,
        compared=journal.compared,
        equal=False,
        outcome=record.outcome.kind if record.outcome else "open",
        difference=Difference(step=step, field=field, byte=byte, detail=detail),
    )


def _essence(outcome: Outcome) -> bytes:
    """An outcome without what settling added to it."""
    asked = tuple(task for task in outcome.tasks if not task.merges)
    return encode(replace(outcome, commit="", parent="", tasks=asked))


class _Nobody:
    """Stands for model, workspace and sink in replay: nothing may reach any of them."""

    name = "replay:nobody"
    context_tokens = None

    @property
    def root(self) -> Path:
        self._refuse("the workspace")

    @property
    def sandbox(self) -> Sandbox:
        self._refuse("the sandbox")

    def stage(self) -> str:
        self._refuse("the workspace")

    def restore(self, tree: str) -> None:
        self._refuse("the workspace")

    def diff(self, before: str, after: str) -> Diff:
        self._refuse("the workspace")

    def changed(self, before: str, after: str) -> list[tuple[str, str]]:
        self._refuse("the workspace")

    async def probe(self) -> None:
        self._refuse("the model")

    async def complete(self, request: ModelRequest) -> ModelReply:
        self._refuse("the model")

    async def aclose(self) -> None:
        """Nothing is open."""

    def show(self, progress: Progress) -> None:
        """Replay is silent."""

    def _refuse(self, what: str) -> NoReturn:
        raise AssertionError(f"replay reached for {what}")
