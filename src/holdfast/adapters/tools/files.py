"""The tools that touch one file or look at one directory: read, write, edit, list.

Owns what they answer. Does not own how a path is opened (`paths`) nor how text is edited (`edits`).

Effect classes: reading and listing are pure. Writing and editing are idempotent: the same call on
the same tree leaves the same tree, an edit already applied is recognised, and nothing outside the
workspace changes; undoing them is restoring `tree_before`, which the engine holds.
"""

from __future__ import annotations

import fnmatch
import hashlib
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from holdfast.adapters.capture import cut_end
from holdfast.adapters.tools.arguments import takes
from holdfast.adapters.tools.edits import Block, Edited, apply, blocks_of, blocks_of_diff
from holdfast.adapters.tools.observing import (
    Answer,
    FileTool,
    decoded,
    has_mark,
    refuse_new_marks,
)
from holdfast.adapters.tools.paths import (
    Entry,
    Refusal,
    place,
    read_bytes,
    shown,
    walk,
    write_bytes,
)
from holdfast.domain.ports import ToolSpec

_CACHES = ("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache")
SKIPPED = frozenset({"node_modules", ".venv", "venv", ".tox", *_CACHES})
_HASH_SHOWN = 12
_HASH_MIN = 8
_ENTRIES_MAX = 1_000
_PATH = {"type": "string", "minLength": 1, "description": "path in the workspace"}


class ReadFile(FileTool):
    """Lines of a text file, numbered, with the content hash an edit can name."""

    spec = ToolSpec(
        name="read_file",
        description=(
            "Read a text file. Each line is shown as its number, a tab and the text; number and "
            "tab are not part of the file. The last line tells the file's hash for edit_file."
        ),
        parameters=takes(
            ["path"],
            path=_PATH,
            start_line={"type": "integer", "minimum": 1, "description": "first, from 1"},
            end_line={"type": "integer", "minimum": 1, "description": "last, inclusive"},
        ),
        effect="pure",
    )

    def work(self, arguments: Mapping[str, Any], root: Path) -> Answer:
        with place(root, arguments["path"]) as at:
            data = read_bytes(at, bytes_max=self._limits.file_bytes_max)
            name = shown(at.relative)
        # Redacted whole, before lines are chosen: a part of a secret has no recognisable form.
        lines = [line.rstrip("\r") for line in self._limits.redact(decoded(data, name)).split("\n")]
        if lines[-1] == "":
            lines.pop()
        first = int(arguments.get("start_line", 1))
        last = min(int(arguments.get("end_line", len(lines))), len(lines))
        if lines and first > len(lines):
            raise Refusal("INVALID_ARGUMENTS", f"{name} has {len(lines)} lines")
        kept: list[str] = []
        room = self._limits.output_bytes_max
        for number in range(first, last + 1):
            line = f"{number:6}\t{lines[number - 1]}"
            size = len(line.encode()) + 1
            if size > room and kept:
                break
            kept.append(cut_end(line, room))
            room -= size
        end = first + len(kept) - 1
        digest = hashlib.sha256(data).hexdigest()
        more = f"; go on with start_line={end + 1}" if end < last else ""
        seen = f"lines {first}-{end} of {len(lines)}" if lines else "the file is empty"
        told = f"[{seen}; hash {digest[:_HASH_SHOWN]}{more}]"
        facts = {"path": name, "sha256": digest, "lines": len(lines), "first": first, "last": end}
        return Answer(output="\n".join([*kept, told]), data=facts)


class WriteFile(FileTool):
    """A whole file, made or replaced at once."""

    spec = ToolSpec(
        name="write_file",
        description="Make a file or replace all of it. Parent directories are made.",
        parameters=takes(
            ["path", "content"],
            path=_PATH,
            content={"type": "string", "description": "the whole new content"},
            create_dirs={"type": "boolean", "description": "make parents; default true"},
        ),
        effect="idempotent",
        writes=True,
    )

    def work(self, arguments: Mapping[str, Any], root: Path) -> Answer:
        data = arguments["content"].encode()
        if len(data) > self._limits.file_bytes_max:
            raise Refusal("FILE_TOO_LARGE", f"files over {self._limits.file_bytes_max} bytes")
        if has_mark(arguments["content"]):
            refuse_new_marks(self._old_text(root, arguments["path"]), arguments["content"])
        make = arguments.get("create_dirs", True)
        with place(root, arguments["path"], make_parents=make) as at:
            name, made = shown(at.relative), at.kind() is None
            write_bytes(at, data)
        digest = hashlib.sha256(data).hexdigest()
        did = "made" if made else "replaced"
        told = f"{did} {name} ({len(data)} bytes; hash {digest[:_HASH_SHOWN]})"
        facts = {"path": name, "sha256": digest, "bytes": len(data), "created": made}
        return Answer(output=self._limits.redact(told), data=facts)

    def _old_text(self, root: Path, path: str) -> str:
        with place(root, path) as at:
            if at.kind() is None:
                return ""
            return read_bytes(at, bytes_max=self._limits.file_bytes_max).decode(errors="replace")


class EditFile(FileTool):
    """Parts of a file, by search and replace or by a unified diff; the whole edit or nothing."""

    spec = ToolSpec(
        name="edit_file",
        description=(
            "Change parts of a file: give either edits (each search text must stand exactly once; "
            "copy it without line numbers) or a unified diff. All edits are applied or none."
        ),
        parameters=takes(
            ["path"],
            path=_PATH,
            edits={
                "type": "array",
                "minItems": 1,
                "items": takes(
                    ["search", "replace"],
                    search={"type": "string"},
                    replace={"type": "string"},
                ),
            },
            diff={"type": "string", "description": "unified diff of this one file"},
            base_hash={
                "type": "string",
                "minLength": _HASH_MIN,
                "description": "hash read_file told; a file changed since is refused",
            },
        ),
        effect="idempotent",
        writes=True,
    )

    def work(self, arguments: Mapping[str, Any], root: Path) -> Answer:
        if ("edits" in arguments) == ("diff" in arguments):
            raise Refusal("INVALID_ARGUMENTS", "give either edits or diff")
        given = arguments.get("edits")
        blocks = blocks_of_diff(arguments["diff"]) if given is None else blocks_of(given)
        with place(root, arguments["path"]) as at:
            before = read_bytes(at, bytes_max=self._limits.file_bytes_max)
            name = shown(at.relative)
            text = decoded(before, name)
            edited = self._apply(text, before, blocks, arguments.get("base_hash", ""))
            refuse_new_marks(text, edited.text)
            after = edited.text.encode()
            if len(after) > self._limits.file_bytes_max:
                raise Refusal("FILE_TOO_LARGE", f"files over {self._limits.file_bytes_max} bytes")
            if not edited.already:
                write_bytes(at, after)
        digest = hashlib.sha256(after).hexdigest()
        already = "holds this edit already; nothing changed"
        did = already if edited.already else f"edited in {len(blocks)} place(s)"
        told = f"{name} {did} (hash {digest[:_HASH_SHOWN]})"
        facts = {"path": name, "sha256": digest, "already": edited.already}
        return Answer(output=self._limits.redact(told), data=facts)

    def _apply(self, text: str, before: bytes, blocks: Sequence[Block], base_hash: str) -> Edited:
        """Apply under the rule of the base hash: a stale one is accepted only for what is done."""
        visible = self._limits.redact(text)
        if not base_hash:
            return apply(text, blocks, visible=visible)
        if hashlib.sha256(before).hexdigest().startswith(base_hash.lower()):
            return apply(text, blocks, visible=visible, trusted=True)
        with suppress(Refusal):
            edited = apply(text, blocks, visible=visible)
            if edited.already:
                return edited
        raise Refusal("STALE_FILE", "the file changed since you read it; read it again")


class ListDirectory(FileTool):
    """Names in a directory, sorted."""

    spec = ToolSpec(
        name="list_directory",
        description=(
            "List a directory, sorted: directories end with /, links show their target. Caches "
            "and dependencies such as node_modules are named but not entered."
        ),
        parameters=takes(
            path={"type": "string", "description": "default: the workspace"},
            recursive={"type": "boolean"},
            pattern={"type": "string", "description": "glob on the name, such as *.py"},
        ),
        effect="pure",
    )

    def work(self, arguments: Mapping[str, Any], root: Path) -> Answer:
        pattern = arguments.get("pattern", "")
        rows: list[str] = []
        with place(root, arguments.get("path") or ".") as at:
            prefix = "" if at.relative == "." else at.relative + "/"
            recursive = arguments.get("recursive", False)
            for entry in walk(at, recursive=recursive, skipped=SKIPPED):
                if not pattern or matches(entry.relative, pattern):
                    rows.append(_row(entry, prefix))
                    if len(rows) > _ENTRIES_MAX:
                        break
        text = self._limits.redact("\n".join(rows[:_ENTRIES_MAX]))
        output = cut_end(text, self._limits.output_bytes_max)
        if output != text:
            output = output.rpartition("\n")[0]
        if output != text or len(rows) > _ENTRIES_MAX:
            output += "\n[there is more; name a subdirectory or a pattern]"
        return Answer(output=output or "[nothing]", data={"entries": min(len(rows), _ENTRIES_MAX)})


def matches(relative: str, pattern: str) -> bool:
    """Glob match on the last component, or on the whole path when the pattern has a slash."""
    name = relative if "/" in pattern else relative.rpartition("/")[2]
    return fnmatch.fnmatchcase(name, pattern)


def _row(entry: Entry, prefix: str) -> str:
    name = shown(entry.relative.removeprefix(prefix))
    match entry.kind:
        case stat.S_IFDIR:
            return f"{name}/"
        case stat.S_IFLNK:
            return f"{name} -> {shown(entry.target)}"
        case stat.S_IFREG:
            return f"{name} ({entry.size} bytes)"
        case _:
            return f"{name} (no regular file)"
