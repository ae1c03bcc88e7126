"""The librarian: reads a base tree out of git into the store's index, once per blob and tree.

Owns which files are worth reading. It writes in small batches, so that running attempts never wait
long for the writer; a process that dies in between has lost nothing but the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from holdfast.adapters.repository import Repository
from holdfast.context.codemap import CodeMap, Facts, build, scan
from holdfast.context.words import fold, tokens
from holdfast.engine import Engine
from holdfast.engine.library import known_facts, known_map, store_facts, store_map

FILES_MAX = 20_000
FILE_BYTES_MAX = 400_000
BATCH = 200


def read_tree(
    engine: Engine, repository: Repository, tree: str, redact: Callable[[str], str]
) -> CodeMap:
    """The map of a tree, made and indexed if it is not known yet. Idempotent.

    Binary files, links, files over `FILE_BYTES_MAX` and those past `FILES_MAX` are left out.
    """
    known = engine.read(known_map, tree)
    if known is not None:
        return known
    entries = [
        (path, blob)
        for path, blob, size in islice(repository.entries(tree), FILES_MAX)
        if size <= FILE_BYTES_MAX
    ]
    paths = redacted_names([path for path, _ in entries], redact)
    entries = [(path, blob) for path, (_, blob) in zip(paths, entries, strict=True)]
    path_of = {blob: path for path, blob in reversed(entries)}
    facts = engine.read(known_facts, list(path_of))
    missing = [blob for blob in path_of if blob not in facts]
    with ThreadPoolExecutor(1) as writing:  # SQLite writes a batch while the next one is scanned
        pending: Future[None] | None = None
        for start in range(0, len(missing), BATCH):
            scanned = _scanned(repository, missing[start : start + BATCH], path_of, redact)
            facts |= {blob: found for blob, (found, _) in scanned.items()}
            if pending is not None:
                pending.result()
            pending = writing.submit(engine.call, store_facts, scanned)
        if pending is not None:
            pending.result()
    code = build((path, blob, facts[blob]) for path, blob in entries)
    engine.call(store_map, tree, code)
    return code


def redacted_names(names: list[str], redact: Callable[[str], str]) -> list[str]:
    """File names as they may be shown; one look at all of them when none holds a secret."""
    together = "\0".join(names)
    return names if redact(together) == together else [redact(name) for name in names]


def _scanned(
    repository: Repository,
    blobs: Sequence[str],
    path_of: dict[str, str],
    redact: Callable[[str], str],
) -> dict[str, tuple[Facts, dict[str, int]]]:
    scanned = {}
    for blob, content in zip(blobs, repository.contents(blobs), strict=True):
        binary = b"\0" in content[:8192]
        text = "" if binary else redact(content.decode(errors="replace"))
        counted = tokens(text)
        scanned[blob] = (scan(path_of[blob], text, counted), fold(counted))
    return scanned
