"""Definitions of languages other than Python, by tree-sitter where its grammars are installed.

Owns which grammar reads which file and which of its nodes define a name. It deliberately knows no
more of a language: what is inside a function is not looked at. Without a grammar, or for a text in
which nothing is defined, the answer is None and the caller scans by regular expression.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Any

_GRAMMARS = {
    ".c": ("tree_sitter_c", "language"),
    ".go": ("tree_sitter_go", "language"),
    ".h": ("tree_sitter_c", "language"),
    ".java": ("tree_sitter_java", "language"),
    ".js": ("tree_sitter_javascript", "language"),
    ".jsx": ("tree_sitter_javascript", "language"),
    ".mjs": ("tree_sitter_javascript", "language"),
    ".rs": ("tree_sitter_rust", "language"),
    ".ts": ("tree_sitter_typescript", "language_typescript"),
    ".tsx": ("tree_sitter_typescript", "language_tsx"),
}
# Nodes that define a name and hold nothing more that a map shows.
_LEAVES = frozenset(
    {
        "const_item",
        "const_spec",
        "enum_declaration",
        "enum_item",
        "enum_specifier",
        "function_declaration",
        "function_definition",
        "function_item",
        "function_signature",
        "function_signature_item",
        "generator_function_declaration",
        "macro_definition",
        "method_declaration",
        "method_definition",
        "method_signature",
        "preproc_def",
        "preproc_function_def",
        "static_item",
        "struct_item",
        "struct_specifier",
        "type_alias_declaration",
        "type_definition",
        "type_item",
        "type_spec",
        "variable_declarator",
    }
)
# Nodes that define a name and have members.
_HOLDERS = frozenset(
    {
        "abstract_class_declaration",
        "class_declaration",
        "impl_item",
        "interface_declaration",
        "mod_item",
        "record_declaration",
        "trait_item",
    }
)
_USES = frozenset({"enum_specifier", "struct_specifier"})  # of a name, unless they have a body
_SKIPPED = frozenset({"block", "statement_block", "compound_statement", "arguments"})
_NAMES = ("name", "declarator", "type")
DEPTH_MAX = 200


def definitions(path: str, text: str) -> list[tuple[int, str]] | None:
    """Line and name of everything a file defines, in file order; None where no grammar reads it."""
    parser = _parser(PurePosixPath(path).suffix)
    if parser is None:
        return None
    found: list[tuple[int, str]] = []
    pending = [(parser.parse(text.encode(errors="replace")).root_node, 0)]
    while pending:
        node, depth = pending.pop()
        if node.type in _LEAVES or node.type in _HOLDERS:
            use = node.type in _USES and node.child_by_field_name("body") is None
            name = "" if use else _name(node)
            if name:
                found.append((node.start_point[0] + 1, name))
        if node.type in _LEAVES or node.type in _SKIPPED or depth >= DEPTH_MAX:
            continue
        pending += [(child, depth + 1) for child in reversed(node.named_children)]
    return sorted(set(found)) or None


def reads(path: str) -> bool:
    """Whether a grammar of the file's language is installed."""
    return _parser(PurePosixPath(path).suffix) is not None


@cache
def _parser(suffix: str) -> Any:
    """The parser of a file's language, made once a process; None where it is not installed."""
    module, function = _GRAMMARS.get(suffix, ("", ""))
    if not module or find_spec("tree_sitter") is None or find_spec(module) is None:
        return None
    tree_sitter = import_module("tree_sitter")
    language = getattr(import_module(module), function)()
    return tree_sitter.Parser(tree_sitter.Language(language))


def _name(node: Any) -> str:
    """The identifier that a definition names, through pointers and parameter lists of C."""
    for _ in range(DEPTH_MAX):
        inner = next(
            (child for field in _NAMES if (child := node.child_by_field_name(field))), None
        )
        if inner is None:
            break
        node = inner
    named = "identifier" in node.type or node.type in ("primitive_type", "string")
    return str(node.text.decode(errors="replace")) if named else ""
