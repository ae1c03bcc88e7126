"""The afternoon's reading of ARCHITECTURE.md is whole, and stays an afternoon's."""

import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "holdfast"
# The upper end of what admired systems of this kind have; decision 16.
LINES_MAX = 9_500
ISLANDS = ("lang/", "trace/")
# What writes a row, holds a lock or makes a file durable; and who writes only what can be thrown
# away, because it is made anew from git, outputs and texts.
WRITES = re.compile(r"\btransition\(|\btx\.run\(|\bos\.fsync\(|\bflock\(")
CACHES = {"context/retrieve.py", "engine/library.py", "adapters/embeddings.py"}


def reading() -> list[str]:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = page.partition("## The afternoon")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if re.match(r"\| \d ", line)]
    return [name for row in rows for name in re.findall(r"`([\w/]+\.(?:py|sql))`", row)]


def unread(sources: Mapping[str, str], read: list[str]) -> set[str]:
    """The modules that write and that the reading leaves out."""
    return {
        name
        for name, text in sources.items()
        if WRITES.search(text) and not name.startswith(ISLANDS) and name not in (*read, *CACHES)
    }


def sources() -> dict[str, str]:
    return {
        path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(SOURCE.rglob("*.py"))
    }


def test_the_afternoon_has_no_more_lines_than_one_can_read_in_it() -> None:
    names = reading()
    assert len(names) == len(set(names)) > 30
    lines = sum((SOURCE / name).read_text(encoding="utf-8").count("\n") for name in names)
    assert lines <= LINES_MAX, f"{lines} lines: make it smaller, or decide anew"


def test_no_module_that_writes_is_left_out() -> None:
    assert unread(sources(), reading()) == set()


def test_a_module_that_writes_beside_the_reading_is_noticed() -> None:
    planted = {"hub/healing.py": "    tx.run('task.force', id=1)\n", "lang/x.py": "transition(tx)"}
    assert unread({**sources(), **planted}, reading()) == {"hub/healing.py"}
    without = [name for name in reading() if name != "engine/settle.py"]
    assert unread(sources(), without) == {"engine/settle.py"}
