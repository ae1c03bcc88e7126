"""Generated names that must be the same in every program: definitions and inputs.

A definition `x` lives in the namespace of a run under a name made from a hash, so that functions
translated in an earlier turn find it, and no text of a program ever becomes a Python name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256


@lru_cache(maxsize=4096)
def global_name(name: str) -> str:
    return "g" + sha256(name.encode("utf-8", "replace")).hexdigest()[:16]


@lru_cache(maxsize=4096)
def input_name(kind: str, name: str) -> str:
    """The name of `data/x` (kind data) or of `*1` (kind history)."""
    prefix = "d" if kind == "data" else "h"
    return prefix + sha256(name.encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class FnInfo:
    """What is known of a translated function: for names, arity errors and storing as source.

    `text` makes it again, given the locals of `captures` (name in the source → generated name).
    """

    name: str
    arity: int
    rest: bool
    text: str
    captures: dict[str, str]
