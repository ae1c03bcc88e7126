"""Source to code, cached by content.

Owns the pipeline reader → analyser → translator, its time limit and the bounded cache. The cache is
an object that a caller makes or shares; keys are a hash of the text and its limits, so source text
is not kept alive by it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from holdfast.lang.analyser import Analyser, Program
from holdfast.lang.api import LangError, Limits, Tool
from holdfast.lang.forms import HANDLERS
from holdfast.lang.reader import Source, read
from holdfast.lang.translate import translate
from holdfast.lang.writer import Code

CACHE_ENTRIES = 256


Key = tuple[bytes, Limits]


class CodeCache:
    """The last translations, by content. Thread-safe; holds at most `entries`."""

    def __init__(self, entries: int = CACHE_ENTRIES) -> None:
        self.entries = entries
        self._found: OrderedDict[Key, Code] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Code | None:
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
            return found

    def put(self, key: Key, code: Code) -> None:
        with self._lock:
            self._found[key] = code
            while len(self._found) > self.entries:
                self._found.popitem(last=False)


def analyse(
    source: str,
    *,
    limits: Limits = Limits(),  # noqa: B008  frozen
    known: Iterable[str] = (),
    tools: Mapping[str, Tool] | None = None,
    captures: Mapping[str, str] | None = None,
) -> Program:
    """Check a program without running it. Raises `LangError` with every problem found.

    `known` are definitions of earlier turns; `captures` are locals that exist around the source.
    """
    text = Source(source)
    try:
        forms = read(text, limits)
        analyser = Analyser(text, limits, known=known, tools=tools, handlers=HANDLERS)
        return analyser.program(forms, captures or {})
    except RecursionError:
        refused = LangError(
            "parse_error", "the program is nested too deeply", hint="name inner parts with let"
        )
        raise text.locate(refused, (0, len(source))) from None


def compile_source(
    source: str,
    *,
    limits: Limits,
    known: Iterable[str] = (),
    tools: Mapping[str, Tool] | None = None,
    captures: Mapping[str, str] | None = None,
    cache: CodeCache | None = None,
) -> Code:
    """Check and translate, or take the translation of the same content from the cache."""
    names, tool_names = sorted(known), sorted(tools or ())
    content = repr((source, names, tool_names, sorted((captures or {}).items())))
    key = sha256(content.encode("utf-8", "replace")).digest(), limits
    found = cache.get(key) if cache is not None else None
    if found is None:
        found = _compile(source, limits, names, tools or {}, captures or {})
        if cache is not None:
            cache.put(key, found)
    return found


def _compile(
    source: str,
    limits: Limits,
    known: Sequence[str],
    tools: Mapping[str, Tool],
    captures: Mapping[str, str],
) -> Code:
    started = time.monotonic()
    program = analyse(source, limits=limits, known=known, tools=tools, captures=captures)
    _check_time(started, limits)
    try:
        code = translate(program, list(captures.values()))
    except (RecursionError, MemoryError, SyntaxError, OverflowError, ValueError) as error:
        refused = LangError(
            "parse_error",
            f"the program is too complex to translate ({type(error).__name__})",
            hint="split it into functions",
        )
        raise program.source.locate(refused, (0, len(source))) from None
    _check_time(started, limits)
    return code


def _check_time(started: float, limits: Limits) -> None:
    if time.monotonic() - started > limits.compile_s:
        raise LangError("timeout", f"checking the program took longer than {limits.compile_s:g} s")
