"""The librarian: reads a base tree, and what led to it, out of git into the store's index, once.

Owns which files are worth reading. It works in small batches, so that running attempts never wait
long for the writer and a tree of any size costs little memory; a process that dies in between has
lost nothing but the work.
"""

from __future__ import annotations

import gc
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import TypeVar

from holdfast.adapters.repository import Repository
from holdfast.adapters.scanner import Scanner
from holdfast.adapters.tools.paths import shown
from holdfast.context.codemap import (
    DEFINERS_MAX,
    CodeMap,
    Facts,
    Scanned,
    build,
    decode_facts,
    defining,
    named,
    outline,
)
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
AHEAD = 2  # batches that are read before they are wanted, and scanned; one more is being stored
HELD_BYTES_MAX = 64_000_000  # of source, whose facts take about four times that in memory
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
    small = sum(sizes.values()) <= HELD_BYTES_MAX
    facts: dict[str, Facts] = {}
    names: dict[str, list[str]] = {}
    for known_now in _indexed(engine, repository, list(_batches(sizes)), path_of, redact):
        for blob, each in known_now.items():
            facts[blob] = each if small else Facts(defines=each.defines, mentions={})
            names[blob] = named(each)
        heard(len(facts), len(sizes))
    if not small:
        # Names that nobody or everybody defines lead nowhere: most that is mentioned is not kept.
        definers = Counter(name for each in facts.values() for name in each.defines)
        telling = {name: name for name, times in definers.items() if times <= DEFINERS_MAX}
        for batch in _batches(sizes):
            for blob, each in engine.read(known_facts, batch).items():
                told = {telling[name]: n for name, n in each.mentions.items() if name in telling}
                facts[blob] = Facts(defines=facts[blob].defines, mentions=told)
    return build(((path, blob, facts[blob]) for path, blob in entries), names)


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


def _indexed(
    engine: Engine,
    repository: Repository,
    batches: Sequence[list[str]],
    path_of: Mapping[str, str],
    redact: Callable[[str], str],
) -> Iterator[dict[str, Facts]]:
    """The facts of each batch, scanned and stored where they were not known."""

    def read(batch: Sequence[str]) -> tuple[dict[str, Facts], dict[str, bytes]]:
        facts = engine.read(known_facts, batch)
        missing = [blob for blob in batch if blob not in facts]
        contents = repository.contents(missing) if missing else []
        return facts, dict(zip(missing, contents, strict=True))

    def scan(
        texts: tuple[dict[str, Facts], dict[str, str]],
    ) -> tuple[dict[str, Facts], dict[str, Scanned]]:
        facts, found = texts
        files = [(path_of[blob], text) for blob, text in found.items()]
        return facts, dict(zip(found, scanner(files), strict=True))

    # While this thread redacts a batch, git reads the next, the scanner scans and SQLite writes.
    with (
        closing(Scanner()) as scanner,
        ThreadPoolExecutor(1) as reading,
        ThreadPoolExecutor(1) as scanning,
        ThreadPoolExecutor(1) as writing,
    ):
        texts = (
            (facts, {blob: _text(content, redact) for blob, content in contents.items()})
            for facts, contents in _ahead(reading, read, batches)
        )
        written: Future[None] | None = None
        for facts, scanned in _ahead(scanning, scan, texts):
            if written is not None:
                written.result()
            written = writing.submit(engine.call, store_facts, scanned) if scanned else None
            fresh = {blob: decode_facts(found.facts) for blob, found in scanned.items()}
            yield facts | {blob: each for blob, each in fresh.items() if each is not None}
        if written is not None:
            written.result()


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
