"""A plan written as a file and read back is the same plan (P4)."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.plan_file import FORMAT, plan_document, read_plan
from holdfast.domain.model import Policy, TaskSpec
from holdfast.errors import Refused

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=30)
SEEN = TEXT.filter(str.strip)
KEYS = st.lists(SEEN, min_size=1, max_size=5, unique=True)


@st.composite
def plans(draw: st.DrawFn) -> list[TaskSpec]:
    keys = draw(KEYS)
    tasks = []
    for index, key in enumerate(keys):
        kind = draw(st.sampled_from(["agent", "model", "shell", "verify"]))
        before = st.lists(st.sampled_from(keys[:index]), unique=True) if index else st.just([])
        tasks.append(
            TaskSpec(
                key=key,
                prompt=draw(SEEN),
                title=draw(st.just("") | TEXT),
                kind=kind,
                command=draw(SEEN) if kind == "shell" else "",
                requires=tuple(draw(before)),
                checks=tuple(draw(st.lists(SEEN, min_size=kind == "verify", max_size=3))),
                files=tuple(draw(st.lists(SEEN, max_size=2))),
                creates=tuple(draw(st.lists(SEEN, max_size=2))),
                priority=draw(st.integers(-100, 100)),
                policy=Policy(max_turns=draw(st.integers(1, 99)), attempt_s=draw(st.floats(1, 9))),
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


def test_a_plan_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    document = plan_document([TaskSpec(key="a", prompt="p")]) | {"version": FORMAT + 1}
    (tmp_path / "plan.json").write_text(json.dumps(document))
    with pytest.raises(Refused, match="newer"):
        read_plan(tmp_path / "plan.json", policy=Policy())
