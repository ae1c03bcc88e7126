"""The librarian: reads a base tree out of git into the store's index, once per blob and tree.

Owns which files are worth reading. It works in small batches, so that running attempts never wait
long for the writer and a tree of any size costs little memory; a process that dies in between has
lost nothing but the work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice, pairwise

from holdfast.adapters.repository import Repository
from holdfast.context.codemap import DEFINERS_MAX, CodeMap, Facts, build, scan
from holdfast.context.words import tokens, weighed
from holdfast.engine import Engine
from holdfast.engine.library import known_facts, known_map, store_facts, store_map

FILES_MAX = 20_000
FILE_BYTES_MAX = 400_000
BATCH = 200
BATCH_BYTES = 8_000_000
HELD_BYTES_MAX = 64_000_000  # of source, whose facts take about four times that in memory
NONE = Facts(defines=(), mentions={})


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
    sizes = {blob: size for _, blob, size in found}
    facts: dict[str, Facts] = {}
    definers: Counter[str] = Counter()
    for batch, known_now in _indexed(engine, repository, list(_batches(sizes)), path_of, redact):
        for each in known_now.values():
            definers.update(each.defines)
        facts |= known_now if sum(sizes.values()) <= HELD_BYTES_MAX else dict.fromkeys(batch, NONE)
    # Names that nobody or everybody defines lead nowhere: most of what files mention is not kept.
    telling = {name: name for name, times in definers.items() if times <= DEFINERS_MAX}
    for batch in _batches({blob: sizes[blob] for blob, each in facts.items() if each is NONE}):
        for blob, each in engine.read(known_facts, batch).items():
            told = {telling[name]: n for name, n in each.mentions.items() if name in telling}
            facts[blob] = Facts(defines=each.defines, mentions=told)
    code = build((path, blob, facts[blob]) for path, blob in entries)
    engine.call(store_map, tree, code)
    return code


def _indexed(
    engine: Engine,
    repository: Repository,
    batches: Sequence[list[str]],
    path_of: Mapping[str, str],
    redact: Callable[[str], str],
) -> Iterator[tuple[list[str], dict[str, Facts]]]:
    """Each batch with its facts, scanned and stored where they were not known."""
    with ThreadPoolExecutor(2) as aside:  # git reads the next batch, SQLite writes the last one
        written: Future[None] | None = None
        ahead = aside.submit(_read, engine, repository, batches[0] if batches else [])
        for batch, following in pairwise([*batches, []]):
            facts, contents = ahead.result()
            ahead = aside.submit(_read, engine, repository, following)
            if contents:
                scanned = _scanned(contents, path_of, redact)
                facts |= {blob: found for blob, (found, _) in scanned.items()}
                if written is not None:
                    written.result()
                written = aside.submit(engine.call, store_facts, scanned)
            yield batch, facts
        if written is not None:
            written.result()


def _read(
    engine: Engine, repository: Repository, batch: Sequence[str]
) -> tuple[dict[str, Facts], dict[str, bytes]]:
    """The facts of the blobs that are known, and what the others hold."""
    facts = engine.read(known_facts, batch)
    missing = [blob for blob in batch if blob not in facts]
    return facts, dict(zip(missing, repository.contents(missing), strict=True)) if missing else {}


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


def _scanned(
    contents: Mapping[str, bytes], path_of: Mapping[str, str], redact: Callable[[str], str]
) -> dict[str, tuple[Facts, list[str]]]:
    scanned = {}
    for blob, content in contents.items():
        binary = b"\0" in content[:8192]
        text = "" if binary else redact(content.decode(errors="replace"))
        counted = tokens(text)
        scanned[blob] = (scan(path_of[blob], text, counted), weighed(counted))
    return scanned
