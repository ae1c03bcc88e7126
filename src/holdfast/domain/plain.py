"""Text from outside, made safe to show: on a terminal, and in a message that `git log` prints.

Owns which characters are hostile. Does not own where text is shown, nor how it looks there.
"""

from __future__ import annotations

import re

# C0 and C1 controls except newline and tab, DEL, and the bidirectional and line-separator marks.
_HOSTILE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Text that is safe on a terminal: hostile characters become a visible `\\xNN` or `\\uNNNN`."""
    return _HOSTILE.sub(_visible, text)


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
