"""How many tokens a text is, when no provider has counted it.

Owns one counter that needs no vocabulary, so that it works offline and gives the same number on
every machine, and the choice of the byte-pair one that brings its vocabulary along. The first does
not imitate any provider's tokenizer: callers that need a safe bound multiply by `MARGIN`.

Invariants of the first: the count is never negative, is 0 only for text without visible characters,
and never falls when text is appended.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from holdfast.errors import Refused

MARGIN = 1.1
COUNTERS = ("pieces", "bpe")
VOCABULARY = "o200k_base"

# Byte-pair vocabularies keep common Latin words whole and cut rare ones about every eight letters,
# other alphabets every three; digits go in threes, CJK and symbols one by one, runs of blank
# characters together. A single space belongs to the word after it.
_PIECE = re.compile(
    r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U0001f000-\U0003ffff]"
    r"|[A-Za-z]{1,8}"
    r"|[0-9]{1,3}"
    r"|[^\W\d_]{1,3}"
    r"|\n+"
    r"|[ \t]{2,}"
    r"|\S"
)


def count_tokens(text: str) -> int:
    """Pieces of `text` as a byte-pair tokenizer would roughly cut them, linear in its length."""
    return _PIECE.subn("", text)[1]


def counter(name: str) -> Callable[[str], int]:
    """The one that the setting `token_counter` names; `Refused` if unknown or not installed."""
    if name == "pieces":
        return count_tokens
    if name != "bpe":
        raise Refused(f"there is no token counter {name!r}", hint=", ".join(COUNTERS))
    if find_spec("bpe_openai") is None:
        raise Refused(
            "token_counter 'bpe' needs the package bpe-openai",
            hint="pip install 'holdfast[bpe]', or token_counter = \"pieces\"",
        )
    vocabulary = _vocabulary()
    return lambda text: len(vocabulary.encode_ordinary(text))


@cache
def _vocabulary() -> Any:
    with warnings.catch_warnings():  # it reads its own file by a function that Python deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_module("bpe_openai").get_encoding(VOCABULARY)


def estimate_tokens(*texts: str) -> int:
    """A count for a bill or a budget: the pieces of all `texts` times `MARGIN`, rounded up."""
    return math.ceil(sum(map(count_tokens, texts)) * MARGIN)
