"""Docs rot loudly: generated pages, commands, glossary, decisions and the README are compared."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import cli
from holdfast.domain import model
from holdfast.domain.lifecycle import MACHINES

ROOT = Path(__file__).parents[2]


def generator():
    spec = importlib.util.spec_from_file_location("pages", ROOT / "scripts/generate_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(generator().pages()))
def test_a_generated_page_is_what_the_source_says_now(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == generator().pages()[name], "make docs"


@pytest.mark.parametrize("row", cli.COMMANDS, ids=lambda row: row.name)
def test_every_command_teaches_itself_and_takes_json(row: cli.Command) -> None:
    text = generator()._help(row.name)
    assert "--json" in text
    assert f"holdfast {row.name}" in text.split("\n\n", 1)[1], "the help shows no example"


def test_the_glossary_knows_every_machine_and_noun() -> None:
    text = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8").lower()
    nouns = [*MACHINES, "fence", "bundle", "outcome", "budget", "check", "worker", "take"]
    for noun in nouns:
        assert f"**{noun}**" in text, noun
    for kind in model.OutcomeKind.__args__:
        assert f"`{kind}`" in text, kind


def test_decisions_are_numbered_whole_and_name_what_enforces_them() -> None:
    found = sorted((ROOT / "docs/decisions").glob("*.md"))
    assert [int(path.name[:3]) for path in found] == list(range(1, len(found) + 1))
    assert len(found) >= 10
    for path in found:
        text = path.read_text(encoding="utf-8")
        for part in ("## Context", "## Options", "## Outcome", "## Enforced by"):
            assert part in text, f"{path.name} lacks {part}"


@pytest.mark.parametrize(
    "name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "GLOSSARY.md", "CHANGELOG.md"]
)
def test_a_page_points_only_to_files_that_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (ROOT / target).exists(), f"{name} points to {target}"


# Output that changes from run to run: hashes, times, sizes.
_VARIES = re.compile(
    r"\b[0-9a-f]{12,40}\b|\d+-\d\d-\d\d|/\S+/demo/repo| *\b\d+:\d\d(?::\d\d)?\b"
    r"| *\b\d+(?:\.\d)? s\b|seed \d+|w-[0-9a-f]+|\d{5,}|bundle [0-9a-f]{12}"
)


def steady(text: str) -> str:
    return _VARIES.sub("…", text).strip()


@pytest.mark.slow
def test_the_readme_tour_prints_what_the_readme_says(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    commands = [
        part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE) if part
    ]
    assert len(commands) >= 5, "the README has no tour"
    bin_folder = str(Path(sys.executable).parent)
    for part in commands:
        command, _, expected = part.partition("\n")
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={"PATH": f"{bin_folder}:/usr/bin:/bin", "HOME": str(tmp_path)},
        )
        assert steady(done.stdout) == steady(expected), f"$ {command}\n{done.stderr}"


def test_every_requirement_of_the_context_page_names_tests_that_exist() -> None:
    page = (ROOT / "docs/context.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (C\d+) \| (.*) \|$", page, re.MULTILINE)
    assert [row for row, _ in rows] == [f"C{number}" for number in range(1, 38)]
    for row, text in rows:
        file = ""
        for named, test in re.findall(r"`(test_\w+\.py|…)(?:::(test_\w+))?`", text):
            file = file if named == "…" else named
            (found,) = (ROOT / "tests").rglob(file) if file else (None,)
            assert test in (found.read_text(encoding="utf-8") if found else ""), (row, file, test)
