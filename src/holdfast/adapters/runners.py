"""Test runners of a project: which one its files call for, what starts it, what shows nothing ran.

Reads only names and small files of the workspace, never following a link out of it; commands are
constants, so nothing a project says becomes part of a shell line. The table's order is the order of
search. A runner that ends well without having run a test has proven nothing: `nothing` tells.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast.adapters.tools.paths import Refusal, place, read_bytes, walk
from holdfast.frozen import frozen

FILE_BYTES_MAX = 1_000_000
ENTRIES_MAX = 20_000
_SKIPPED = frozenset(
    {"node_modules", ".venv", "venv", ".tox", "target", "vendor", "deps", "_build"}
)
_NEVER = re.compile(r"(?!)")

# The module where there is one, so that a project's own directory is importable; else the program.
_PYTEST = (
    "if python3 -c 'import pytest' 2>/dev/null; then exec python3 -m pytest -q; fi; exec pytest -q"
)


@frozen
class Runner:
    """How a project's tests are run. `sign` names what calls for it, "" when nothing does.

    Output that matches `nothing`, and an exit code in `empty`, mean that no test was run.
    """

    command: str
    sign: Callable[[Path], str]
    nothing: re.Pattern[str] = _NEVER
    empty: tuple[int, ...] = ()


def detect(root: Path) -> tuple[str, str]:
    """The runner a workspace calls for and the sign of it; empty when there is none."""
    for name, runner in RUNNERS.items():
        sign = runner.sign(root)
        if sign:
            return name, sign
    return "", ""


def _pytest(root: Path) -> str:
    for name, table in (
        ("pytest.ini", ""),
        ("pyproject.toml", r"^\[tool\.pytest"),
        ("tox.ini", r"^\[pytest\]"),
        ("setup.cfg", r"^\[tool:pytest\]"),
        ("conftest.py", ""),
    ):
        text = _read(root, name)
        if text is not None and (not table or re.search(table, text, re.MULTILINE)):
            return name
    return _python_test(root)


def _python_test(root: Path) -> str:
    """The first file that pytest would collect by its name."""
    with place(root, ".") as top:
        for seen, entry in enumerate(walk(top, recursive=True, skipped=_SKIPPED)):
            name = entry.relative.rpartition("/")[2]
            if entry.kind == stat.S_IFREG and re.fullmatch(r"test_.*\.py|.*_test\.py", name):
                return entry.relative
            if seen >= ENTRIES_MAX:
                break
    return ""


def _npm(root: Path) -> str:
    try:
        script = json.loads(_read(root, "package.json") or "{}")["scripts"]["test"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    ours = isinstance(script, str) and script.strip() and "no test specified" not in script
    return "package.json" if ours else ""


def _make(root: Path) -> str:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        text = _read(root, name)
        if text is not None:
            return name if re.search(r"^test(\s[^:=\n]*)?:(?!=)", text, re.MULTILINE) else ""
    return ""


def _file(name: str) -> Callable[[Path], str]:
    return lambda root: "" if _read(root, name) is None else name


def _read(root: Path, name: str) -> str | None:
    """A small text file at the top; None for anything else."""
    try:
        with place(root, name) as at:
            return read_bytes(at, bytes_max=FILE_BYTES_MAX).decode(errors="replace")
    except (Refusal, OSError):
        return None


RUNNERS: Mapping[str, Runner] = {
    "pytest": Runner(
        command=_PYTEST,
        sign=_pytest,
        nothing=re.compile(
            r"^=*\s*\d+ (skipped|deselected)(, \d+ (skipped|deselected|warnings?))* in ",
            re.MULTILINE,
        ),
        empty=(5,),
    ),
    "npm": Runner(
        command="npm test", sign=_npm, nothing=re.compile(r"^(# |ℹ )tests 0$", re.MULTILINE)
    ),
    "make": Runner(
        command="make test",
        sign=_make,
        nothing=re.compile(
            r"^make(\[\d+\])?: (Nothing to be done for 'test'|'test' is up to date)", re.MULTILINE
        ),
    ),
    "cargo": Runner(
        command="cargo test --offline",
        sign=_file("Cargo.toml"),
        nothing=re.compile(r"\A(?![\s\S]*^test result: ok\. [1-9])", re.MULTILINE),
    ),
    "go": Runner(
        command="go test ./...",
        sign=_file("go.mod"),
        nothing=re.compile(r"\A(?![\s\S]*^ok\s+(?!.*\[no tests to run\]))", re.MULTILINE),
    ),
    "mix": Runner(
        command="mix test",
        sign=_file("mix.exs"),
        nothing=re.compile(r"^(There are no tests to run|0 tests\b)", re.MULTILINE),
    ),
}
