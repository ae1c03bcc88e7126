"""One peer of benchmarks/context.py in its own process: rank_bm25, bm25s or llamaindex.

Reads JSON lines `{"query", "tree", "texts"?}` (the texts once a tree) and answers each with the
paths of the files, best first. Runs in benchmarks/.peers, which knows nothing of the engine.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping

WORD = re.compile(r"[a-z0-9_]+")
Ranker = Callable[[str], list[str]]


def words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def rank_bm25(texts: Mapping[str, str]) -> Ranker:
    from rank_bm25 import BM25Okapi

    paths = sorted(texts)
    index = BM25Okapi([words(f"{path}\n{texts[path]}") or [""] for path in paths])

    def rank(query: str) -> list[str]:
        scores = index.get_scores(words(query))
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
    rankers: dict[str, Ranker] = {}
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    for line in sys.stdin:
        order = json.loads(line)
        if "texts" in order:
            rankers[order["tree"]] = make(order["texts"])
        answers.write(json.dumps(rankers[order["tree"]](order["query"])) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
