"""What is left of a text that is too long: its head, its ends, an extract; each says so.

Pure and deterministic. A `fits` predicate decides, so the caller's counter and headings count.
Every result that is not empty fits; an empty one means that nothing of the text would.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

from holdfast.context.words import terms

PIECE_CHARS_MAX = 300
WORD_CHARS_MAX = 40
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+|(?<=[。！？])")
# Joiners, later letters of a Hangul syllable, skin tones, tags of flags.
_JOINS = re.compile("[\u200c\u200d\u1160-\u11ff\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")

Fits = Callable[[str], bool]


def head_only(text: str, fits: Fits) -> str:
    """As many first lines as fit, and a line that counts the rest."""
    lines = text.splitlines()

    def cut(keep: int) -> str:
        return "\n".join([*lines[:keep], f"[… {len(lines) - keep} more lines left out]"])

    keep = _most(len(lines), lambda keep: fits(cut(keep)))
    return cut(keep) if keep else ""


def head_and_tail(text: str, fits: Fits) -> str:
    """As many lines as fit, two of three from the head, the rest from the end."""
    lines = [piece for line in text.splitlines() for piece in _wrapped(line)]

    def cut(keep: int) -> str:
        head = keep - keep // 3
        gap = f"[… {len(lines) - keep} of {len(lines)} lines left out here …]"
        return "\n".join([*lines[:head], gap, *(lines[-(keep // 3) :] if keep >= 3 else [])])

    keep = _most(len(lines) - 1, lambda keep: fits(cut(keep)))
    return cut(keep) if keep else ""


def first_words(text: str, fits: Fits) -> str:
    """As many first characters as fit, and a line that counts the rest: for an endless first line.

    The cut is at a word's end, or between two graphemes of a word over `WORD_CHARS_MAX`.
    """

    def cut(keep: int) -> str:
        shown = text[:keep].rstrip()
        return f"{shown}\n[… {len(text) - len(shown)} more characters left out]" if shown else ""

    keep = _most(len(text) - 1, lambda keep: fits(cut(keep)))
    while keep and (_within_grapheme(text, keep) or not fits(cut(keep))):
        keep -= 1
    blanks = (at for at in range(keep, max(0, keep - WORD_CHARS_MAX), -1) if text[at].isspace())
    word = cut(next(blanks, 0))
    return word if word and fits(word) else cut(keep)


def summary(text: str, query: str, fits: Fits, *, whole: str = "") -> str:
    """An extract: the sentences closest to the query and to the text itself, in their order."""
    sentences = [
        piece for part in _SENTENCE.split(text) if part.strip() for piece in _wrapped(part.strip())
    ]
    ranked = _ranked(sentences, set(terms(query)))
    where = f"; the whole is {whole}" if whole else ""

    def extract(keep: int) -> str:
        title = f"[summary: {keep} of {len(sentences)} sentences, extracted{where}]"
        return "\n".join([title, *(sentences[number] for number in sorted(ranked[:keep]))])

    keep = _most(len(sentences), lambda keep: fits(extract(keep)))
    return extract(keep) if keep else ""


def _within_grapheme(text: str, at: int) -> bool:
    """Whether what is seen as one character would be cut: most of UAX 29, without its tables."""
    before, here = text[at - 1], text[at]
    if "\U0001f1e6" <= here <= "\U0001f1ff":  # a flag is two of these
        letters = re.search(r"[\U0001f1e6-\U0001f1ff]*\Z", text[:at])
        return letters is not None and len(letters[0]) % 2 == 1
    return (
        before + here == "\r\n"
        or before == "\u200d"
        or unicodedata.category(here).startswith("M")
        or _JOINS.match(here) is not None
    )


def _ranked(sentences: Sequence[str], wanted: set[str]) -> list[int]:
    """Sentence numbers, best first: words of the query count most, then words the text repeats."""
    cut = [set(terms(sentence)) for sentence in sentences]
    common = Counter(term for found in cut for term in found)

    def worth(number: int) -> float:
        found = cut[number]
        central = sum(common[term] for term in found) / (1 + len(found))
        return 3.0 * len(found & wanted) + central / len(sentences) + (0.5 if number == 0 else 0.0)

    return sorted(range(len(sentences)), key=lambda number: (-round(worth(number), 9), number))


def _wrapped(line: str) -> list[str]:
    """A line in pieces that are short enough to choose from."""
    if len(line) <= PIECE_CHARS_MAX:
        return [line]
    return [line[at : at + PIECE_CHARS_MAX] for at in range(0, len(line), PIECE_CHARS_MAX)]


def _most(limit: int, works: Callable[[int], bool]) -> int:
    """The largest number up to `limit` that works, supposing that fewer work if more do.

    It gallops first: what is tried stays near what fits, however long the whole is.
    """
    low, step = 0, 1
    while low + step <= limit and works(low + step):
        low, step = low + step, step * 2
    high = max(low, min(limit, low + step - 1))
    while low < high:
        middle = (low + high + 1) // 2
        if works(middle):
            low = middle
        else:
            high = middle - 1
    return low
