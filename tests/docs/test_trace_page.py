"""docs/trace.md cannot rot: its tests exist, its rows are complete, its names are the source's."""

import ast
import re
from pathlib import Path

from holdfast.trace import commands
from holdfast.trace.events import FIELDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "trace.md").read_text(encoding="utf-8")
SOURCE = "\n".join(
    path.read_text(encoding="utf-8") for path in (ROOT / "src" / "holdfast" / "trace").glob("*.py")
)


def known_tests() -> set[str]:
    return {
        node.name
        for path in (ROOT / "tests").rglob("test_trace_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }


def test_every_row_names_tests_that_exist() -> None:
    rows = re.findall(r"^\| (T\d+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert [name for name, _ in rows] == [f"T{number}" for number in range(1, 35)]
    known = known_tests()
    for row, cell in rows:
        named = re.findall(r"`(\w+)`", cell)
        assert named, row
        assert set(named) <= known, f"{row}: {set(named) - known}"
    assert set(re.findall(r"`(test_\w+)`", PAGE)) <= known


def test_every_variable_of_the_source_is_on_the_page_and_the_other_way_round() -> None:
    pattern = r"\b(?:AGENTLOG(?:_[A-Z_]+)?|CLOUDFLARE_[A-Z0-9_]+|OTEL_[A-Z_]+)\b"
    read = {name for name in re.findall(pattern, SOURCE) if not name.endswith("_")}
    read -= {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}  # the `_TRACES_` form of a row
    assert read == {name for name in re.findall(pattern, PAGE) if not name.endswith("_")}


def test_every_verb_and_every_payload_key_is_on_the_page() -> None:
    for verb in commands.VERBS:
        assert f"| `{verb.name}` |" in PAGE
    for kind, fields in FIELDS.items():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{kind}` |"))
        for name in fields:
            assert re.search(rf"\b{name}\b", row), f"{kind}.{name}"


def test_every_public_function_is_on_the_page() -> None:
    from holdfast import trace

    for name in trace.__all__:
        assert re.search(rf"\b{name}\b", PAGE), name
