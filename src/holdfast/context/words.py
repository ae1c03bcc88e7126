"""How text is cut into terms for retrieval: identifiers into their parts, CJK into n-grams.

Owns the one cutter that queries and documents share. It deliberately knows no language: the only
folding is case and the English plural (the S-stemmer of Harman 1991). Invariants: the same text
gives the same terms on every machine; a term holds only lower-case letters, digits and `_`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import lru_cache

TERM_CHARS_MAX = 64
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")
_ASCII_TOKEN = re.compile(r"\w+", re.ASCII)
_IS_CJK = re.compile(rf"[{_CJK}]")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")

# Words too common in English to say what a text is about.
_EMPTY = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by can do for from has have if in into is it its no not of on or"
        " so that the their then there these this to use was we when which will with you",
    )
)


def terms(text: str) -> list[str]:
    """The terms of a text in order, repeated as often as they occur."""
    found: list[str] = []
    for token in _TOKEN.findall(text):
        found.extend(_cut(token))
    return found


def count_terms(text: str) -> dict[str, int]:
    """How often each term occurs; faster than `terms` for long texts, since tokens repeat."""
    return fold(tokens(text))


def tokens(text: str) -> Counter[str]:
    """How often each word, identifier or CJK run occurs, before it is cut into terms."""
    return Counter((_ASCII_TOKEN if text.isascii() else _TOKEN).findall(text))


def fold(counted: Mapping[str, int]) -> dict[str, int]:
    """Counted tokens as counted terms."""
    found: defaultdict[str, int] = defaultdict(int)
    for token, times in counted.items():
        for term in _cut(token):
            found[term] += times
    return dict(found)


@lru_cache(maxsize=200_000)
def _cut(token: str) -> tuple[str, ...]:
    """`parseHTTPBody` → its parts and itself; a CJK run → its bigrams and trigrams."""
    if not token.isascii() and _IS_CJK.match(token):
        if len(token) == 1:
            return (token,)
        return tuple(
            token[start : start + size] for size in (2, 3) for start in range(len(token) - size + 1)
        )
    parts = [part.lower() for part in _PART.findall(token)]
    if len(parts) > 1:
        parts.append("".join(parts))
    return tuple(
        stem(part) for part in parts if part not in _EMPTY and 1 < len(part) <= TERM_CHARS_MAX
    )


def stem(word: str) -> str:
    """The English plural folded; everything else as it is."""
    if len(word) < 4 or not word.isascii() or word[-1] != "s":
        return word
    if word.endswith("ies"):
        return word if word.endswith(("eies", "aies")) else word[:-3] + "y"
    if word.endswith("es"):
        return word if word.endswith(("aes", "ees", "oes")) else word[:-1]
    return word if word.endswith(("us", "ss")) else word[:-1]
