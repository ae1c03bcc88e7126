"""The rankers that benchmarks/context.py compares: each takes a query and files, best file first.

`plain_bm25` is Okapi BM25 over lower-cased words; `fts5_alone` is SQLite's own table and ranking;
`aider_map` follows the published idea of aider's repository map (a graph from files that mention a
name to files that define it, PageRank personalised to the names and files the query mentions;
written anew here, with networkx left out); `random` is the floor. The peers run in their own
environment (`Peer`).
"""

from __future__ import annotations

import json
import math
import random
import re
import sqlite3
import subprocess
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from common import PEER_PYTHON
from holdfast.context.codemap import Facts, defines
from holdfast.context.words import tokens

_WORD = re.compile(r"[a-z0-9_]+")
_STRIP = re.compile(r"\W+")


def shuffled(query: str, texts: Mapping[str, str]) -> list[str]:
    return random.Random(query).sample(sorted(texts), len(texts))


def plain_bm25(query: str, texts: Mapping[str, str]) -> list[str]:
    documents = {path: _words(path, text) for path, text in texts.items()}
    mean = sum(length for _, length in documents.values()) / max(1, len(documents))
    scores: Counter[str] = Counter()
    for term in dict.fromkeys(_WORD.findall(query.lower())):
        having = [path for path, (words, _) in documents.items() if term in words]
        weight = math.log(1 + (len(documents) - len(having) + 0.5) / (len(having) + 0.5))
        for path in having:
            words, length = documents[path]
            norm = 1.5 * (0.25 + 0.75 * length / mean)
            scores[path] += weight * words[term] * 2.5 / (words[term] + norm)
    return [path for path, _ in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))]


def fts5_alone(query: str, texts: Mapping[str, str]) -> list[str]:
    store = _fts5(tuple(sorted(texts.items())))
    words = " OR ".join(f'"{word}"' for word in dict.fromkeys(_STRIP.sub(" ", query).split()))
    if not words:
        return []
    rows = store.execute(
        "SELECT path FROM files WHERE files MATCH ? ORDER BY bm25(files), path", (words,)
    )
    return [row[0] for row in rows]


def aider_map(query: str, texts: Mapping[str, str]) -> list[str]:
    facts = {path: _scan(path, text) for path, text in texts.items()}
    definers: defaultdict[str, list[str]] = defaultdict(list)
    for path, found in facts.items():
        for name in found.defines:
            definers[name].append(path)
    words = set(re.findall(r"\w+", query))
    edges: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path, found in facts.items():
        for name, times in found.mentions.items():
            for target in definers.get(name, ()):
                if target != path:
                    edges[path][target] += math.sqrt(times) * _weight(name, words, definers)
    start = {
        path: 1.0 for path in texts if words & {Path(path).name, Path(path).stem, *Path(path).parts}
    }
    share = _pagerank(sorted(texts), edges, start)
    return sorted(texts, key=lambda path: (-round(share[path], 12), path))


class Peer:
    """One of rank_bm25, bm25s and llamaindex, in a process of its own that stays open.

    `ask` returns at once, so that several work at a time; a text is sent once, however many trees
    hold it.
    """

    def __init__(self, system: str) -> None:
        child = Path(__file__).with_name("context_child.py")
        self._process = subprocess.Popen(
            [PEER_PYTHON, child, system], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._known: dict[str, str] = {}

    def ask(self, query: str, texts: Mapping[str, str]) -> None:
        assert self._process.stdin is not None
        fresh = {
            text: str(len(self._known) + n)
            for n, text in enumerate(set(texts.values()) - self._known.keys())
        }
        self._known |= fresh
        order = {
            "query": query,
            "tree": {path: self._known[text] for path, text in texts.items()},
            "texts": {name: text for text, name in fresh.items()},
        }
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def answer(self) -> list[str]:
        assert self._process.stdout is not None
        return [str(path) for path in json.loads(self._process.stdout.readline())]

    def close(self) -> None:
        self._process.communicate()


@lru_cache(maxsize=100_000)
def _scan(path: str, text: str) -> Facts:
    return Facts(defines=defines(path, text), mentions=tokens(text))


@lru_cache(maxsize=100_000)
def _words(path: str, text: str) -> tuple[Counter[str], int]:
    found = _WORD.findall(f"{path}\n{text}".lower())
    return Counter(found), len(found)


@lru_cache(maxsize=4)
def _fts5(files: tuple[tuple[str, str], ...]) -> sqlite3.Connection:
    store = sqlite3.connect(":memory:")
    store.execute("CREATE VIRTUAL TABLE files USING fts5 (path, text)")
    store.executemany("INSERT INTO files VALUES (?, ?)", files)
    return store


def _weight(name: str, words: set[str], definers: Mapping[str, list[str]]) -> float:
    compound = "_" in name or (name != name.lower() and name != name.upper())
    weight = 10.0 if name in words else 1.0
    weight *= 10.0 if compound and len(name) >= 8 else 1.0
    weight *= 0.1 if name.startswith("_") else 1.0
    return weight * (0.1 if len(definers[name]) > 5 else 1.0)


def _pagerank(
    nodes: list[str], edges: Mapping[str, Counter[str]], start: Mapping[str, float]
) -> dict[str, float]:
    total = sum(start.values())
    seeds = {node: start.get(node, 0.0) / total if total else 1 / len(nodes) for node in nodes}
    share = dict(seeds)
    for _ in range(30):
        after = {node: 0.15 * seed for node, seed in seeds.items()}
        lost = 0.0
        for node, mass in share.items():
            found = edges.get(node)
            if not found:
                lost += mass
                continue
            whole = sum(found.values())
            for target, weight in found.items():
                after[target] += 0.85 * mass * weight / whole
        share = {node: mass + 0.85 * lost * seeds[node] for node, mass in after.items()}
    return share
