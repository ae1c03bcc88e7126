"""What a Python file defines: what `ast` finds, though hardly a file is parsed for it.

Owns the meaning of the word. A file *defines* each function and class in it, wherever it stands,
and each name that a line begins with, at its very start, to bind it: `name = …` or `name: …`. Of
`a = b = c.d = …` these are `a` and `b`. A line after one that ends in a backslash binds nothing.
`_parsed` finds this in the tree. `_read` finds the same in a twentieth of the time, or says that it
is not sure, and then the tree decides. A file that does not parse is only read.

Why `_read` is right about a file that parses: one expression takes out all strings that may go on
over several lines, reading strings and comments from the start as Python does. What is left begins
each line in code, where `def` and `class` begin nothing but a definition. `name =` may stand in
brackets, too, behind a sign or a keyword that wants more: then it is not sure. At the start of a
statement it stands behind the end of another, and what may end one stands before no name in
brackets.

Deliberately not here: a field of an f-string that holds quotes of the string's own kind, as Python
has allowed since 3.12. Strings are read as 3.11 reads them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from keyword import kwlist

PYTHON = (".py", ".pyi")
_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_KEYWORDS = frozenset(kwlist)
_ENDING = frozenset({"None", "True", "False", "pass", "break", "continue", "return", "raise"})

# What these take they never give back: a line would cost three times as much, and a hostile one any
# time. Where they can they begin with a newline: a literal is found faster than a line's start. A
# group is taken as `(?>(…)*)`, since `(…)*+` goes wrong before Python 3.11.5.
_ONE_LINE = r""""(?!"")(?>(?:[^"\\\n]++|\\[^\n])*)"|'(?!'')(?>(?:[^'\\\n]++|\\[^\n])*)'"""
_SEVERAL = "|".join(
    (
        r'"""(?>(?:[^"\\]++|\\.|"(?!""))*)"""|"(?>(?:[^"\\\n]++|\\.)*)"',
        r"'''(?>(?:[^'\\]++|\\.|'(?!''))*)'''|'(?>(?:[^'\\\n]++|\\.)*)'",
    )
)
_CODE = re.compile(rf"""((?>(?:[^#"'\\]++|\\.|#[^\n]*+|{_ONE_LINE})*))(?:{_SEVERAL})?""", re.DOTALL)
_BARE = re.compile(r"""[^#"'\\\n]*+\Z""")
_JOINED = re.compile(r"\\\n[ \t\f]*+(?:def|class|async)\b")
_COMMENTED = re.compile(rf"""((?>(?:[^#"']++|{_ONE_LINE})*))#""")
_BLANKS = r"(?>(?:[ \t\f]++|\\\n)*)"
_BLANK = r"(?>(?:[ \t\f]++|\\\n)+)"
# Letters, digits and what is not ASCII; told by what it is not, which takes a tenth to make.
_NAME = r"([^\x00-@\[-^`{-\x7f][^\x00-/:-@\[-^`{-\x7f]*+)"
DEFINED = re.compile(rf"\n[ \t\f]*+(?:def|class|async{_BLANK}def){_BLANK}{_NAME}")
_BOUND = re.compile(rf"\n{_NAME}{_BLANKS}[:=](?!=)")
_BOUND_TOO = re.compile(rf"{_BLANKS}{_NAME}{_BLANKS}=(?!=)")
_BOUND_IN_BRACKETS = re.compile(rf"(?>(?:[\s(\\]|#.*+)*){_NAME}(?>(?:[\s)\\]|#.*+)*)=(?!=)")
_WORD_CHARS_MAX = 80  # a longer one is not sure to be one
_NUMBER = r"(?<!\w)(?:[0-9][0-9_]*+\.?|0[xo][0-9A-Fa-f]++)"
_ENDED = re.compile(rf"""(?:[)\]}}"';]|\.\.\.|import \*|{_NUMBER}|(?<!\w)([A-Za-z_]\w*+))\Z""")


def defined(text: str) -> set[str]:
    """The names that a file defines."""
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    names, sure = _read(text)
    parsed = None if sure else _parsed(text)
    return names if parsed is None else parsed


def outlined(text: str) -> list[int] | None:
    """The lines that begin a function or class outside of functions; None if it does not parse."""
    tree = _tree(text)
    if tree is None:
        return None
    found: list[int] = []
    bodies = [tree.body]
    for body in bodies:
        for node in body:
            if isinstance(node, _DEFINING):
                found.append(node.lineno)
            if isinstance(node, ast.ClassDef):
                bodies.append(node.body)
    return sorted(found)


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _parsed(text: str) -> set[str] | None:
    """What a file defines by its tree; None if it does not parse."""
    tree = _tree(text)
    if tree is None:
        return None
    names = {node.name for node in _statements(tree) if isinstance(node, _DEFINING)}
    before = ["", *text.split("\n")]
    for node in tree.body:
        targets: list[ast.expr] = []
        match node:
            case ast.Assign():
                targets = node.targets
            case ast.AnnAssign(simple=1):
                targets = [node.target]
            case _:
                continue
        at = targets[0]
        joined = before[at.lineno - 1].endswith("\\")
        if at.lineno == node.lineno and at.col_offset == 0 and not joined:
            for target in targets:
                if not isinstance(target, ast.Name):
                    break
                names.add(target.id)
    return names


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Everything that stands in the bodies of a node, at any depth."""
    pending = [node]
    while pending:
        node = pending.pop()
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            below = getattr(node, field, [])
            yield from below
            pending += below


def _read(text: str) -> tuple[set[str], bool]:
    """What a file defines by its lines, and whether the tree would say the same."""
    code = _code(text)
    names = set(DEFINED.findall(code))
    sure = _JOINED.search(code) is None
    for found in _BOUND.finditer(code):
        start, end = found.span()
        if found[1] in _KEYWORDS or code[start - 1 : start] == "\\":
            continue
        names.add(found[1])
        sure = sure and _begins(code, start)
        if code[end - 1] == "=":
            while too := _BOUND_TOO.match(code, end):
                names.add(too[1])
                end = too.end()
            sure = sure and not _BOUND_IN_BRACKETS.match(code, end)
    return names, sure and "".join(names).isascii()  # the parser normalises other names


def _code(text: str) -> str:
    """A file after a newline, without texts in triple quotes.

    It is split at the quotes where they surely are what they seem, and else read from the start.
    """
    pieces = text.split('"""')
    code = "\n" + '"" '.join(pieces[::2])
    plain = "'''" not in code and all(map(_opens, pieces[:-1:2]))
    if plain and not any(piece.endswith("\\") for piece in pieces[1::2]):
        return code
    return "\n" + '"" '.join(_CODE.findall(text))


def _opens(before: str) -> bool:
    """Whether a triple quote behind this code surely begins a text."""
    end = before.rfind("\n")
    return before[end - 1 : end] != "\\" and _BARE.match(before, end + 1) is not None


def _begins(code: str, end: int) -> bool:
    """Whether the line after the newline at `end` surely begins a statement."""
    while end > 0:
        begin = code.rfind("\n", 0, end) + 1
        line = code[begin:end]
        if "#" in line:
            if code[begin - 2 : begin - 1] == "\\":
                return False
            commented = _COMMENTED.match(line)
            line = commented[1] if commented else line
        if line := line.strip():
            found = _ENDED.search(line, len(line) - _WORD_CHARS_MAX)
            return found is not None and (found[1] in _ENDING or found[1] not in _KEYWORDS)
        end = begin - 1
    return True
