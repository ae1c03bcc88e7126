"""How text is cut into terms for retrieval: identifiers into their parts, CJK into n-grams.

Owns the one cutter that queries and documents share. It deliberately knows no language: the only
folding in an index is case and the English plural (the S-stemmer of Harman 1991). Where files are
looked for, terms of one `root` are one: `forms` spells them, so that an index need not know.
Invariants: the same text gives the same terms on every machine; a term holds only lower-case
letters, digits and `_`; every form of a root has that root.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache, lru_cache

TERM_CHARS_MAX = 64
TOKENS_MAX = 20_000
ROOT_CHARS_MIN = 5
CUTS_MAX = 200_000
_CJK = ("\u3040-\u30ff", "\u3400-\u4dbf", "\u4e00-\u9fff", "\uac00-\ud7af", "\uf900-\ufaff")
# What is no word in ASCII as a blank; bytes of other signs as they are.
_APART = bytes(
    byte if byte > 127 or chr(byte).isalnum() or chr(byte) == "_" else 32 for byte in range(256)
)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")

# Words too common in English to say what a text is about.
_EMPTY = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by can do for from has have if in into is it its no not of on or"
        " so that the their then there these this to use was we when which will with you",
    )
)


def terms(text: str, cuts: Mapping[str, str] | None = None) -> list[str]:
    """The terms of a text in order, repeated as often as they occur."""
    cut = _known_cut if cuts is None else cuts.__getitem__
    return " ".join(map(cut, _token().findall(text))).split()


def tokens(text: str) -> Counter[str]:
    """How often each word, identifier or CJK run occurs, before it is cut into terms."""
    apart = text.encode("utf-8", "surrogatepass").translate(_APART)
    counted = Counter(apart.decode("utf-8", "surrogatepass").split())
    if text.isascii():
        return counted
    each: Counter[str] = Counter()
    for word, times in counted.items():
        for token in (word,) if word.isascii() else _token().findall(word):
            each[token] += times
    return each


class Cuts(dict[str, str]):
    """How tokens are cut, remembered by who cuts many files: most have been seen before.

    Forgets all of it at `CUTS_MAX` tokens.
    """

    def __missing__(self, token: str) -> str:
        if len(self) >= CUTS_MAX:
            self.clear()
        cut = self[token] = _cut(token)
        return cut


def weighed(counted: Mapping[str, int], cuts: Cuts | None = None) -> list[str]:
    """The terms of counted tokens as they are indexed: an entry is the terms of one token.

    A token is there once, from 3 occurrences on twice, from 9 on three times: more hardly raise
    BM25, and each costs room in the index and time in a search. A term that many identifiers share
    so weighs more than one that a single identifier repeats.
    """
    often = [token for token, times in counted.items() if times >= 3]
    most = [token for token in often if counted[token] >= 9]
    cut = _cut if cuts is None else cuts.__getitem__
    return list(map(cut, [*counted, *often, *most][:TOKENS_MAX]))


def _cut(token: str) -> str:
    """`parseHTTPBody` → its parts and itself; a CJK run → its bigrams and trigrams; by spaces."""
    if token.isalpha() and token.islower() and token.isascii():
        return "" if token in _EMPTY or not 1 < len(token) <= TERM_CHARS_MAX else stem(token)
    if not token.isascii() and any(signs[0] <= token[0] <= signs[2] for signs in _CJK):
        if len(token) == 1:
            return token
        return " ".join(
            token[start : start + size] for size in (2, 3) for start in range(len(token) - size + 1)
        )
    parts = " ".join(_PART.findall(token)).lower().split()
    if len(parts) > 1:
        parts.append("".join(parts))
    return " ".join(
        [stem(part) for part in parts if part not in _EMPTY and 1 < len(part) <= TERM_CHARS_MAX]
    )


_known_cut = lru_cache(maxsize=100_000)(_cut)


@cache
def _token() -> re.Pattern[str]:
    """A word, identifier or CJK run. Made when it is asked for: its sets cost every start 2 ms."""
    signs = "".join(_CJK)
    return re.compile(rf"[{signs}]+|[^\W{signs}]+")


def stem(word: str) -> str:
    """The English plural folded; everything else as it is."""
    if len(word) < 4 or not word.isascii() or word[-1] != "s":
        return word
    if word.endswith("ies"):
        return word if word.endswith(("eies", "aies")) else word[:-3] + "y"
    if word.endswith("es"):
        return word if word.endswith(("aes", "ees", "oes")) else word[:-1]
    return word if word.endswith(("us", "ss")) else word[:-1]


@lru_cache(maxsize=100_000)
def root(term: str) -> str:
    """What `opened`, `opening` and `open` have in common; everything else as it is."""
    if len(term) < ROOT_CHARS_MIN or not (term.isascii() and term.isalpha()):
        return term
    for ending in ("ing", "ed"):
        rest = term.removesuffix(ending)
        if rest != term and len(rest) > 2 and rest[-1] != "e":  # agreed and seeing stay as they are
            double = len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz"
            term = rest[:-1] if double else rest
            break
    return term[:-1] if len(term) > 3 and term[-1] == "e" else term


def forms(root_: str) -> list[str]:
    """Every term that has a root."""
    last = root_[-1:]
    spelled = [root_ + end for end in ("", "e", "ed", "ing", f"{last}ed", f"{last}ing")]
    return [term for term in spelled if root(term) == root_]
