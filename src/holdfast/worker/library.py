"""The librarian: reads a base tree, and what led to it, out of git into the store's index, once.

Owns which files are worth reading. It works in small batches, so that running attempts never wait
long for the writer and a tree of any size costs little memory; a process that dies in between has
lost nothing but the work.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import chain, islice, repeat
from typing import TypeVar

from holdfast.adapters.repository import Repository
from holdfast.adapters.scanner import Scanner
from holdfast.adapters.tools.paths import shown
from holdfast.context.codemap import (
    CodeMap,
    Defined,
    Facts,
    Scanned,
    build,
    decode_facts,
    defines,
    defining,
    outline,
)
from holdfast.context.grammars import reads
from holdfast.context.history import COMMITS_MAX, HISTORY_BYTES_MAX, Change, changes
from holdfast.engine import Engine
from holdfast.engine.library import (
    known_changes,
    known_defining,
    known_facts,
    known_map,
    store_changes,
    store_defining,
    store_facts,
    store_map,
)
from holdfast.errors import Unavailable

FILES_MAX = 20_000
FILE_BYTES_MAX = 400_000
BATCH = 200
BATCH_BYTES = 2_000_000
AHEAD = 2  # batches that are read before they are wanted
QUEUED = 16  # batches that wait for the scanner
T = TypeVar("T")
U = TypeVar("U")


def read_tree(
    engine: Engine,
    repository: Repository,
    tree: str,
    redact: Callable[[str], str],
    heard: Callable[[int, int], None] = lambda read, of: None,
) -> CodeMap:
    """The map of a tree, made and indexed if it is not known yet. Idempotent.

    On the way `heard` is told again and again how many files are read, and of how many.
    Binary files, links, files over `FILE_BYTES_MAX` and those past `FILES_MAX` are left out.
    """
    known = engine.read(known_map, tree)
    if known is not None:
        return known
    with uncollected():
        code = _made(engine, repository, tree, redact, heard)
        engine.call(store_map, tree, code)
    return code


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the collector of cycles: facts and syntax trees have none, and it would walk them for
    some again and again, a sixth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _made(
    engine: Engine,
    repository: Repository,
    tree: str,
    redact: Callable[[str], str],
    heard: Callable[[int, int], None],
) -> CodeMap:
    """The map of a tree that is not known yet; its files are indexed on the way."""
    found = [
        entry for entry in islice(repository.entries(tree), FILES_MAX) if entry[2] <= FILE_BYTES_MAX
    ]
    paths = shown_names([path for path, _, _ in found], redact)
    entries = [(path, blob) for path, (_, blob, _) in zip(paths, found, strict=True)]
    path_of = {blob: path for path, blob in reversed(entries)}
    sizes = {blob: size for _, blob, size in found}
    batches = list(_batches(sizes))
    defined: dict[str, tuple[str, ...]] = {}

    def read(batch: Sequence[str]) -> tuple[dict[str, Defined], dict[str, bytes]]:
        known = engine.read(known_facts, batch, Defined)
        missing = [blob for blob in batch if blob not in known]
        contents = repository.contents(missing) if missing else []
        return known, dict(zip(missing, contents, strict=True))

    def store(scanned: Future[dict[str, Scanned]]) -> None:
        if found := scanned.result():
            engine.call(store_facts, found)

    def scan(texts: dict[str, str]) -> dict[str, Scanned]:
        files = [(path_of[blob], text, defined.get(blob)) for blob, text in texts.items()]
        found = dict(zip(texts, scanner(files), strict=True))
        for blob, each in found.items():
            if blob not in defined and (facts := decode_facts(each.facts, Defined)):
                defined[blob] = facts.defines
        return found

    # This thread redacts and finds what is defined, git reads ahead of it, and behind it the
    # scanner cuts words and SQLite writes. So all that is defined is known well before all that is
    # mentioned, and the graph grows while the scanner is still at work. What only a grammar can
    # read is left to the scanner: it takes long, and other threads would wait for it.
    with (
        closing(Scanner()) as scanner,
        ThreadPoolExecutor(1) as reading,
        ThreadPoolExecutor(1) as scanning,
        ThreadPoolExecutor(1) as writing,
    ):
        done = 0
        waiting: deque[tuple[Future[dict[str, Scanned]], Future[None]]] = deque()
        for known, contents in _ahead(reading, read, batches):
            texts = {blob: _text(content, redact) for blob, content in contents.items()}
            defined |= {blob: facts.defines for blob, facts in known.items()}
            quick = [blob for blob in texts if not reads(path_of[blob])]
            defined |= {blob: defines(path_of[blob], texts[blob]) for blob in quick}
            scanned = scanning.submit(scan, texts)
            waiting.append((scanned, writing.submit(store, scanned)))
            if len(waiting) > QUEUED:
                waiting.popleft()[1].result()
            heard(done := done + len(known) + len(texts), len(sizes))
        for scanned, _ in waiting:
            if len(defined) < len(sizes):
                scanned.result()
        newest = [scanned for scanned, _ in waiting]
        code = build(entries, defined, _scanned(engine, batches, newest))
        for _, stored in waiting:
            stored.result()
        return code


def _scanned(
    engine: Engine, batches: Sequence[list[str]], newest: Sequence[Future[dict[str, Scanned]]]
) -> Iterator[tuple[str, Facts]]:
    """What files hold: the newest batches as they are scanned, the rest from the store."""
    older = repeat(dict[str, Scanned](), len(batches) - len(newest))
    for batch, found in zip(batches, chain(older, (each.result() for each in newest)), strict=True):
        known = [blob for blob in batch if blob not in found]
        yield from engine.read(known_facts, known, Facts).items()
        for blob, each in found.items():
            if facts := decode_facts(each.facts, Facts):
                yield blob, facts


def read_history(
    engine: Engine, repository: Repository, commit: str, redact: Callable[[str], str]
) -> tuple[Change, ...]:
    """What `commit` (empty: none) and those before it changed, read if not known yet. Idempotent.

    Merges and what is past `COMMITS_MAX` or `HISTORY_BYTES_MAX` are left out.
    """
    known = engine.read(known_changes, commit) if commit else ()
    if known is not None:
        return known
    told = repository.history(commit, commits_max=COMMITS_MAX, bytes_max=HISTORY_BYTES_MAX)
    messages = redacted([message for message, _ in told], redact)
    names = sorted({name for _, paths in told for name in paths})
    by_name = dict(zip(names, shown_names(names, redact), strict=True))
    paths = ([by_name[name] for name in paths] for _, paths in told)
    known = changes(zip(messages, paths, strict=True))
    engine.call(store_changes, commit, known)
    return known


def outlines(engine: Engine, files: Sequence[tuple[str, str, str]], query: str) -> dict[str, str]:
    """The outline of each (path, blob, text), by path. What defines is kept by blob id."""
    known = engine.read(known_defining, [blob for _, blob, _ in files])
    with uncollected():
        found = {path: defining(path, text, known.get(blob)) for path, blob, text in files}
    new = {blob: found[path] for path, blob, _ in files if found[path] is not known.get(blob)}
    if new:
        with suppress(Unavailable):  # another has the store just now: what was found is not lost
            engine.call(store_defining, new)
    return {path: outline(path, text, query, known=found[path]) for path, _, text in files}


def _ahead(pool: Executor, work: Callable[[T], U], items: Iterable[T]) -> Iterator[U]:
    """The work on each item in order, done in `pool` while the one before is used."""
    waiting: deque[Future[U]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) == AHEAD:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _text(content: bytes, redact: Callable[[str], str]) -> str:
    return "" if b"\0" in content[:8192] else redact(content.decode(errors="replace"))


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


def shown_names(names: list[str], redact: Callable[[str], str]) -> list[str]:
    """Names of files as they may be shown and kept: redacted, each one line of valid text."""
    return redacted([name if name.isprintable() else shown(name) for name in names], redact)


def redacted(texts: list[str], redact: Callable[[str], str]) -> list[str]:
    """Names or messages without secrets; one look at all when none holds any."""
    together = "\0".join(texts)
    return texts if redact(together) == together else [redact(text) for text in texts]
