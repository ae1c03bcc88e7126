"""The librarian: reads a base tree out of git into the store's index, once per blob and tree.

Owns which files are worth reading. It works in small batches, so that running attempts never wait
long for the writer and a tree of any size costs little memory; a process that dies in between has
lost nothing but the work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from holdfast.adapters.repository import Repository
from holdfast.context.codemap import DEFINERS_MAX, CodeMap, Facts, build, scan
from holdfast.context.words import fold, tokens
from holdfast.engine import Engine
from holdfast.engine.library import known_facts, known_map, store_facts, store_map

FILES_MAX = 20_000
FILE_BYTES_MAX = 400_000
BATCH = 200
BATCH_BYTES = 8_000_000


def read_tree(
    engine: Engine, repository: Repository, tree: str, redact: Callable[[str], str]
) -> CodeMap:
    """The map of a tree, made and indexed if it is not known yet. Idempotent.

    Binary files, links, files over `FILE_BYTES_MAX` and those past `FILES_MAX` are left out.
    """
    known = engine.read(known_map, tree)
    if known is not None:
        return known
    found = [
        entry for entry in islice(repository.entries(tree), FILES_MAX) if entry[2] <= FILE_BYTES_MAX
    ]
    paths = redacted_names([path for path, _, _ in found], redact)
    entries = [(path, blob) for path, (_, blob, _) in zip(paths, found, strict=True)]
    path_of = {blob: path for path, blob in reversed(entries)}
    batches = list(_batches({blob: size for _, blob, size in found}))
    definers: Counter[str] = Counter()
    for batch in batches:
        facts = engine.read(known_facts, batch)
        missing = [blob for blob in batch if blob not in facts]
        facts |= _index(engine, repository, missing, path_of, redact) if missing else {}
        for each in facts.values():
            definers.update(each.defines)
    # Names that nobody or everybody defines lead nowhere: most of what files mention is not kept.
    telling = {name: name for name, times in definers.items() if times <= DEFINERS_MAX}
    slim: dict[str, Facts] = {}
    for batch in batches:
        for blob, each in engine.read(known_facts, batch).items():
            told = {
                telling[name]: times for name, times in each.mentions.items() if name in telling
            }
            slim[blob] = Facts(defines=each.defines, mentions=told)
    code = build((path, blob, slim[blob]) for path, blob in entries)
    engine.call(store_map, tree, code)
    return code


def _batches(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Blobs in their order, at most `BATCH` and about `BATCH_BYTES` at a time."""
    batch: list[str] = []
    total = 0
    for blob, size in sizes.items():
        if batch and (len(batch) == BATCH or total + size > BATCH_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(blob)
        total += size
    if batch:
        yield batch


def redacted_names(names: list[str], redact: Callable[[str], str]) -> list[str]:
    """File names as they may be shown; one look at all of them when none holds a secret."""
    together = "\0".join(names)
    return names if redact(together) == together else [redact(name) for name in names]


def _index(
    engine: Engine,
    repository: Repository,
    blobs: Sequence[str],
    path_of: dict[str, str],
    redact: Callable[[str], str],
) -> dict[str, Facts]:
    scanned = {}
    for blob, content in zip(blobs, repository.contents(blobs), strict=True):
        binary = b"\0" in content[:8192]
        text = "" if binary else redact(content.decode(errors="replace"))
        counted = tokens(text)
        scanned[blob] = (scan(path_of[blob], text, counted), fold(counted))
    engine.call(store_facts, scanned)
    return {blob: facts for blob, (facts, _) in scanned.items()}
