"""What a Python file defines: read by expressions where they cannot err, by the tree elsewhere."""

import os
import re
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.context import python
from holdfast.context.python import _parsed, _read, defined, outlined

pytestmark = pytest.mark.filterwarnings("ignore")  # of strange escapes in the texts of others

# Texts that are easily read wrong, and what they define.
TRAPS = {
    "a function and a class, wherever they stand": (
        "if x:\n\tclass Pool:\n\t\tasync def close(self):\n\t\t\tdef inner(): ...\n",
        "Pool close inner",
    ),
    "of a chain the plain names before any other": ("one = two = x.y = three = 1\n", "one two"),
    "a declared name": ("one: int\ntwo: int = 3\nx.three: int\n(four): int\n", "one two"),
    "no name of an inner line, of an attribute, or after a semicolon": (
        "if x:\n    one = 1\nx.two = 2\nthree[0] = 3\nx = 1; four = 4\nfive == 5\nsix += 6\n",
        "x",
    ),
    "no keyword": ("try:\n    pass\nfinally:\n    pass\n", ""),
    "not what a text in triple quotes says": (
        "one = \"\"\"\ndef two(): pass\n\"\"\"\nx = '''\nclass Three: ...\nfour = 4\n'''\n",
        "one x",
    ),
    "not what a text says that holds the other quotes": (
        "'''\n\"\"\"\ndef one(): pass\n'''\ndef two(): pass\n\"\"\"'''\"\"\"\n",
        "two",
    ),
    "an escaped quote does not end a text": ('x = """\\"""\none = 1\n"""\ntwo = 2\n', "x two"),
    "a quote within a comment begins none": ('# """\none = 1  # it\'s """\ntwo = 2\n', "one two"),
    "a quote within a string begins none": ('x = \'"""\'\none = 1\ny = \'"""\'\n', "x one y"),
    "nor after an escaped one": ('x = \'\\\'"""\'\none = 1\ny = \'"""\'\n', "x one y"),
    "a string goes on after a backslash": ("x = 'a\\\ndef one(): ...\\\ntwo = 2'\n", "x"),
    "a triple quote on a line that goes on": (
        'x = \'a\\\n"""\'\none = 1\ny = \'"""\'\n',
        "x one y",
    ),
    "a line goes on after a backslash": (
        "async \\\ndef one(): ...\ndef \\\ntwo(): ...\n\\\nclass Three: ...\nx = \\\n1\n",
        "one two Three x",
    ),
    "a comment does not": ("# C:\\\ndef one(): ...\n", "one"),
    "no name after a backslash": ("x = 1; \\\none = 2\n# C:\\\ntwo = 2\n", "x"),
    "a chain that goes on": ("one = \\\ntwo = \\\n3\n", "one two"),
    "a chain through brackets": ("one = (\n  two  # 2\n) = 3\n", "one two"),
    "no argument": ("call(\none=1,\ntwo=2)\n", ""),
    "no argument after a comment": ("call(x,  # nothing ends here: x\n\n# x\none=1)\n", ""),
    "no argument after a string with a hash": ("call('# x',\none=1)\n", ""),
    "no key and no part of a slice": ("x = {\none: 1, 2 +\ntwo: 2}\ny[\nthree: 4]\n", "x"),
    "no parameter": ("def one(\ntwo: int = 2,\nthree=3): ...\nx = (lambda\nfour: 4)\n", "one x"),
    "no operand after a keyword": ("{1 if 2 else\none: 1, not\ntwo: 2, 1or\nthree: 3}\n", ""),
    "a name after a comma": ("x = 1,\none = 1\n", "x one"),
    "a name after whatever ends a line": (
        "from x import *\none = 1.\ntwo = 0x1f\nthree = ...\nfour = None\nfive = y;\nsix = y",
        "one two three four five six",
    ),
    "a name as the parser spells it": (
        "def nai\u0308ve(): ...\n\ufb01x = 1\n",
        "na\u00efve fix",
    ),
    "lines that end otherwise": ("def one():\r\n    ...\r\n\rtwo = 2\r", "one two"),
    "a mark at the start": ("\ufeffone = 1\n", "one"),
    "a form feed": ("\f\nclass One:\n\f  def\ftwo(self): ...\n\fthree = 3\n", "One two"),
    "nothing": ("", ""),
}
SURE = {
    "of a chain the plain names before any other",
    "not what a text in triple quotes says",
    "a quote within a comment begins none",
    "a name after whatever ends a line",
}


def misread(text: str) -> bool:
    """Whether reading is sure of something that the tree does not find."""
    parsed, (read, sure) = _parsed(text), _read(text)
    return sure and parsed is not None and read != parsed


@pytest.mark.parametrize("trap", TRAPS)
def test_a_text_that_is_easily_read_wrong_defines_what_its_tree_says(trap: str) -> None:
    text, names = TRAPS[trap]
    assert defined(text) == set(names.split())
    if "\r" not in text and "\ufeff" not in text:
        assert _parsed(text) == set(names.split()), "it parses"
        assert not misread(text)
    if trap in SURE:
        assert _read(text)[1], "nothing here needs the tree"


LAX = {
    "_ENDED": re.compile("()"),
    "_COMMENTED": re.compile(r"()\A\Z"),
    "_KEYWORDS": frozenset({"finally"}),
    "_BARE": re.compile(""),
    "_CODE": re.compile(r"(.*+)", re.DOTALL),
    "_JOINED": re.compile(r"\A\Z"),
    "_BOUND_TOO": re.compile(r"\A\Z"),
    "_BOUND_IN_BRACKETS": re.compile(r"\A\Z"),
    "_begins": lambda code, end: True,
    "_opens": lambda before: True,
}


@pytest.mark.parametrize("part", LAX)
def test_each_part_of_the_reading_is_needed_by_some_text(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python, part, LAX[part])
    assert any(misread(text) for text, _ in TRAPS.values())


def test_what_does_not_parse_is_only_read() -> None:
    assert defined("def broken(:\nclass Fine") == {"broken", "Fine"}
    assert defined("print 'old'\ndef one(): pass\ncall(\ntwo=2)\n") == {"one", "two"}
    assert defined('def one(): pass\n"""\nnobody ends this') == {"one"}
    assert defined("one = 1\0") == {"one"}
    assert outlined("def broken(:") is None
    assert outlined("class A:\n  def b(): ...\nx = 1\n") == [1, 2]


@pytest.mark.parametrize(
    "piece",
    ['"""', "'''", '\\"""', "'\\\n", '"', "#\\\n", "# #", "\n#", "a =\\\n", "x = (\n", "\n"],
)
def test_a_hostile_file_is_read_in_the_time_of_another(piece: str) -> None:
    """With an expression that gives back, or a look at all lines before each, this takes hours."""
    for end in ("", '\nx = """', "\none = 1"):
        _read(piece * (400_000 // len(piece)) + end)


FILES = os.environ.get("FILES", "")


def test_no_file_is_read_wrong_and_few_are_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    """Our own files and some of Python's, or all below the folder FILES: see `make names`."""
    own = sorted(Path(python.__file__).parents[1].rglob("*.py"))
    others = sorted(Path(FILES or sysconfig.get_path("stdlib")).rglob("*.py"))
    files, chars, parsed, names = 0, 0, 0, 0
    for path in [*own[::12], *others[:: 1 if FILES else 200]]:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        tree = _parsed(text.removeprefix("\ufeff"))
        if tree is not None:
            assert defined(text) == tree, path
            assert not misread(text), path
            files, chars, names = files + 1, chars + len(text), names + len(tree)
            parsed += 0 if _read(text)[1] else len(text)
    told = f"{files} files define {names} names; parsed for it: {parsed / chars:.2%}"
    assert files > 20, told
    assert names > 300, told
    assert FILES or parsed < 0.05 * chars, told
    if FILES:
        with capsys.disabled():
            sys.stdout.write(f"\n0 differences: {told}\n")


STRINGS = [
    *('"a"', "'#'", '"\\""', '\'"""\'', "''", "r'\\''", "\"x\"'y'", "'a\\\nno = 1'"),
    *('"""\ndef no(): pass\n"""', "'''\nno = 1\n'''", '"""\\"""\nclass No: ...\n"""'),
]
OPEN = [
    *("f({}\nno={})", "[{},\n{}]", "{{\nno: {}, {}: 1}}", "f({},  # it's {!r}\n)", "x[{}:\nno:{}]"),
    *("({} if x else\n{})", "({} +\\\n{})", "(lambda no,\nyes: {}, {})"),
]
LINES = [
    *("one = {}", "two: int = {}", "one = two = {}", "one = (two) = {}", "x.one = {}", "{}"),
    *("three =\\\n{}", "class One:\n    {}\n    four = 1", "def two(\nno=1): return {}"),
    *("if x:\n  async def six(): {}\nelse: x = {}", "@{}\ndef five(): ...", "with x: one = {}"),
    *("f({},\nno=2)", "from x import *  # {!r}"),
]
ENDS = ["\n", "\n\n", "  # c\n", "  # it's\n", ' # """\n', ";\n", "\n# c\n", "\n\f\n", " # \\\n"]
VALUES = st.recursive(
    st.sampled_from([*STRINGS, "1", "1.", "x", "None", "..."]),
    lambda inner: st.builds(str.format, st.sampled_from(OPEN), inner, inner),
    max_leaves=4,
)
MODULES = st.lists(
    st.builds(
        lambda line, one, two, end: line.format(one, two) + end,
        st.sampled_from(LINES),
        VALUES,
        VALUES,
        st.sampled_from(ENDS),
    ),
    min_size=1,
    max_size=5,
).map("".join)


@given(MODULES)
def test_a_module_of_traps_defines_what_its_tree_says(text: str) -> None:
    assert not misread(text)
    parsed = _parsed(text)
    assert parsed is None or defined(text) == parsed
