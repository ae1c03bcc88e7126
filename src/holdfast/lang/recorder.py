"""The parent's side of a program: tools are executed and remembered, tasks are remembered.

Owns `Recorder` (a `Host`) and the journals: any mapping, `FileJournal`, or an object with `get`,
`put` and `reset`. The rule is the engine's: a completed call never runs again, and *completed*
means recorded. Tool calls are keyed by their position in the program (`scope` tells programs that
share a journal apart), tasks by their own id.

- A recorded tool call with other arguments is a divergence: refused, both shown.
- A recorded task with another expression is a hit with a warning, both shown. A hit of nil counts.
- `task-reset` opens a new generation; the old row stays where the journal keeps rows.
- Two branches of a program that reach one task id at once: the machine lets the second wait for
  the first. Programs that run at the same time over one journal are their owner's to serialise.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Protocol

from holdfast.lang import wire
from holdfast.lang.api import Hit, LangError, Miss, ToolRecord, Value
from holdfast.lang.portable import from_host

Row = dict[str, Any]
ToolFunction = Callable[[dict[str, Any]], Any]
_TEXT_SHOWN = 200
_UNSCOPED = re.compile(r"\d+:\d+/|task:")  # a path begins with a place or a task


class Journal(Protocol):
    """What a recorder needs of a journal. `kind` is "tool" or "task"; rows are JSON-safe."""

    def get(self, kind: str, key: str) -> Row | None:
        """The row of the key's current generation, None when nothing is recorded."""
        ...

    def put(self, kind: str, key: str, row: Row) -> None:
        """Record a row; returns when it is safe."""
        ...

    def reset(self, kind: str, key: str) -> None:
        """Open a new generation of the key."""
        ...

    def generation(self, kind: str, key: str) -> int:
        """How often the key was reset."""
        ...

    def rows(self, kind: str) -> Mapping[str, Row]:
        """What `get` answers, by key. A journal may leave this out: then each row is asked for."""
        ...


class MappingJournal:
    """A journal in any mutable mapping.

    A task is its id and its value, as values, so that people can read and write entries. What else
    must be known is kept beside under keys that start with "@"; an id that does so has one more.
    """

    def __init__(self, entries: MutableMapping[str, Any]) -> None:
        self.entries = entries

    def get(self, kind: str, key: str) -> Row | None:
        if kind == "tool":
            found = self.entries.get(f"@tool {key}")
            return found if isinstance(found, dict) else None
        entry = _entry(key)
        if entry not in self.entries:
            return None
        source = self._note(key).get("source", "")
        return {"value": wire.encode(from_host(self.entries[entry])), "source": source}

    def put(self, kind: str, key: str, row: Row) -> None:
        if kind == "tool":
            self.entries[f"@tool {key}"] = row
            return
        self.entries[f"@task {key}"] = {**self._note(key), "source": row["source"]}
        self.entries[_entry(key)] = wire.decode(row["value"])

    def reset(self, kind: str, key: str) -> None:
        if (entry := _entry(key)) in self.entries:
            count = self._note(key).get("generation", 0)
            self.entries[f"@old {key}#{count}"] = self.entries.pop(entry)
            self.entries[f"@task {key}"] = {"generation": count + 1}

    def generation(self, kind: str, key: str) -> int:
        return int(self._note(key).get("generation", 0))

    def rows(self, kind: str) -> Mapping[str, Row]:
        head = f"@{kind} "
        keys = [key.removeprefix(head) for key in list(self.entries) if key.startswith(head)]
        return {key: row for key in keys if (row := self.get(kind, key)) is not None}

    def _note(self, key: str) -> dict[str, Any]:
        note = self.entries.get(f"@task {key}")
        return dict(note) if isinstance(note, Mapping) else {}


def _entry(id: str) -> str:
    return f"@{id}" if id.startswith("@") else id


class FileJournal:
    """A journal in one append-only file of JSON lines, each fsynced before `put` returns.

    Readable after a kill at any point: a torn last line is ignored, and cut off before the next
    append. One process at a time.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, str], Row | None] = {}
        self._generations: dict[tuple[str, str], int] = {}
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._load()

    def _load(self) -> None:
        size = os.fstat(self._file).st_size
        data = os.pread(self._file, size, 0)
        end = 0
        for line in data.splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            try:
                entry = json.loads(line)
                kind, key, row = entry["kind"], entry["key"], entry["row"]
            except (ValueError, KeyError, TypeError):
                break
            self._apply(kind, key, row)
            end += len(line)
        os.ftruncate(self._file, end)
        os.lseek(self._file, end, os.SEEK_SET)

    def _apply(self, kind: str, key: str, row: Row | None) -> None:
        self._rows[kind, key] = row
        if row is None:
            self._generations[kind, key] = self._generations.get((kind, key), 0) + 1

    def _append(self, kind: str, key: str, row: Row | None) -> None:
        line = json.dumps({"kind": kind, "key": key, "row": row}) + "\n"
        with self._lock:
            data = line.encode()
            while data:
                data = data[os.write(self._file, data) :]
            os.fdatasync(self._file)
            self._apply(kind, key, row)

    def get(self, kind: str, key: str) -> Row | None:
        with self._lock:
            return self._rows.get((kind, key))

    def put(self, kind: str, key: str, row: Row) -> None:
        self._append(kind, key, row)

    def reset(self, kind: str, key: str) -> None:
        if self.get(kind, key) is not None:
            self._append(kind, key, None)

    def generation(self, kind: str, key: str) -> int:
        with self._lock:
            return self._generations.get((kind, key), 0)

    def rows(self, kind: str) -> Mapping[str, Row]:
        with self._lock:
            return {key: row for (each, key), row in self._rows.items() if each == kind and row}

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def journal_of(store: Any) -> Journal:
    """A journal over a mapping, or the journal itself."""
    if isinstance(store, MutableMapping):
        return MappingJournal(store)
    found: Journal = store
    return found


class Recorder:
    """A `Host` that executes tools here and records what completed. Safe for many threads.

    `tools` map names to functions of one dict of arguments; their results are plain data. `budget`
    is asked at the moment a program asks. What happened in this process is in `calls`, `prints`
    and `steps`.
    """

    def __init__(
        self,
        journal: Any,
        tools: Mapping[str, ToolFunction],
        *,
        scope: str = "",
        budget: Callable[[], Any] = dict,
    ) -> None:
        self.journal = journal_of({} if journal is None else journal)
        self.tools = dict(tools)
        self.scope = scope
        self.ask_budget = budget
        self.calls: list[ToolRecord] = []
        self.prints: list[str] = []
        self.steps: dict[str, str] = {}
        self._lock = threading.Lock()

    # --- tools ----------------------------------------------------------------------------------

    def recorded(self) -> Mapping[str, Row]:
        listing = getattr(self.journal, "rows", None)
        if listing is None:
            return {}
        with self._lock:
            rows = listing("tool")
        if not self.scope:
            return {key: row for key, row in rows.items() if _UNSCOPED.match(key)}
        head = f"{self.scope}/"
        return {key.removeprefix(head): row for key, row in rows.items() if key.startswith(head)}

    def call_tool(self, path: str, name: str, args: dict[str, Value]) -> Value:
        key = f"{self.scope}/{path}" if self.scope else path
        given = {"tool": name, "args": wire.encode(args)}
        with self._lock:
            row = self.journal.get("tool", key)
        if row is not None:
            self._check_same(row, given, path)
            return wire.decode(row["value"])
        value = self._execute(path, name, args)
        with self._lock:
            self.journal.put("tool", key, {**given, "value": wire.encode(value)})
        return value

    def _execute(self, path: str, name: str, args: dict[str, Value]) -> Value:
        function = self.tools.get(name)
        if function is None:
            raise LangError("unknown_tool", f"there is no tool {name}")
        started = time.monotonic()
        value: Value = None
        error = ""
        try:
            value = from_host(function(dict(args)))
        except LangError as failure:
            error = failure.message
            raise LangError("tool_error", f"tool {name} failed: {failure.message}") from None
        except Exception as failure:
            error = str(failure)[:_TEXT_SHOWN] or type(failure).__name__
            raise LangError("tool_error", f"tool {name} failed: {error}") from None
        finally:
            ms = (time.monotonic() - started) * 1000
            record = ToolRecord(path=path, name=name, args=args, value=value, error=error, ms=ms)
            with self._lock:
                self.calls.append(record)
        return value

    def _check_same(self, row: Row, given: Row, path: str) -> None:
        recorded = {"tool": row.get("tool"), "args": row.get("args")}
        if wire.canonical(recorded) != wire.canonical(given):
            was, now = _shown(recorded), _shown(given)
            raise LangError(
                "divergence",
                f"the call at {path} was recorded as {was} and is now {now}",
                hint="give the program what it had, or start a new journal",
                details={"path": path, "recorded": recorded, "now": given},
            )

    # --- tasks ----------------------------------------------------------------------------------

    def task_begin(self, path: str, id: str, source: str) -> Hit | Miss:
        with self._lock:
            row = self.journal.get("task", id)
            generation = self.journal.generation("task", id)
        if row is None:
            return Miss(generation)
        recorded = row.get("source", "")
        warning = ""
        if recorded and recorded != source:
            warning = (
                f"task {id!r} was recorded for {recorded[:_TEXT_SHOWN]} and is now asked for "
                f"{source[:_TEXT_SHOWN]}; the recorded value is used"
            )
        return Hit(wire.decode(row["value"]), warning)

    def task_done(self, path: str, id: str, source: str, value: Value) -> None:
        with self._lock:
            self.journal.put("task", id, {"value": wire.encode(value), "source": source})

    def task_reset(self, path: str, id: str) -> None:
        with self._lock:
            self.journal.reset("task", id)

    # --- the rest -------------------------------------------------------------------------------

    def step_done(self, id: str, text: str) -> None:
        with self._lock:
            self.steps[id] = text

    def budget(self) -> Value:
        return from_host(self.ask_budget())

    def printed(self, text: str) -> None:
        with self._lock:
            self.prints.append(text)


def _shown(call: Row) -> str:
    text = json.dumps(call["args"], ensure_ascii=False, sort_keys=True)
    return f"tool/{call['tool']} {text[:_TEXT_SHOWN]}"
