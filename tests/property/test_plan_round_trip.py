"""A plan written as a file and read back is the same plan (P4); a task keeps every field (H17)."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.plan_file import FORMAT, plan_document, read_plan
from holdfast.domain.checks import read_check
from holdfast.domain.model import FileHint, Policy, Priority, TaskSpec, Tier
from holdfast.engine.rows import decode, encode
from holdfast.errors import Refused

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=30)
SEEN = TEXT.filter(str.strip)
KEYS = st.lists(SEEN, min_size=1, max_size=5, unique=True)
NAMES = st.from_regex(r"[a-z]{1,8}(/[a-z*]{1,8}){0,2}", fullmatch=True)
KINDS = st.sampled_from(["file_exists:a/b.txt", "test_passes", "test_passes:go", "git_clean"])


def is_check(line: str) -> bool:
    try:
        return read_check(line).line == line
    except Refused:
        return False


CHECKS = st.lists(SEEN.filter(is_check) | KINDS, max_size=3).map(tuple)


@st.composite
def plans(draw: st.DrawFn) -> list[TaskSpec]:
    keys = draw(KEYS)
    tasks = []
    for index, key in enumerate(keys):
        kind = draw(st.sampled_from(["agent", "model", "shell", "verify"]))
        before = st.lists(st.sampled_from(keys[:index]), unique=True) if index else st.just([])
        requires = tuple(draw(before))
        sources = NAMES | st.sampled_from([f"task:{each}" for each in requires] or ["a.txt"])
        hints = st.lists(st.builds(FileHint, path=NAMES, reason=st.just("") | TEXT), max_size=2)
        tasks.append(
            TaskSpec(
                key=key,
                prompt=draw(SEEN),
                title=draw(st.just("") | TEXT),
                kind=kind,
                context=draw(st.just("") | TEXT),
                success_criteria=tuple(draw(st.lists(SEEN, max_size=2))),
                command=draw(SEEN) if kind == "shell" else "",
                requires=requires,
                inputs=draw(st.dictionaries(SEEN, sources, max_size=2)),
                preconditions=draw(CHECKS),
                checks=draw(CHECKS) if kind != "verify" else ("true", *draw(CHECKS)),
                postconditions=draw(CHECKS),
                effects=draw(st.none() | st.lists(NAMES, max_size=2).map(tuple)),
                files=tuple(draw(st.lists(SEEN, max_size=2))),
                creates=tuple(draw(st.lists(SEEN, max_size=2))),
                file_hints=tuple(draw(hints)),
                tier=draw(st.sampled_from(get_args(Tier))),
                priority=draw(st.sampled_from(get_args(Priority))),
                policy=Policy(max_turns=draw(st.integers(0, 99)), attempt_s=draw(st.floats(0, 9))),
            )
        )
    return tasks


@settings(max_examples=60)
@given(plans())
def test_a_plan_written_as_a_file_reads_back_the_same(tasks: list[TaskSpec]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        path.write_text(json.dumps(plan_document(tasks)), encoding="utf-8")
        assert list(read_plan(path, policy=Policy()).tasks) == tasks
    assert [decode(encode(task), TaskSpec) for task in tasks] == tasks, "and through the store"


def test_a_task_of_an_older_store_still_reads(tmp_path: Path) -> None:
    old = b'{"key":"a","prompt":"p","checks":["pytest -q"],"priority":0,"policy":{"max_turns":20}}'
    task = decode(old, TaskSpec)
    assert (task.checks, task.effects, task.tier) == (("pytest -q",), None, "unknown")
    assert task.priority == 0


def test_a_plan_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    document = plan_document([TaskSpec(key="a", prompt="p")]) | {"version": FORMAT + 1}
    (tmp_path / "plan.json").write_text(json.dumps(document))
    with pytest.raises(Refused, match="newer"):
        read_plan(tmp_path / "plan.json", policy=Policy())
