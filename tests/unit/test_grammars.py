"""Definitions of other languages: by tree-sitter where it is installed, else by a scan."""

import pytest

from holdfast.context import codemap
from holdfast.context.codemap import defines, outline
from holdfast.context.grammars import definitions

SOURCES = {
    "a.go": (
        "package a\n\ntype Pool struct {\n\tn int\n}\n\nfunc (p *Pool) Acquire() int {\n"
        "\tx := 1\n\treturn x\n}\n\nconst Max = 3\n",
        [(3, "Pool"), (7, "Acquire"), (12, "Max")],
    ),
    "a.ts": (
        "export class Pool<T> {\n  acquire(): number { const y = 1; return y }\n}\n"
        "interface Shape { area(): number }\ntype X = string\n"
        "export const connect = async () => {\n  const inner = 1\n}\nenum E { A }\n",
        [
            (1, "Pool"),
            (2, "acquire"),
            (4, "Shape"),
            (4, "area"),
            (5, "X"),
            (6, "connect"),
            (9, "E"),
        ],
    ),
    "a.jsx": (
        "class Pool {\n  acquire() { return 1 }\n}\nfunction go() { function inner() {} }\n",
        [(1, "Pool"), (2, "acquire"), (4, "go")],
    ),
    "a.rs": (
        "pub struct Pool { n: i32 }\nimpl Pool {\n    pub fn acquire(&self) -> i32 { 1 }\n}\n"
        "macro_rules! mac { () => {} }\n",
        [(1, "Pool"), (2, "Pool"), (3, "acquire"), (5, "mac")],
    ),
    "a.java": (
        "package a;\npublic class Pool {\n  int n;\n  public int acquire() { return 1; }\n}\n",
        [(2, "Pool"), (3, "n"), (4, "acquire")],
    ),
    "a.c": (
        "#define MAX 3\nstruct pool { int n; };\nstatic struct pool one;\n"
        "static int *acquire(struct pool *p)\n{\n  int y = 1;\n  return 0;\n}\n",
        [(1, "MAX"), (2, "pool"), (4, "acquire")],
    ),
}


@pytest.mark.parametrize("path", SOURCES)
def test_a_grammar_names_what_a_file_defines_and_nothing_inside_functions(path: str) -> None:
    text, wanted = SOURCES[path]
    assert definitions(path, text) == wanted


def test_a_language_without_a_grammar_or_a_text_without_a_tree_is_left_to_the_scan() -> None:
    assert definitions("a.zig", "pub fn main() void {}") is None
    assert definitions("a.py", "def main(): pass") is None
    assert definitions("a.js", "((((") is None


def test_the_map_reads_methods_that_a_regular_expression_does_not_see(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text, _ = SOURCES["a.ts"]
    assert "acquire" in defines("a.ts", text)
    assert "2:   acquire(): number" in outline("a.ts", text)
    monkeypatch.setattr(codemap, "definitions", lambda path, text: None)
    assert "acquire" not in defines("a.ts", text), "as without the extra"
    assert "Pool" in defines("a.ts", text)
    assert "1: export class Pool" in outline("a.ts", text)


def test_a_deep_and_a_broken_file_are_read_in_bounded_time() -> None:
    deep = "{" * 20_000
    assert definitions("a.js", deep) is None
    broken = "class Pool {\n  acquire( {\n}\nfunction go() {}\n"
    found = definitions("a.js", broken)
    assert found is None or all(isinstance(name, str) for _, name in found)
