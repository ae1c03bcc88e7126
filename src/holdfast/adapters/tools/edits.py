"""Edits of a text: search/replace blocks and unified diffs, all of them or none.

Pure functions over text. A place is found exactly, else by its lines with white space ignored, else
the edit is refused with the nearest lines. What is found twice is refused. An edit that was applied
before is recognised, so that applying twice is applying once. Line endings of the text are kept.

Invariant: a result is either the whole edited text or a Refusal; there is no half.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from holdfast.adapters.tools.paths import Refusal
from holdfast.frozen import frozen

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NEAREST_LINES_MAX = 20_000
_SHOWN_LINES = 6


@frozen
class Block:
    """Replace `search` by `replace`. `line` (from 1) says where, when a diff says it; else 0."""

    search: str
    replace: str
    line: int = 0


@frozen
class Edited:
    """The edited text. `already` is true when every block was there before."""

    text: str
    already: bool


def blocks_of(edits: Sequence[Mapping[str, str]]) -> list[Block]:
    """Blocks from a call's `edits`. Refused when a search is empty or changes nothing."""
    blocks = [Block(search=edit["search"], replace=edit["replace"]) for edit in edits]
    for block in blocks:
        if not block.search:
            raise Refusal("INVALID_ARGUMENTS", "search is empty; use write_file to make a file")
        if block.search == block.replace:
            raise Refusal("INVALID_ARGUMENTS", "search and replace are the same")
    return blocks


def blocks_of_diff(diff: str) -> list[Block]:
    """Blocks from a unified diff of one file. Header lines are not needed and not believed."""
    blocks: list[Block] = []
    lines = _lines(diff)
    index = 0
    while index < len(lines):
        if head := _HUNK.match(lines[index]):
            block, index = _hunk(lines, index + 1, head)
            blocks.append(block)
            continue
        if lines[index].startswith(("+++ ", "--- ")) and blocks:
            raise Refusal("INVALID_ARGUMENTS", "the diff changes more than one file")
        index += 1
    if not blocks:
        raise Refusal("INVALID_ARGUMENTS", "the diff has no hunk (a line that begins with @@)")
    return blocks


def apply(
    text: str, blocks: Sequence[Block], *, visible: str | None = None, trusted: bool = False
) -> Edited:
    """Apply all blocks in order, each to the result of those before it.

    `visible` is the redacted text, from which a refusal quotes: a part of `text` could not be
    redacted any more.
    `trusted` says that the caller names the very content it edits, so nothing can be applied yet.
    Raises Refusal with EDIT_NOT_FOUND or EDIT_AMBIGUOUS.
    """
    windows = "\r\n" in text and "\n" not in text.replace("\r\n", "")
    work = text.replace("\r\n", "\n") if windows else text
    shift, news = 0, 0
    for number, block in enumerate(blocks, 1):
        search, replace = block.search, block.replace
        if windows:
            search, replace = search.replace("\r\n", "\n"), replace.replace("\r\n", "\n")
        hint = block.line + shift if block.line else 0
        try:
            after = _apply_one(work, search, replace, hint, trusted)
        except Refusal as refusal:
            near = _nearest(text if visible is None else visible, search)
            said = refusal.message + (near if refusal.code == "EDIT_NOT_FOUND" else "")
            raise Refusal(refusal.code, f"edit {number}: {said}") from None
        if after is not None:
            news += 1
            shift += after.count("\n") - work.count("\n")
            work = after
    return Edited(text=work.replace("\n", "\r\n") if windows else work, already=news == 0)


def _apply_one(text: str, search: str, replace: str, hint: int, trusted: bool) -> str | None:
    """The text with one block applied; None when it is applied already."""
    if not search:
        return _insert(text, replace, hint, trusted)
    places = _occurrences(text, search)
    if hint:
        places = [at for at in places if at == 0 or text[at - 1] == "\n"]
    if places and not trusted and _is_applied(text, search, replace, places):
        return None
    if len(places) > 1 and hint:
        places = [at for at in places if text.count("\n", 0, at) + 1 == hint] or places
    if len(places) == 1:
        return text[: places[0]] + replace + text[places[0] + len(search) :]
    if places:
        lines = ", ".join(str(text.count("\n", 0, at) + 1) for at in places[:10])
        said = f"the text stands {len(places)} times (lines {lines}); add lines around it"
        raise Refusal("EDIT_AMBIGUOUS", said)
    if replace and not trusted and len(_occurrences(text, replace)) == 1:
        return None
    return _apply_by_lines(text, search, replace)


def _insert(text: str, replace: str, hint: int, trusted: bool) -> str | None:
    """A hunk without context: its line number alone says where."""
    lines = _lines(text)
    at = min(hint, len(lines))
    if not trusted and "".join(lines[at:]).startswith(replace):
        return None
    before = "".join(lines[:at])
    if before and not before.endswith("\n"):
        before += "\n"
    return before + replace + "".join(lines[at:])


def _is_applied(text: str, search: str, replace: str, places: Sequence[int]) -> bool:
    """Whether every place of `search` lies inside a `replace` that is already there."""
    offset = replace.find(search)
    if offset < 0:
        return False
    return all(at >= offset and text.startswith(replace, at - offset) for at in places)


def _apply_by_lines(text: str, search: str, replace: str) -> str:
    """Find whole lines with white space ignored, and keep the indentation that is there."""
    lines = _lines(text)
    wanted = [_squeezed(line) for line in search.strip("\n").split("\n")]
    have = [_squeezed(line) for line in lines]
    size = len(wanted)
    starts = [at for at in range(len(have) - size + 1) if have[at : at + size] == wanted]
    if not any(wanted) or not starts:
        raise Refusal("EDIT_NOT_FOUND", "the text to replace is not in the file.")
    if len(starts) > 1:
        where = ", ".join(str(at + 1) for at in starts[:10])
        said = f"with white space ignored the lines stand {len(starts)} times (lines {where})"
        raise Refusal("EDIT_AMBIGUOUS", said)
    start = starts[0]
    body = _reindented(replace.strip("\n"), search.strip("\n"), lines[start : start + size])
    ending = "\n" if lines[start + size - 1].endswith("\n") and body else ""
    return "".join([*lines[:start], body + ending, *lines[start + size :]])


def _reindented(replace: str, search: str, there: Sequence[str]) -> str:
    """`replace` with each indent that `search` uses turned into the one the file has there."""
    indents: dict[str, str] = {}
    for wrote, has in zip(search.split("\n"), there, strict=True):
        if wrote.strip():
            indents.setdefault(_indent(wrote), _indent(has))
    moved = []
    for line in replace.split("\n"):
        known = [indent for indent in indents if line.startswith(indent)]
        if line.strip() and known:
            longest = max(known, key=len)
            line = indents[longest] + line[len(longest) :]
        moved.append(line)
    return "\n".join(moved)


def _nearest(text: str, search: str) -> str:
    """The lines most like the ones searched for, numbered, or the advice to read again."""
    lines = text.split("\n")
    wanted = [_squeezed(line) for line in search.strip("\n").split("\n")]
    key = next((line for line in wanted if line), "")
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(key[:200])
    best, best_at = 0.5, -1
    for at, line in enumerate(lines[:_NEAREST_LINES_MAX] if key else ()):
        matcher.set_seq1(_squeezed(line)[:200])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best:
            ratio = matcher.ratio()
            if ratio > best:
                best, best_at = ratio, at
    if best_at < 0:
        return " Read it again; it may have changed."
    first = max(0, best_at - wanted.index(key))
    near = lines[first : first + max(_SHOWN_LINES, min(len(wanted), 2 * _SHOWN_LINES))]
    numbered = "\n".join(f"{first + k + 1:6}\t{line.rstrip()}" for k, line in enumerate(near))
    return f" The nearest lines are:\n{numbered}"


def _hunk(lines: Sequence[str], index: int, head: re.Match[str]) -> tuple[Block, int]:
    """One hunk's block and the index after it. Counts in the head are not believed."""
    before: list[str] = []
    after: list[str] = []
    while index < len(lines) and not _HUNK.match(lines[index]):
        mark, rest = lines[index][0], lines[index][1:]
        if lines[index].startswith(("--- ", "+++ ", "diff --git")) and _is_header(lines, index):
            break
        if mark == "\\":
            for side in (before, after):
                if side and lines[index - 1][0] in (" ", "-" if side is before else "+"):
                    side[-1] = side[-1].rstrip("\n")
        elif mark in " -+":
            if mark in " -":
                before.append(rest)
            if mark in " +":
                after.append(rest)
        elif lines[index].strip() == "":
            before.append(lines[index])
            after.append(lines[index])
        else:
            said = f"line {index + 1} of the diff has no ' ', '-' or '+'"
            raise Refusal("INVALID_ARGUMENTS", said)
        index += 1
    line = int(head[1])
    search, replace = "".join(before), "".join(after)
    if search == replace:
        raise Refusal("INVALID_ARGUMENTS", f"the hunk at line {line} changes nothing")
    return Block(search=search, replace=replace, line=line), index


def _is_header(lines: Sequence[str], index: int) -> bool:
    """Whether `--- x` begins the next file's header and is not a removed line `-- x`."""
    following = lines[index + 1] if index + 1 < len(lines) else ""
    return not lines[index].startswith("--- ") or following.startswith("+++ ")


def _occurrences(text: str, part: str) -> list[int]:
    places, at = [], text.find(part)
    while at >= 0:
        places.append(at)
        at = text.find(part, at + 1)
    return places


def _lines(text: str) -> list[str]:
    """Lines with their ends. Only a line feed ends one, as in every editor and diff."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _squeezed(line: str) -> str:
    return " ".join(line.split())


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
