"""One peer of benchmarks/context.py in its own process: rank_bm25, bm25s or llamaindex.

Reads JSON lines `{"query", "tree": {path: name}, "texts": {name: text}}` (each text once) and
answers each with the paths of the files, best first. An index is made anew for every tree. Runs in
benchmarks/.peers, which knows nothing of the engine.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache

WORD = re.compile(r"[a-z0-9_]+")
Ranker = Callable[[str], list[str]]


@lru_cache(maxsize=100_000)
def words(path: str, text: str) -> list[str]:
    return WORD.findall(f"{path}\n{text}".lower())


def rank_bm25(texts: Mapping[str, str]) -> Ranker:
    from rank_bm25 import BM25Okapi

    paths = sorted(texts)
    index = BM25Okapi([words(path, texts[path]) for path in paths])

    def rank(query: str) -> list[str]:
        scores = index.get_scores(WORD.findall(query.lower()))
        return [paths[n] for n in sorted(range(len(paths)), key=lambda n: (-scores[n], paths[n]))]

    return rank


def bm25s(texts: Mapping[str, str]) -> Ranker:
    import bm25s

    paths = sorted(texts)
    index = bm25s.BM25()
    corpus = [f"{path}\n{texts[path]}" for path in paths]
    index.index(bm25s.tokenize(corpus, stopwords="en", show_progress=False), show_progress=False)

    def rank(query: str) -> list[str]:
        tokens = bm25s.tokenize([query], stopwords="en", show_progress=False)
        found, _ = index.retrieve(tokens, k=len(paths), show_progress=False)
        return [paths[int(n)] for n in found[0]]

    return rank


def llamaindex(texts: Mapping[str, str]) -> Ranker:
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    nodes = [
        TextNode(text=f"{path}\n{texts[path]}", metadata={"path": path}) for path in sorted(texts)
    ]
    index = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=len(nodes))
    return lambda query: [found.node.metadata["path"] for found in index.retrieve(query)]


def main() -> None:
    make = {"rank_bm25": rank_bm25, "bm25s": bm25s, "llamaindex": llamaindex}[sys.argv[1]]
    known: dict[str, str] = {}
    tree, rank = None, None
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    for line in sys.stdin:
        order = json.loads(line)
        known |= order["texts"]
        if rank is None or order["tree"] != tree:
            tree = order["tree"]
            rank = make({path: known[name] for path, name in tree.items()})
        answers.write(json.dumps(rank(order["query"])) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
