"""History: which files earlier commits changed, and what their messages said about it.

Owns what is kept of a commit and the ranking of files by it: a change counts as much as its message
is about the query (BM25, as everywhere), less where it is old or touched many files. It is what an
engineer asks first of an unknown repository: who changed such a thing before, and where?

Invariants: only what a base commit descends from is evidence; the same commit and query give the
same scores; where there is no history nothing is scored; messages come redacted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import log1p, sqrt

import msgspec

from holdfast.context.retrieve import COMMON_ROWS_MIN, bm25, emphasis
from holdfast.context.words import root, terms

COMMITS_MAX = 500
HISTORY_BYTES_MAX = 4_000_000
MESSAGE_CHARS_MAX = 4000
FILES_MAX = 50  # a commit of more files says little about each of them
# Set, like the weights of codemap, as docs/context.md says.
HALF_LIFE = 200  # in commits
ANY_CHANGE = 0.2  # how much it tells that a file changes at all, beside what a message says
WORDS_TOLD = 3


class Change(msgspec.Struct, frozen=True, array_like=True):
    """What one commit said, as roots, and the files that it touched."""

    said: tuple[str, ...]
    paths: tuple[str, ...]


def changes(told: Iterable[tuple[str, Sequence[str]]]) -> tuple[Change, ...]:
    """What is kept of commits given as (message, names of the files), newest first."""
    return tuple(
        Change(
            said=tuple(map(root, terms(message[:MESSAGE_CHARS_MAX]))),
            paths=tuple(paths) if len(paths) <= FILES_MAX else (),
        )
        for message, paths in told
    )


def by_history(known: Sequence[Change], query: str) -> dict[str, float]:
    """How much earlier changes speak for each file, by path; above zero for every changed one."""
    about = _about(known, query)
    top = max(about.values(), default=1.0)
    said: defaultdict[str, float] = defaultdict(float)
    touched: defaultdict[str, float] = defaultdict(float)
    for age, change in enumerate(known):
        for path in change.paths:
            share = 0.5 ** (age / HALF_LIFE) / sqrt(len(change.paths))
            touched[path] += share
            said[path] += share * about.get(age, 0.0) / top
    return {path: said[path] + ANY_CHANGE * log1p(share) for path, share in touched.items()}


def evidence(known: Sequence[Change], query: str, path: str) -> str:
    """The changes of a file that speak of the query, for people: how many, and of which words."""
    spelled = {root(term): term for term in reversed(terms(query))}
    found = [spelled.keys() & change.said for change in known if path in change.paths]
    words = Counter(spelled[word] for said in found for word in said)
    most = sorted(words, key=lambda word: (-words[word], word))[:WORDS_TOLD]
    count = sum(map(bool, found))
    return f"{path}: {count} of {', '.join(most)}" if count else ""


def encode_changes(known: Sequence[Change]) -> bytes:
    return msgspec.msgpack.encode(known)


def decode_changes(content: bytes) -> tuple[Change, ...]:
    return msgspec.msgpack.decode(content, type=tuple[Change, ...])


def _about(known: Sequence[Change], query: str) -> dict[int, float]:
    """How much each change is about the query, by its place; others are left out."""
    weights = emphasis(query)
    said = {
        age: Counter(word for word in change.said if word in weights)
        for age, change in enumerate(known)
        if change.paths
    }
    having = Counter(word for words in said.values() for word in words)
    rare = {
        word: rows
        for word, rows in having.items()
        if len(said) < COMMON_ROWS_MIN or rows * 2 <= len(said)
    }
    lengths = {age: len(known[age].said) for age in said}
    return bm25(rare, said, total=len(said), lengths=lengths, weights=weights)
