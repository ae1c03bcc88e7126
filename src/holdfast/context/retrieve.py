"""Retrieve: the documents that a query is about, by BM25, and the choice among near-duplicates.

Owns the search over the store's documents (outputs and incidents of tasks, source files) and the
one scoring that it and unindexed text share. FTS5 finds candidates; they are scored here, because
its own `bm25()` (negative, by the way) calls a term in half of the rows worth nothing, which in a
plan of two tasks loses every hit. Robertson and Zaragoza 2009, with the IDF that stays positive.

Invariants: a hit shares a telling term with the query, so its score is above zero; equal scores
are in order of task and source, never in the order of writing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from holdfast.context.words import forms, root, terms, tokens, weighed
from holdfast.frozen import frozen

if TYPE_CHECKING:  # what scans files beside us imports this too, and no store
    from holdfast.store import Tx

DocumentKind = Literal["output", "incident"]
K = TypeVar("K", bound=Hashable)
S = TypeVar("S", str, tuple[int, str, DocumentKind])

K1, B = 1.2, 0.75
TITLE_WEIGHT = 2.0  # set, like the weights of codemap, as docs/context.md says
QUERY_TERMS_MAX = 24
CANDIDATES_MAX = 400
# In fewer rows than this, no term is too common to tell them apart.
COMMON_ROWS_MIN = 8
MMR_RELEVANCE = 0.7
FUSION = 60


@frozen
class Hit:
    """A document that matches. `source` is TASK.ATTEMPT, `score` is above zero."""

    kind: DocumentKind
    source: str
    task: int
    title: str
    body: str
    score: float


def add_document(
    tx: Tx, kind: DocumentKind, source: str, *, title: str, body: str, task: int, plan: int
) -> None:
    """Index an output or incident of a task. Idempotent by kind and source."""
    number = tx.number("document.next")
    added = tx.run(
        "document.add",
        id=number,
        kind=kind,
        source=source,
        task=task,
        title=title,
        body=tx.pack(body.encode()),
    )
    if added:
        found = weighed(tokens(f"{title}\n{body}"))
        tx.run("document.index", id=number, terms=" ".join(found), scope=_scope(plan))


def inherit_documents(tx: Tx, before: int, plan: int) -> None:
    """Let what is known of a plan be known of the one that goes on with its tasks. Idempotent."""
    tx.run("document.inherit", match=_match(before, ()), scope=_scope(plan))


def add_files(tx: Tx, files: Sequence[tuple[str, str, int, bytes]]) -> None:
    """Index source files given as (git's blob id, terms, of how many tokens, facts). Idempotent.

    Facts that are there are replaced: they are the same, or of another way of scanning. All goes in
    two statements, since between any two a thread may wait for the interpreter.
    """
    number = tx.number("file.next")
    facts = b"".join(facts for _, _, _, facts in files)
    rows = msgspec.json.encode([(blob, length, len(facts)) for blob, _, length, facts in files])
    terms = msgspec.json.encode({blob: terms for blob, terms, _, _ in files})
    tx.run("file.add", next=number, files=rows.decode(), facts=facts)
    tx.run("file.index", next=number, terms=terms.decode())


def search(tx: Tx, query: str, *, plan: int, k: int, without: Collection[int] = ()) -> list[Hit]:
    """The `k` outputs and incidents of a plan that `query` is about, best first.

    `without` are tasks whose documents are left out. How rare a term is, is counted in the plan, so
    that other goals change nothing and cost nothing. No text of the query can be an operator.
    """
    total = _matching(tx, plan)
    counted = {term: _matching(tx, plan, term) for term in dict.fromkeys(terms(query))}
    known = {term: rows for term, rows in counted.items() if rows}
    small = total < COMMON_ROWS_MIN
    telling = {term: rows for term, rows in known.items() if small or rows * 2 <= total}
    # What most have in common tells only where nothing else does.
    found = _hits(tx, _rarest(telling), total, plan, without)
    return (found or _hits(tx, _rarest(known), total, plan, without))[:k]


def _matching(tx: Tx, plan: int, *words: str) -> int:
    """How many documents of a plan have one of the words; without any, how many there are."""
    return tx.number("document.matching", match=_match(plan, words))


def _hits(
    tx: Tx, wanted: Mapping[str, int], total: int, plan: int, without: Collection[int]
) -> list[Hit]:
    """The documents of a plan of `total` that have one of the terms, best first."""
    if not wanted:
        return []
    rows = tx.all(
        "document.match",
        match=_match(plan, list(wanted)),
        many=total > CANDIDATES_MAX,
        limit=CANDIDATES_MAX,
    )
    named = {
        (row["task_id"], row["source"], row["kind"]): row
        for row in rows
        if row["task_id"] not in without
    }
    documents = {key: Counter(row["terms"].split()) for key, row in named.items()}
    return [
        Hit(
            kind=key[2],
            source=key[1],
            task=key[0],
            title=named[key]["title"],
            body=tx.unpack(named[key]["body"]).decode(),
            score=score,
        )
        for key, score in best(bm25(wanted, documents, total=total))
    ]


def newest(tx: Tx, *, plan: int, k: int, without: Collection[int] = ()) -> list[Hit]:
    """The `k` newest outputs and incidents of a plan, whatever they are about; all score 0."""
    rows = tx.all("document.of_scope", match=_match(plan, ()), limit=k)
    return [
        Hit(
            kind=row["kind"],
            source=row["source"],
            task=row["task_id"],
            title=row["title"],
            body=tx.unpack(row["body"]).decode(),
            score=0.0,
        )
        for row in rows
        if row["task_id"] not in without
    ]


def fused(*rankings: Sequence[K]) -> list[tuple[K, float]]:
    """Several rankings as one, by reciprocal rank (Cormack and others 2009), best first."""
    scores: dict[K, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking):
            scores[key] = scores.get(key, 0.0) + 1 / (FUSION + rank)
    order = {key: number for number, key in enumerate(scores)}
    return sorted(scores.items(), key=lambda pair: (-pair[1], order[pair[0]]))


def search_files(tx: Tx, query: str, *, among: Collection[str]) -> dict[str, float]:
    """The scores of the files (of the blobs `among`: a tree's) that `query` is about.

    Older versions of a file are in the index too; how rare a word is, is counted in the tree alone.
    """
    frequency: dict[str, int] = {}
    lengths: dict[str, int] = {}
    documents: dict[str, dict[str, int]] = {}
    weights = emphasis(query)
    for word in weights:
        times: Counter[str] = Counter()
        for term in forms(word):
            for row in tx.all("file.with", term=term):
                if row["blob_id"] in among:
                    times[row["blob_id"]] += row["times"]
                    lengths[row["blob_id"]] = row["length"]
        if not times or (len(among) >= COMMON_ROWS_MIN and len(times) * 2 > len(among)):
            continue
        frequency[word] = len(times)
        for blob, often in times.items():
            documents.setdefault(blob, {})[word] = often
    return bm25(frequency, documents, total=len(among), lengths=lengths, weights=weights)


def emphasis(query: str) -> dict[str, float]:
    """How much each root of a query counts: a repeated one more, one of its first line double."""
    title = set(map(root, terms(query.strip().partition("\n")[0])))
    return {
        word: (1 + math.log(times)) * (TITLE_WEIGHT if word in title else 1.0)
        for word, times in Counter(map(root, terms(query))).items()
    }


def bm25(
    query: Mapping[str, int] | Sequence[str],
    documents: Mapping[K, Mapping[str, int]],
    *,
    total: int = 0,
    lengths: Mapping[K, int] | None = None,
    weights: Mapping[str, float] | None = None,
) -> dict[K, float]:
    """The score of every document that shares a term with the query; others are left out.

    A query given as a mapping holds how many documents have each term, of `total`; without it both
    are counted over `documents`. `lengths` are needed where `documents` hold the query's terms
    alone. `weights` are what a term counts, 1 without.
    """
    if not documents:
        return {}
    if isinstance(query, Mapping):
        frequency = dict(query)
    else:
        frequency = {
            term: sum(term in document for document in documents.values())
            for term in dict.fromkeys(query)
        }
    rows = max(total, len(documents))
    if lengths is None:
        lengths = {key: sum(document.values()) for key, document in documents.items()}
    mean = (sum(lengths.values()) / len(lengths)) or 1.0
    scores: dict[K, float] = {}
    for term, having in frequency.items():
        weight = math.log(1 + (rows - having + 0.5) / (having + 0.5)) if having <= rows else 0.0
        weight *= weights[term] if weights else 1.0
        for key, document in documents.items():
            times = document.get(term, 0)
            if times and weight > 0:
                norm = K1 * (1 - B + B * lengths[key] / mean)
                scores[key] = scores.get(key, 0.0) + weight * times * (K1 + 1) / (times + norm)
    return scores


def best(scores: Mapping[S, float]) -> list[tuple[S, float]]:
    """Scores above zero, highest first, equal ones by key."""
    found = [(key, score) for key, score in scores.items() if score > 0]
    return sorted(found, key=lambda pair: (-round(pair[1], 9), pair[0]))


def diverse(
    ranked: Sequence[tuple[K, float]], contents: Mapping[K, Collection[str]], k: int
) -> list[tuple[K, float, K | None]]:
    """Up to `k` keys by maximal marginal relevance (Carbonell and Goldstein 1998).

    Each comes with its similarity to what was chosen before and the key it resembles most.
    """
    top = max((score for _, score in ranked), default=1.0) or 1.0
    sets = {key: frozenset(contents[key]) for key, _ in ranked}
    left: list[tuple[K, float, float, K | None]] = [
        (key, score, 0.0, None) for key, score in ranked
    ]
    chosen: list[tuple[K, float, K | None]] = []
    while left and len(chosen) < k:
        gains = [
            (MMR_RELEVANCE * score / top - (1 - MMR_RELEVANCE) * near, -position)
            for position, (_, score, near, _) in enumerate(left)
        ]
        key, _, near, twin = left.pop(-max(gains)[1])
        chosen.append((key, near, twin))
        left = [_nearer(one, key, similarity(sets[one[0]], sets[key])) for one in left]
    return chosen


def similarity(left: Collection[str], right: Collection[str]) -> float:
    """Jaccard's index of two sets of terms, 0 to 1."""
    one, other = frozenset(left), frozenset(right)
    both = len(one & other)
    return both / (len(one) + len(other) - both) if one or other else 0.0


def _nearer(
    one: tuple[K, float, float, K | None], other: K, alike: float
) -> tuple[K, float, float, K | None]:
    """A candidate with what it resembles most, now that `other` is chosen."""
    return (*one[:2], alike, other) if alike > one[2] else one


def _rarest(counted: Mapping[str, int]) -> dict[str, int]:
    """The terms that tell most."""
    rare = sorted(counted, key=lambda term: (counted[term], term))[:QUERY_TERMS_MAX]
    return {term: counted[term] for term in rare}


def _match(plan: int, words: Collection[str]) -> str:
    """The expression for what a plan has with one of the words; without any, for all of it."""
    spelled = " OR ".join(f'"{word}"' for word in words)
    return f'scope : "{_scope(plan)}"' + (f" AND terms : ({spelled})" if words else "")


def _scope(plan: int) -> str:
    return f"p{plan}"
