"""Use cases of what retrieval knows of a repository: source files, a tree's map, a history.

All of it derives from git: rows that are missing are made again. Texts arrive
redacted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from holdfast.context import retrieve
from holdfast.context.codemap import (
    CodeMap,
    D,
    Defining,
    Facts,
    Scanned,
    beside,
    decode_defining,
    decode_facts,
    decode_map,
    encode_map,
)
from holdfast.context.history import Change, decode_changes, encode_changes
from holdfast.store import Tx

T = TypeVar("T")
MAPS_KEPT = 40  # of trees, and of commits with their history


def known_map(tx: Tx, tree: str) -> CodeMap | None:
    row = tx.one("map.get", tree=tree)
    return None if row is None else _readable(decode_map, row["map"])


def known_facts(tx: Tx, blobs: Sequence[str], part: type[D] = Facts) -> dict[str, D]:
    """The facts, or a part of them, of the blobs that were scanned before; others are left out."""
    return _of_files(tx, blobs, partial(decode_facts, part=part))


def known_defining(tx: Tx, blobs: Sequence[str]) -> dict[str, Defining]:
    """The defining lines of the blobs that were shown before; unknown ones are left out."""
    return _of_files(tx, blobs, decode_defining)


def store_facts(tx: Tx, scanned: Mapping[str, Scanned]) -> None:
    """Remember files by blob id: facts for the map, weighed terms for the search. Idempotent."""
    files = [(blob, each.terms, each.length, each.facts) for blob, each in scanned.items()]
    retrieve.add_files(tx, files)


def store_defining(tx: Tx, found: Mapping[str, Defining]) -> None:
    """Remember defining lines by blob id, beside the facts that are there. Idempotent."""
    for blob, lines in found.items():
        for facts in _of_files(tx, [blob], partial(beside, lines=lines)).values():
            tx.run("file.beside", blob=blob, facts=facts)


def store_map(tx: Tx, tree: str, code: CodeMap) -> None:
    """Remember a tree's map; only the newest few trees keep theirs. Idempotent."""
    tx.run("map.put", tree=tree, map=encode_map(code))
    tx.run("map.forget", kept=MAPS_KEPT)


def known_changes(tx: Tx, commit: str) -> tuple[Change, ...] | None:
    """What a commit and those before it changed; they are kept beside the maps, by git's id."""
    row = tx.one("map.get", tree=commit)
    return None if row is None else _readable(decode_changes, row["map"])


def store_changes(tx: Tx, commit: str, known: Sequence[Change]) -> None:
    """Remember what led to a commit; only the newest few are kept. Idempotent."""
    tx.run("map.put", tree=commit, map=encode_changes(known))
    tx.run("map.forget", kept=MAPS_KEPT)


def _of_files(tx: Tx, blobs: Sequence[str], decode: Callable[[bytes], T | None]) -> dict[str, T]:
    rows = ((blob, tx.one("file.facts", blob=blob)) for blob in blobs)
    found = ((blob, _readable(decode, row["facts"])) for blob, row in rows if row is not None)
    return {blob: each for blob, each in found if each is not None}


def _readable(decode: Callable[[bytes], T | None], content: bytes) -> T | None:
    """What is remembered; None where another version of this program wrote it: it is made anew."""
    try:
        return decode(content)
    except msgspec.MsgspecError:
        return None
