"""The engine's store as the journal of a program: tool calls and tasks are steps of its take.

Has the four methods that `holdfast.lang` asks of a journal. Each `put` is one durable step under
the attempt's fence before it returns, so a program that is killed anywhere and run again by a later
attempt of the same take finds what it had recorded. A reset is a step of its own, and opens the
next generation of the key; the old row stays. Safe for many threads: branches share commits.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.agent.conversation import encode
from holdfast.domain.model import Fence, StepRow
from holdfast.engine import Engine, step
from holdfast.engine.journal import Born, StepName


class ProgramJournal:
    """See the module. `rows` are the take's recorded steps, as a claim brings them."""

    def __init__(self, engine: Engine, fence: Fence, rows: Sequence[StepRow]) -> None:
        self._engine, self._fence = engine, fence
        self._lock = threading.Lock()
        self._position = max((row.position for row in rows), default=0)
        self._rows: dict[tuple[str, int], Mapping[str, Any]] = {}
        self._resets: dict[str, int] = {}
        for row in rows:
            if row.kind == "program" and row.result is not None:
                self._rows[row.key, row.generation] = msgspec.json.decode(row.result)
            elif row.kind == "reset":
                name = row.key.removeprefix("reset/")
                self._resets[name] = max(self._resets.get(name, 0), row.generation)

    def get(self, kind: str, key: str) -> dict[str, Any] | None:
        """The row of the key's current generation; None when nothing is recorded."""
        name = _name(kind, key)
        with self._lock:
            found = self._rows.get((name, self._resets.get(name, 0) + 1))
        return None if found is None else dict(found)

    def put(self, kind: str, key: str, row: Mapping[str, Any]) -> None:
        """Record a row; returns once it is durable. Raises `Stale` when the lease is lost."""
        name = _name(kind, key)
        with self._lock:
            generation = self._resets.get(name, 0) + 1
        self._write("program", name, generation, row)
        with self._lock:
            self._rows[name, generation] = dict(row)

    def reset(self, kind: str, key: str) -> None:
        """Open a new generation of a recorded key; nothing to do when nothing is recorded."""
        if self.get(kind, key) is None:
            return
        name = _name(kind, key)
        with self._lock:
            count = self._resets.get(name, 0) + 1
        self._write("reset", f"reset/{name}", count, {})
        with self._lock:
            self._resets[name] = count

    def generation(self, kind: str, key: str) -> int:
        with self._lock:
            return self._resets.get(_name(kind, key), 0)

    def rows(self, kind: str) -> dict[str, dict[str, Any]]:
        """What `get` answers, by key."""
        head = _name(kind, "")
        with self._lock:
            return {
                name.removeprefix(head): dict(row)
                for (name, generation), row in self._rows.items()
                if name.startswith(head) and generation == self._resets.get(name, 0) + 1
            }

    def _write(self, kind: str, key: str, generation: int, row: Mapping[str, Any]) -> None:
        with self._lock:
            self._position += 1
            position = self._position
        result = encode(row)
        born = Born(
            step=StepName(key=key, generation=generation),
            position=position,
            kind=kind,
            request=encode({"program": key}),
            result=result,
            result_sha256=sha256(result).hexdigest(),
        )
        self._engine.call(step, self._fence, [born])


def _name(kind: str, key: str) -> str:
    return f"program/{kind}/{key}"
