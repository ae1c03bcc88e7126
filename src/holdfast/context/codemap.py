"""The repository map: which files a task is about, by what they define, mention and say.

Owns the scan of a source file into facts, the graph of a tree (a file points to the files that
define what it mentions) and its personalised ranking. Facts are kept by git's blob id and the graph
by tree id, so an unchanged file is never scanned twice, and the lines of an outline are kept, too.
What a Python file defines is what `ast` finds (`python`); other languages are read by tree-sitter
where it is installed (`grammars`), else by a regular expression.

Invariants: the same tree and query give the same ranking; a file that fails to parse is scanned all
the same; what another way of scanning found is not mixed in; nothing here reads a working tree.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain
from math import sqrt
from struct import iter_unpack, pack
from typing import TypeVar
from zlib import crc32

import msgspec

from holdfast.context.grammars import definitions, reads
from holdfast.context.python import DEFINED, PYTHON, defined, outlined
from holdfast.context.retrieve import best, bm25, emphasis
from holdfast.context.words import Cuts, root, terms, tokens, weighed
from holdfast.frozen import frozen

FILE_CHARS_MAX = 400_000
DEFINERS_MAX = 8  # a name that more files define tells nothing about where it comes from
LINKS_PER_FILE_MAX = 40
RESTART = 0.3
SEEDS_MAX = 40
PRECISION = 1e-4
PUSHES_MAX = 5_000
CALLERS_WEIGHT = 0.4
OUTLINE_LINES_MAX = 12
SCANNING = 3  # to count up where `scanned` finds other facts than before: they are kept, and maps
DEFINING = 2  # to count up where `defining` finds other lines than before: they are kept
# Weights of the five rankings, set on the training half of benchmarks/context.py.
CONTENT_WEIGHT, PATH_WEIGHT, NAMES_WEIGHT, GRAPH_WEIGHT, HISTORY_WEIGHT = 1.0, 0.5, 0.2, 0.1, 0.5
TOKEN_PRICE = 0.00125  # of the score, for each token that is shown of a file; set likewise

_OTHER = re.compile(
    r"\n[ \t]*(?:(?:export|default|pub(?:\([a-z]+\))?|public|private|protected|static|async"
    r"|abstract|final|inline)[ \t]+)*(?:def|class|function|fn|func|struct|enum|trait|interface"
    r"|type|module|const|let|var|macro_rules!)[ \t]+(\w+)"
)


@frozen
class Defined:
    """What one file defines: of its facts that which a map needs first."""

    defines: tuple[str, ...]
    scanning: int = field(default=0, compare=False)  # 0: before it was told, or nobody's


@frozen
class Facts(Defined):
    """Also how often it mentions each word, and the roots of what it defines, by spaces."""

    mentions: dict[str, int]
    roots: str = ""


D = TypeVar("D", Defined, Facts)
File = tuple[str, str, tuple[str, ...] | None]  # path, text, what it defines where that is known


@frozen
class Defining:
    """The lines of a text that define something; `check` is of the text and how it was read."""

    lines: tuple[int, ...]
    check: int


@frozen
class Scanned:
    """What one file holds: facts for the map (encoded), and terms of so many tokens to search."""

    facts: bytes
    terms: str
    length: int


@frozen
class Words:
    """Some words of each file, told by their root: a line is a word and the numbers of its files.

    A file stands there once for each such word. It is one text, since a question is about ten words
    and a map of many thousand would be read for each.
    """

    lines: str
    lengths: tuple[int, ...]

    def files(self, word: str) -> list[int]:
        """The files that have a word, each as often as it has it."""
        start = self.lines.find(f"\n{word} ") + 1
        line = self.lines[start : self.lines.index("\n", start)] if start else ""
        return [int(number) for number in line.split(" ")[1:]]


@frozen
class CodeMap:
    """The graph of one tree, and the words of the files' paths and of the names that they define.

    `links[i]` are those of file `i`, packed until someone comes by; see `leads`.
    """

    paths: tuple[str, ...]
    blobs: tuple[str, ...]
    links: tuple[bytes, ...]
    path: Words
    names: Words
    scanning: int = field(default=0, compare=False)

    def leads(self, number: int) -> Iterator[tuple[int, float]]:
        """The files that a file leads to, with their shares of 1."""
        return iter_unpack("<Id", self.links[number])  # a file's number and its share


def defines(path: str, text: str) -> tuple[str, ...]:
    """The names that a file defines, sorted; without those of one or two letters."""
    found: Iterable[str]
    if path.endswith(PYTHON):
        found = defined(text)
    elif parsed := definitions(path, text[:FILE_CHARS_MAX]):
        found = [name for _, name in parsed]
    else:
        found = _OTHER.findall("\n" + text)
    return tuple(sorted({name for name in found if len(name) > 2}))


def scanned(files: Iterable[File], cuts: Cuts) -> list[Scanned]:
    """What files hold, in their order."""
    found = []
    for path, text, known in files:
        names = defines(path, text) if known is None else known
        counted = tokens(text)
        said = weighed(counted, cuts)
        roots = " ".join(_roots(" ".join(names), cuts))
        facts = Facts(defines=names, mentions=counted, roots=roots, scanning=SCANNING)
        found.append(Scanned(facts=encode_facts(facts), terms=" ".join(said), length=len(said)))
    return found


def build(
    files: Iterable[tuple[str, str]],
    defined: Mapping[str, Sequence[str]],
    scanned: Iterable[tuple[str, Facts]],
) -> CodeMap:
    """The graph of a tree's files given as (path, blob), in any order.

    By blob come the names that each defines, and all facts: a reader of a tree waits for these, so
    they are taken one by one, and none is kept. A file without them leads nowhere.
    """
    ordered = sorted(files, key=lambda file: file[0])
    numbers: defaultdict[str, list[int]] = defaultdict(list)  # of files alike: copies say the same
    definers: defaultdict[str, list[int]] = defaultdict(list)
    for number, (_, blob) in enumerate(ordered):
        numbers[blob].append(number)
        for name in defined[blob]:
            definers[name].append(number)
    useful = {
        name: (_telling(name) / len(found), found)
        for name, found in definers.items()
        if len(found) <= DEFINERS_MAX
    }
    links: list[dict[int, float]] = [{} for _ in ordered]
    roots = {}
    for blob, facts in scanned:
        roots[blob] = facts.roots
        ahead = _forward(facts.mentions, useful)
        for number in numbers[blob]:
            others = [link for link in ahead if link[0] != number]
            for target, weight in others[:LINKS_PER_FILE_MAX]:
                links[number][target] = links[number].get(target, 0.0) + weight
                called = links[target].get(number, 0.0)
                links[target][number] = called + weight * CALLERS_WEIGHT
    return CodeMap(
        paths=tuple(path for path, _ in ordered),
        blobs=tuple(blob for _, blob in ordered),
        links=tuple(_shares(_strongest(found)) for found in links),
        path=_words(_roots(path) for path, _ in ordered),
        names=_words(roots.get(blob, "").split() for _, blob in ordered),
        scanning=SCANNING,
    )


def rank(code: CodeMap, scores: Mapping[str, float]) -> dict[str, float]:
    """Files by personalised PageRank from the blobs that retrieval scored, as path → share of 1.

    Forward push (Andersen, Chung and Lang 2006): only the neighbourhood of the seeds is visited, so
    the time does not depend on the size of the tree.
    """
    seeds = [scores.get(blob, 0.0) for blob in code.blobs]
    total = sum(seeds)
    if total <= 0:
        return {}
    rest: defaultdict[int, float] = defaultdict(float)
    found: defaultdict[int, float] = defaultdict(float)
    queue: deque[int] = deque()
    waiting: set[int] = set()
    for number, seed in enumerate(seeds):
        if seed:
            rest[number] = seed / total
            queue.append(number)
            waiting.add(number)
    for _ in range(PUSHES_MAX):
        if not queue:
            break
        number = queue.popleft()
        waiting.discard(number)
        mass = rest.pop(number)
        found[number] += RESTART * mass
        pushed = (1 - RESTART) * mass
        for target, weight in code.leads(number):
            rest[target] = share = rest[target] + pushed * weight
            if share > PRECISION and target not in waiting:
                waiting.add(target)
                queue.append(target)
    return {code.paths[number]: share for number, share in found.items()}


def relevant(
    code: CodeMap, found: Mapping[str, float], query: str, *, changed: Mapping[str, float]
) -> list[tuple[str, float]]:
    """Files by how much a query is about them, best first.

    `found` are the scores of blobs by their content, `changed` those of paths by what earlier
    commits said; with path, defined names and graph these are five rankings, each scaled to its
    own best.
    """
    there = frozenset(code.paths)
    files = zip(code.paths, code.blobs, strict=True)
    content = {path: found[blob] for path, blob in files if blob in found}
    parts = (
        (CONTENT_WEIGHT, content),
        (PATH_WEIGHT, word_scores(code, code.path, query)),
        (NAMES_WEIGHT, word_scores(code, code.names, query)),
        (GRAPH_WEIGHT, rank(code, dict(best(found)[:SEEDS_MAX]))),
        (HISTORY_WEIGHT, {path: score for path, score in changed.items() if path in there}),
    )
    total: defaultdict[str, float] = defaultdict(float)
    for weight, scores in parts:
        top = max(scores.values(), default=0.0)
        for path, score in scores.items():
            total[path] += weight * score / top if top else 0.0
    return best(total)


def affordable(ranked: Iterable[tuple[str, float]], sizes: Mapping[str, int]) -> list[str]:
    """Files by score less the price of the tokens that it takes to show each (see decision 20)."""
    worth = {path: round(score - TOKEN_PRICE * sizes[path], 9) for path, score in ranked}
    return sorted(worth, key=lambda path: (-worth[path], path))


def word_scores(code: CodeMap, words: Words, query: str) -> dict[str, float]:
    """BM25 of the query against the files' paths or names alone, by path."""
    documents: defaultdict[int, Counter[str]] = defaultdict(Counter)
    frequency = {}
    for word in emphasis(query):
        found = words.files(word)
        frequency[word] = len(set(found))
        for number in found:
            documents[number][word] += 1
    frequency = {word: rows for word, rows in frequency.items() if rows}
    lengths = {number: words.lengths[number] for number in documents}
    scores = bm25(frequency, documents, total=len(code.paths), lengths=lengths)
    return {code.paths[number]: score for number, score in scores.items()}


def outline(
    path: str,
    text: str,
    query: str = "",
    *,
    known: Defining | None = None,
    lines_max: int = OUTLINE_LINES_MAX,
) -> str:
    """The lines of a file that define something, those the query names first chosen, in file order.

    A line is `number: text`. A file without definitions shows its first lines. What is `known`
    of this very text spares a look for them.
    """
    lines = text[:FILE_CHARS_MAX].splitlines()
    found = known or defining(path, text)
    numbers = found.lines or range(1, min(len(lines), 3) + 1)
    wanted = set(terms(query))
    scored = sorted(
        numbers,
        key=lambda number: (-len(wanted.intersection(terms(lines[number - 1]))), number),
    )
    chosen = sorted(scored[:lines_max])
    shown = [f"{number}: {lines[number - 1].rstrip()[:160]}" for number in chosen]
    more = len(numbers) - len(chosen)
    return "\n".join([*shown, *([f"[… {more} more definitions]"] if more > 0 else [])])


def defining(path: str, text: str, known: Defining | None = None) -> Defining:
    """The lines of a file that define something: those `known`, if they were found in this text."""
    how, text = (DEFINING, path.rpartition(".")[2], reads(path)), text[:FILE_CHARS_MAX]
    check = crc32(f"{how}{text}".encode(errors="replace"))
    if known is not None and known.check == check:
        return known
    return Defining(lines=tuple(_defining(path, text)), check=check)


def encode_facts(facts: Facts) -> bytes:
    return msgspec.msgpack.encode(facts)


def decode_facts(content: bytes, part: type[D]) -> D | None:
    """Facts, or that part of them; None for what another way of scanning found."""
    facts = msgspec.msgpack.decode(content, type=part)
    return facts if facts.scanning == SCANNING else None


def decode_defining(facts: bytes) -> Defining | None:
    """The defining lines that are kept beside facts."""
    kept = _parts(facts).get("defining")
    return None if kept is None else msgspec.msgpack.decode(kept, type=Defining)


def beside(facts: bytes, lines: Defining) -> bytes:
    """Facts with defining lines beside them; whoever reads facts alone sees no difference."""
    return msgspec.msgpack.encode({**_parts(facts), "defining": lines})


def encode_map(code: CodeMap) -> bytes:
    return msgspec.msgpack.encode(code)


def decode_map(content: bytes) -> CodeMap | None:
    """The map; None for one that another version of this program made."""
    try:
        code = msgspec.msgpack.decode(content, type=CodeMap)
    except msgspec.ValidationError:
        return None
    return code if code.scanning == SCANNING else None


def _parts(facts: bytes) -> dict[str, msgspec.Raw]:
    return msgspec.msgpack.decode(facts, type=dict[str, msgspec.Raw])


def _roots(text: str, cuts: Cuts | None = None) -> list[str]:
    return [root(term) for term in terms(text, cuts)]


def _words(texts: Iterable[list[str]]) -> Words:
    files: defaultdict[str, list[str]] = defaultdict(list)
    lengths = []
    for number, found in enumerate(texts):
        lengths.append(len(found))
        shown = str(number)
        for word in found:
            files[word].append(shown)
    lines = (f"{word} {' '.join(numbers)}\n" for word, numbers in files.items())
    return Words(lines="\n" + "".join(lines), lengths=tuple(lengths))


def _defining(path: str, text: str) -> list[int]:
    if path.endswith(PYTHON):
        lines = outlined(text)
        return _matching(DEFINED, text) if lines is None else lines
    parsed = definitions(path, text)
    return _matching(_OTHER, text) if parsed is None else sorted({line for line, _ in parsed})


def _matching(pattern: re.Pattern[str], text: str) -> list[int]:
    found: list[int] = []
    line, at, text = 0, 0, "\n" + text
    for match in pattern.finditer(text):
        start = match.start(1)
        line += text.count("\n", at, start)
        at = start
        found.append(line)
    return found


def _telling(name: str) -> float:
    """Compound names say more about a place than `run`; private ones are rarely meant elsewhere."""
    compound = "_" in name.strip("_") or (name != name.lower() and name != name.upper())
    return (3.0 if compound and len(name) >= 8 else 1.0) * (0.1 if name.startswith("_") else 1.0)


def _forward(
    mentions: Mapping[str, int], useful: Mapping[str, tuple[float, list[int]]]
) -> list[tuple[int, float]]:
    """The files that names lead to most; one more than are kept, since a file finds itself."""
    found: dict[int, float] = {}
    for name in filter(useful.__contains__, mentions):
        telling, targets = useful[name]
        share = sqrt(mentions[name]) * telling
        for target in targets:  # most are new, which takes a defaultdict three times as long
            found[target] = found.get(target, 0.0) + share
    return _strongest(found, LINKS_PER_FILE_MAX + 1)


def _strongest(
    found: Mapping[int, float], most: int = LINKS_PER_FILE_MAX
) -> list[tuple[int, float]]:
    links = list(found.items())
    if len(links) > most:  # before they are sorted: most files have many more
        least = sorted(found.values())[-most]
        links = [link for link in links if link[1] >= least]
    links.sort(key=lambda link: (-link[1], link[0]))
    return links[:most]


def _shares(links: Sequence[tuple[int, float]]) -> bytes:
    total = sum(weight for _, weight in links)
    shares = [(number, round(weight / total, 6)) for number, weight in links]
    return pack("<" + "Id" * len(shares), *chain.from_iterable(shares))
