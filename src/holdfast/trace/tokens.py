"""Counting tokens without a tokenizer, a little too high rather than too low.

Owns the estimate: pieces as byte-pair encoders cut them, times 1.1. Does not own any vocabulary.
Measured against real tokenizers by the tests; characters divided by four would be off by -53 %.
"""

from __future__ import annotations

import math
import re

MARGIN = 1.1

# Words with their leading space, digits by threes, runs of one symbol, single other characters.
_PIECE = re.compile(r" ?[A-Z]?[a-z]+| ?[A-Z]+|[0-9]{1,3}|\s+|([^\sA-Za-z0-9])\1*|.", re.DOTALL)
_LETTERS_PER_TOKEN = 6
_SYMBOLS_PER_TOKEN = 8


def count(text: str) -> int:
    """About how many tokens a model would see; rounded up, 0 only for an empty text."""
    return math.ceil(pieces(text) * MARGIN)


def pieces(text: str) -> int:
    """The pieces alone. Lines with their line ends add up to at least the whole."""
    total = 0
    for match in _PIECE.finditer(text):
        piece = match.group()
        letters = len(piece.lstrip(" "))
        if not piece.isascii():
            total += letters * 2 if ord(piece[-1]) > 0x2FFF else letters
        elif piece[-1].isalpha():
            total += -(-letters // _LETTERS_PER_TOKEN)
        else:
            total += -(-letters // _SYMBOLS_PER_TOKEN) or 1
    return total
