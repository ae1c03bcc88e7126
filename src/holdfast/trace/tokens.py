"""Counting tokens without a tokenizer, a little too high rather than too low.

Owns the estimate: pieces as byte-pair encoders cut them, times 1.1. Does not own any vocabulary.
Measured against real tokenizers by the tests; characters divided by four would be off by -53 %.
"""

from __future__ import annotations

import math
import re

MARGIN = 1.1

# Words with their leading space, single digits (as the strictest encoders have them), runs of space
# or of one symbol, single other characters.
_PIECE = re.compile(r" ?[A-Z]?[a-z]+| ?[A-Z]+|[0-9]|\s+|([^\sA-Za-z0-9])\1*|.", re.DOTALL)
_LETTERS_PER_TOKEN = 6
_SYMBOLS_PER_TOKEN = 8
_IDEOGRAPHS = 0x2E80  # from here on most characters are words of their own


def count(text: str) -> int:
    """About how many tokens a model would see; rounded up, 0 only for an empty text."""
    return math.ceil(pieces(text) * MARGIN)


def pieces(text: str) -> int:
    """The pieces alone. Lines with their line ends add up to at least the whole."""
    total = 0
    for match in _PIECE.finditer(text):
        piece = match.group()
        size = len(piece.lstrip(" "))
        if not piece.isascii():
            # Most encoders have one to one and a half tokens for an ideograph.
            total += math.ceil(size * 1.5) if ord(piece[-1]) < _IDEOGRAPHS else size + size // 2
        elif piece[-1].isalpha():
            total += -(-size // _LETTERS_PER_TOKEN)
        else:
            total += -(-size // _SYMBOLS_PER_TOKEN) or 1
    return total
