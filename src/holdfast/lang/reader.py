"""Source text to forms, each with its place.

Owns the syntax and its refusals. Owns no meaning: names are not looked up here. The reader keeps
its own stack, so nesting costs no Python frames and is bounded by `Limits.nesting`; it stops at
`program_bytes` before it looks at anything. Lines and columns count from 1, in code points.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from typing import Literal, NoReturn

from holdfast.lang.api import LangError, Limits, Value
from holdfast.lang.values import Keyword, keyword, whole

At = tuple[int, int]  # where a form begins and ends, as offsets into the text
Kind = Literal["list", "vector", "map", "set", "fn", "symbol", "value", "regex"]


class Form:
    """One form: `items` for collections, `name` for symbols and regex sources, else `value`.

    `at` are its offsets in the text; `Source.position` turns them into line and column.
    A plain class and not a dataclass: reading makes thousands of them. Never changed once made.
    """

    __slots__ = ("at", "items", "kind", "name", "value")

    def __init__(
        self, kind: Kind, at: At, items: tuple[Form, ...] = (), name: str = "", value: Value = None
    ) -> None:
        self.kind = kind
        self.at = at
        self.items = items
        self.name = name
        self.value = value

    def is_symbol(self, name: str) -> bool:
        return self.kind == "symbol" and self.name == name

    @property
    def word(self) -> str:
        """The name of a keyword, else empty."""
        return str(self.value.name) if type(self.value) is Keyword else ""


_TOKEN = re.compile(
    r"""(?P<skip>[\s,]+|;[^\n]*)
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<regex>\#"(?:[^"\\]|\\.)*")
    |(?P<open>\#\(|\#\{|[(\[{])
    |(?P<close>[)\]}])
    |(?P<special>\#\#[\w-]*)
    |(?P<prefix>\#'|\#_|')
    |(?P<char>\\(?:[A-Za-z0-9]+|.))
    |(?P<word>[^\s,()\[\]{}";`~@^\\\#'][^\s,()\[\]{}";`~@^\\]*)
    |(?P<bad>.)""",
    re.DOTALL | re.VERBOSE,
)
_INTEGER = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)
_FLOAT = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?\Z", re.ASCII)
_NUMERIC = re.compile(r"[+-]?[0-9]", re.ASCII)
_KEYWORD = re.compile(r"[\w\-?!*+<>=$|'#]+\Z")
_SYMBOL = re.compile(r"[\w\-?!*+<>=$|'#%&./]+\Z")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "b": "\b", "f": "\f"}
_CHARS = {
    "newline": "\n", "space": " ", "tab": "\t", "return": "\r", "backspace": "\b", "formfeed": "\f",
}  # fmt: skip
_SPECIALS = {"##Inf": math.inf, "##-Inf": -math.inf, "##NaN": math.nan}
_WORDS: dict[str, Value] = {"nil": None, "true": True, "false": False}
_CLOSER = {"(": ")", "[": "]", "{": "}", "#(": ")", "#{": "}"}
_KINDS: dict[str, Kind] = {"(": "list", "[": "vector", "{": "map", "#(": "fn", "#{": "set"}
_BAD_HINTS = {
    "@": "there is nothing to dereference: values never change",
    "`": "there are no macros, so syntax quote has no use here",
    "~": "there are no macros, so unquote has no use here",
    "^": "metadata is not supported",
    "#": 'known are #{…}, #(…), #"…", #\'name and ##Inf, ##-Inf, ##NaN',
    '"': "the string is never closed",
    "\\": "a character is a backslash and one character, or a name such as \\newline",
}


class Source:
    """A program's text and what errors need of it."""

    def __init__(self, text: str) -> None:
        self.text = whole(text)
        self.starts = [0] + [at + 1 for at, char in enumerate(self.text) if char == "\n"]

    def position(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def line(self, number: int) -> str:
        if not 1 <= number <= len(self.starts):
            return ""
        start = self.starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")[:400]

    def part(self, at: At) -> str:
        """The text of a form."""
        return self.text[slice(*at)]

    def snippet(self, at: At, width: int = 120) -> str:
        """The text of a form, on one line, cut to a width."""
        text = " ".join(self.text[at[0] : min(at[1], at[0] + 4 * width)].split())
        return text if len(text) <= width else text[: width - 1] + "…"

    def locate(self, error: LangError, at: At) -> LangError:
        """Give an error its place, unless it has one already."""
        if not error.line:
            error.line, error.column = self.position(at[0])
            error.source_line = self.line(error.line)
            error.form = error.form or self.snippet(at)
        return error


class _Open:
    """A collection whose closer has not come yet, or a prefix that waits for its form."""

    __slots__ = ("at", "items", "opener")

    def __init__(self, opener: str, at: int) -> None:
        self.opener = opener
        self.at = at
        self.items: list[Form] = []


def read(source: Source, limits: Limits) -> list[Form]:
    """All top-level forms. Raises `LangError` `parse_error` with the place."""
    if len(source.text.encode("utf-8", "replace")) > limits.program_bytes:
        raise LangError(
            "parse_error",
            f"the program is larger than {limits.program_bytes} bytes (program_bytes)",
        )
    return _Reader(source, limits).run()


class _Reader:
    def __init__(self, source: Source, limits: Limits) -> None:
        self.source = source
        self.limits = limits
        self.top: list[Form] = []
        self.stack: list[_Open] = []
        self.names: set[str] = set()
        self.keywords: dict[str, Keyword] = {}

    def run(self) -> list[Form]:
        for found in _TOKEN.finditer(self.source.text):
            kind = found.lastgroup
            if kind == "skip":
                continue
            text, at = found.group(), found.start()
            if kind == "word":
                self.add(self.word(text, at, at + len(text)), at + len(text))
            elif kind == "open" or kind == "prefix":
                self.push(text, at)
            elif kind == "close":
                self.close(text, at)
            else:
                self.add(self.atom(kind or "", text, at), at + len(text))
        if self.stack:
            opened = self.stack[-1]
            collection = opened.opener in _CLOSER
            self.refuse(
                f"{opened.opener} is never closed"
                if collection
                else f"nothing follows {opened.opener}",
                opened.at,
                hint=f"add {_CLOSER[opened.opener]!r}" if collection else "",
            )
        return self.top

    def refuse(
        self, message: str, at: int, *, hint: str = "", code: str = "parse_error"
    ) -> NoReturn:
        line, column = self.source.position(at)
        raise LangError(
            code, message, line=line, column=column, source_line=self.source.line(line), hint=hint
        )

    def push(self, opener: str, at: int) -> None:
        if len(self.stack) >= self.limits.nesting:
            self.refuse(
                f"forms are nested deeper than {self.limits.nesting} (nesting)",
                at,
                hint="name the inner parts with let or defn",
            )
        if opener == "#(" and any(each.opener == "#(" for each in self.stack):
            self.refuse("#() cannot be nested", at, hint="write the inner one as (fn [x] …)")
        self.stack.append(_Open(opener, at))

    def close(self, text: str, at: int) -> None:
        if not self.stack:
            self.refuse(f"{text} closes nothing", at, hint="remove it")
        opened = self.stack[-1]
        want = _CLOSER.get(opened.opener)
        if want != text:
            line, column = self.source.position(opened.at)
            self.refuse(
                f"{text} does not close {opened.opener} opened at {line}:{column}",
                at,
                hint=f"expected {want!r}" if want else "a form is missing before it",
            )
        self.stack.pop()
        self.add(self.collection(opened, at + 1), at + 1)

    def collection(self, opened: _Open, end: int) -> Form:
        kind, items = _KINDS[opened.opener], tuple(opened.items)
        if kind == "list" and not items:
            self.refuse(
                "invalid form: () is not a value", opened.at, hint="write [] for an empty vector"
            )
        if kind == "map" and len(items) % 2:
            self.refuse("a map literal needs an even number of forms", opened.at)
        if kind == "map":
            self.no_duplicates(items[::2], "key")
        elif kind == "set":
            self.no_duplicates(items, "element")
        return Form(kind, (opened.at, end), items)

    def no_duplicates(self, items: tuple[Form, ...], what: str) -> None:
        seen: set[tuple[str, object]] = set()
        for item in items:
            if item.kind != "value" or item.value != item.value:
                continue
            token = (type(item.value).__name__, item.value)
            if token in seen:
                error = LangError("duplicate_key", f"the literal has this {what} twice")
                raise self.source.locate(error, item.at)
            seen.add(token)

    def add(self, form: Form, end: int) -> None:
        while self.stack and self.stack[-1].opener not in _CLOSER:
            prefix = self.stack.pop()
            if prefix.opener == "#_":
                return
            word = Form("symbol", (prefix.at, end), name="quote" if prefix.opener == "'" else "var")
            form = Form("list", (prefix.at, end), (word, form))
        (self.stack[-1].items if self.stack else self.top).append(form)

    def atom(self, kind: str, text: str, at: int) -> Form:
        end = at + len(text)
        if kind == "string":
            return Form("value", (at, end), value=self.string(text[1:-1], at))
        if kind == "regex":
            return Form("regex", (at, end), name=text[2:-1].replace('\\"', '"'))
        if kind == "special":
            if text not in _SPECIALS:
                self.refuse(f"{text} is no value", at, hint="known are ##Inf, ##-Inf and ##NaN")
            return Form("value", (at, end), value=_SPECIALS[text])
        if kind == "char":
            return Form("value", (at, end), value=self.char(text[1:], at))
        return self.refuse(f"cannot read {text!r}", at, hint=_BAD_HINTS.get(text, ""))

    def char(self, name: str, at: int) -> str:
        if len(name) == 1:
            return name
        if name in _CHARS:
            return _CHARS[name]
        if re.fullmatch("u[0-9a-fA-F]{4}", name):
            return chr(int(name[1:], 16))
        return self.refuse(f"\\{name} is no character", at, hint=_BAD_HINTS["\\"])

    def string(self, body: str, at: int) -> str:
        if "\\" not in body:
            return body

        def replace(found: re.Match[str]) -> str:
            name = found[1]
            if name in _ESCAPES:
                return _ESCAPES[name]
            if len(name) == 5:
                return chr(int(name[1:], 16))
            return self.refuse(
                f"unsupported escape \\{name} in a string",
                at + 1 + found.start(),
                hint='known are \\\\ \\" \\n \\t \\r \\b \\f \\uXXXX; write \\\\ for a backslash',
            )

        return whole(_ESCAPE.sub(replace, body))

    def word(self, text: str, at: int, end: int) -> Form:
        if text[0] == ":":
            return Form("value", (at, end), value=self.keyword(text, at))
        if text in _WORDS:
            return Form("value", (at, end), value=_WORDS[text])
        if text not in self.names:
            if _NUMERIC.match(text):
                return Form("value", (at, end), value=self.number(text, at))
            if not _SYMBOL.match(text):
                self.refuse(f"{text} is no name", at)
            self.count(text, at)
        return Form("symbol", (at, end), name=text)

    def keyword(self, text: str, at: int) -> Keyword:
        found = self.keywords.get(text)
        if found is not None:
            return found
        if not _KEYWORD.match(text, 1):
            self.refuse(
                f"{text} is no keyword",
                at,
                hint="a keyword is : and letters, digits or - _ ? ! * + < > =; no namespaces",
            )
        self.count(text, at)
        self.keywords[text] = found = keyword(text[1:])
        return found

    def count(self, name: str, at: int) -> None:
        self.names.add(name)
        if len(self.names) > self.limits.symbols:
            self.refuse(
                f"more than {self.limits.symbols} different names (symbols)",
                at,
                code="symbol_limit_exceeded",
            )

    def number(self, text: str, at: int) -> int | float:
        if _INTEGER.match(text):
            if len(text) - (text[0] in "+-") > self.limits.literal_digits:
                self.refuse(
                    f"an integer literal has more than {self.limits.literal_digits} digits", at
                )
            return int(text)
        if _FLOAT.match(text) and len(text) < 400:
            return float(text)
        return self.refuse(
            f"{text} is no number",
            at,
            hint="numbers are 42, -1.5 or 2.5e10: no ratios, hex digits or N and M suffixes",
        )


def tokens_of(text: str) -> str:
    """Source without comments and with single spaces, to compare and to show."""
    return " ".join(found.group() for found in _TOKEN.finditer(text) if found.lastgroup != "skip")
