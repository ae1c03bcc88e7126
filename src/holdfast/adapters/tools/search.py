"""Search in files by a regular expression, bounded in time, memory and result.

Files are read here, through the same walk as every other path, and redacted whole before they are
matched: otherwise a secret could be guessed by asking, or shown line by line. Matching happens in a
child process (`matcher`) that is killed at the limit.
"""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.adapters.capture import cut_end
from holdfast.adapters.tools import matcher
from holdfast.adapters.tools.arguments import takes
from holdfast.adapters.tools.files import SKIPPED, matches
from holdfast.adapters.tools.observing import Answer, Limits, decoded, failed, observed
from holdfast.adapters.tools.paths import Entry, Refusal, place, read_bytes, shown, walk
from holdfast.domain.ports import Observation, ToolSpec, Workspace

SEARCH_S = 10.0
_RESULTS_DEFAULT = 100
_RESULTS_MAX = 1_000
_FILES_MAX = 20_000
_TEXT_BYTES_MAX = 32 << 20
_MEMORY_BYTES = 512 << 20


class SearchFiles:
    """Lines that match, as `path:line: text`, in the order of paths."""

    spec = ToolSpec(
        name="search_files",
        description=(
            "Search text files for a Python regular expression, line by line. Answers lines as "
            "path:line: text. Caches and dependencies such as node_modules are left out unless "
            "path names them."
        ),
        parameters=takes(
            ["pattern"],
            pattern={"type": "string", "minLength": 1, "maxLength": 1000},
            path={"type": "string", "description": "file or directory; default: all"},
            file_pattern={"type": "string", "description": "glob, such as *.py"},
            max_results={"type": "integer", "minimum": 1, "maximum": _RESULTS_MAX},
        ),
        effect="pure",
    )

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    async def call(self, arguments: Mapping[str, Any], workspace: Workspace) -> Observation:
        name, redact = self.spec.name, self._limits.redact
        questions: list[str] = []
        gathered = await observed(
            name, redact, lambda: self._gather(arguments, workspace.root, questions)
        )
        if not gathered.success:
            return gathered
        results_max = int(arguments.get("max_results", _RESULTS_DEFAULT))
        order = {"pattern": arguments["pattern"], "results_max": results_max + 1}
        order |= {"memory_bytes": _MEMORY_BYTES}
        try:
            rows = await _ask([json.dumps(order), *questions])
        except TimeoutError:
            said = f"the search took longer than {SEARCH_S:g} s; simplify the pattern"
            return failed(name, redact, "TIMEOUT", said)
        if rows and "error" in rows[0]:
            return failed(name, redact, "INVALID_REGEX", rows[0]["error"])
        return self._told(rows, results_max, gathered.data)

    def _told(
        self, rows: list[dict[str, Any]], results_max: int, facts: Mapping[str, Any]
    ) -> Observation:
        lines = [f"{row['path']}:{row['line']}: {row['text']}" for row in rows[:results_max]]
        text = self._limits.redact("\n".join(lines))
        output = cut_end(text, self._limits.output_bytes_max)
        if len(rows) > results_max or output != text:
            output += "\n[there are more matches; narrow the pattern or the path]"
        if facts["stopped"]:
            output += f"\n[only the first {facts['files']} files were searched]"
        data = {**facts, "matches": len(lines)}
        return Observation(
            tool=self.spec.name, success=True, output=output.strip() or "[no match]", data=data
        )

    def _gather(self, arguments: Mapping[str, Any], root: Path, questions: list[str]) -> Answer:
        """Collect the redacted texts to search, at most `_TEXT_BYTES_MAX` of them."""
        glob = arguments.get("file_pattern", "")
        size, stopped = 0, False
        with place(root, arguments.get("path") or ".") as at:
            if at.kind() == stat.S_IFREG:
                entry = Entry(relative=at.relative, place=at, kind=stat.S_IFREG, size=0)
                entries = iter([entry])
            else:
                entries = walk(at, recursive=True, skipped=SKIPPED)
            for entry in entries:
                if entry.kind != stat.S_IFREG or (glob and not matches(entry.relative, glob)):
                    continue
                if (text := self._text(entry)) is None:
                    continue
                size += len(text)
                if size > _TEXT_BYTES_MAX or len(questions) >= _FILES_MAX:
                    stopped = True
                    break
                questions.append(json.dumps({"path": shown(entry.relative), "text": text}))
        return Answer(output="", data={"files": len(questions), "stopped": stopped})

    def _text(self, entry: Entry) -> str | None:
        """The redacted text; None for what is binary, too large or gone."""
        try:
            data = read_bytes(entry.place, bytes_max=self._limits.file_bytes_max)
            return self._limits.redact(decoded(data, entry.relative))
        except (Refusal, OSError):
            return None


async def _ask(questions: list[str]) -> list[dict[str, Any]]:
    """The matcher's answers. Raises TimeoutError; the child is dead in every case."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", matcher.__file__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        cwd="/",
    )
    try:
        async with asyncio.timeout(SEARCH_S):
            output, _ = await process.communicate("\n".join(questions).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        return [{"error": "the pattern needs too much memory"}]
    return [json.loads(line) for line in output.splitlines()]
