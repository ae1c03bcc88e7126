"""A contract's clauses: what globs allow, and every clause that could never hold is refused."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.plan_file import read_plan
from holdfast.domain.contract import EFFECTS_MAX, PATTERN_CHARS_MAX, allows, outside, validate
from holdfast.domain.model import FileHint, Policy, TaskSpec
from holdfast.errors import Refused

ALLOWED = [
    ("src/**", "src/a.py"),
    ("src/**", "src/a/b/c.py"),
    ("src", "src/a/b.py"),
    ("src/", "src/a.py"),
    ("./src", "src/a.py"),
    ("a.txt", "a.txt"),
    ("**/*.md", "README.md"),
    ("**/*.md", "docs/a/b.md"),
    ("docs/*.md", "docs/a.md"),
    ("a/**/z", "a/z"),
    ("a/**/z", "a/b/c/z"),
    ("pages/[id].tsx", "pages/[id].tsx"),
    ("a?.txt", "ab.txt"),
    ("**", "anything/at/all"),
]
FORBIDDEN = [
    ("src/**", "srcs/a.py"),
    ("src/**", "Src/a.py"),
    ("src", "lib/src/a.py"),
    ("*.md", "docs/a.md"),
    ("docs/*.md", "docs/a/b.md"),
    ("docs/*.md", "docs/a.md/x"),
    ("docs/*", "docs/a/b"),
    ("a/**/z", "a/b/c"),
    ("pages/[id].tsx", "pages/i.tsx"),
    ("a?.txt", "a/.txt"),
]


@pytest.mark.parametrize(("pattern", "path"), ALLOWED)
def test_a_glob_covers_what_it_says(pattern: str, path: str) -> None:
    assert allows((pattern,), path)
    assert allows(("never", pattern), path)
    assert allows(None, path), "no clause allows anything"
    assert not allows((), path), "an empty clause allows nothing"


@pytest.mark.parametrize(("pattern", "path"), FORBIDDEN)
def test_a_glob_covers_nothing_else(pattern: str, path: str) -> None:
    assert outside((pattern,), ["x", path]) == ["x", path]


def test_many_stars_are_matched_in_linear_time() -> None:
    assert not allows(("/".join(["**", "a*a*a*b"] * 20),), "/".join(["a" * 200] * 100))


def spec(**values: Any) -> TaskSpec:
    return TaskSpec(key="a", prompt="p", **values)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"preconditions": ("true", "file_exists:/x")}, r"preconditions\[1\]: file_exists:/x names no"),
    ({"postconditions": ("test_passes:rake",)}, r"postconditions\[0\]: there is no test runner"),
    ({"checks": ("git_cleen",)}, r"checks\[0\]: 'git_cleen' is no kind"),
    ({"inputs": {" ": "a"}}, "inputs: a name is empty"),
    ({"inputs": {"x": "../a"}}, r"inputs: 'x' is '../a', no path"),
    ({"inputs": {"x": "task:b"}}, r"'x' is the output of 'b', which this task does not require"),
    ({"effects": ("src/**", "/etc/*")}, r"effects\[1\]: '/etc/\*' is no glob"),
    ({"effects": ("../up",)}, r"effects\[0\]"),
    ({"effects": ("",)}, r"effects\[0\]"),
    ({"effects": ("./",)}, r"effects\[0\]"),
    ({"effects": ("a" * (PATTERN_CHARS_MAX + 1),)}, r"effects\[0\]"),
    ({"effects": ("a",) * (EFFECTS_MAX + 1)}, f"at most {EFFECTS_MAX}"),
    ({"file_hints": (FileHint(path="/x"),)}, r"file_hints\[0\]"),
    ({"policy": Policy(max_turns=-1)}, "max_turns is -1"),
    ({"policy": Policy(attempt_s=-0.5)}, "attempt_s is -0.5"),
    ({"policy": Policy(check_s=float("nan"))}, "check_s is nan"),
    ({"policy": Policy(max_attempts=10**13)}, "max_attempts is 1"),
]


@pytest.mark.parametrize(("values", "words"), BAD)
def test_a_clause_that_could_never_hold_is_refused_by_name(
    values: dict[str, Any], words: str
) -> None:
    with pytest.raises(Refused, match=words):
        validate(spec(**values))


def test_a_contract_with_every_clause_is_sound() -> None:
    validate(
        spec(
            requires=("b",),
            inputs={"spec": "docs/spec.md", "design": "task:b"},
            preconditions=("file_exists:a",),
            checks=("true",),
            postconditions=("test_passes",),
            effects=("a" * PATTERN_CHARS_MAX,) * EFFECTS_MAX,
            file_hints=(FileHint(path="a", reason="b"),),
        )
    )


PLAN = """
[[tasks]]
key = "a"
prompt = "First"

[[tasks]]
key = "b"
prompt = "Then"
requires = ["a"]
context = "A shop"
success_criteria = ["it adds up"]
file_hints = [{path = "a.py", reason = "the sum"}, {path = "b.py"}]
inputs = {spec = "docs/spec.md", design = "task:a"}
preconditions = ["git_clean", {kind = "file_exists", path = "a.py"}]
postconditions = [{kind = "test_passes", runner = "pytest"}]
effects = ["src/**"]
tier = "complex"
priority = "urgent"
"""


def plan(folder: Path, text: str) -> tuple[TaskSpec, ...]:
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    return read_plan(folder / "plan.toml", policy=Policy(max_turns=0)).tasks


def test_a_plan_file_declares_a_contract(tmp_path: Path) -> None:
    _, task = plan(tmp_path, PLAN)
    assert task.preconditions == ("git_clean", "file_exists:a.py")
    assert task.postconditions == ("test_passes:pytest",)
    assert task.file_hints == (FileHint(path="a.py", reason="the sum"), FileHint(path="b.py"))
    assert (task.tier, task.priority, task.effects) == ("complex", "urgent", ("src/**",))
    assert (task.context, task.success_criteria) == ("A shop", ("it adds up",))
    assert task.policy.max_turns == 0, "submitting takes the tier's"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            '"urgent"',
            '"asap"',
            r"plan.toml:6 tasks\[1\]: priority is 'asap' .*urgent, high, normal",
        ),
        ('"complex"', '"hard"', r"tasks\[1\]: tier is 'hard' \(known: trivial"),
        ('"src/**"', '"../x"', r"plan.toml:6 tasks\[1\]: effects\[0\]"),
        ("task:a", "task:c", r"tasks\[1\]: inputs: 'design' is the output of 'c'"),
        ('"git_clean"', '"git_clear"', r"tasks\[1\]: preconditions\[0\]: 'git_clear' is no kind"),
        ('effects = ["src/**"]', "effects = 3", r"tasks\[1\]: Expected `array"),
    ],
)
def test_a_wrong_clause_of_a_plan_is_refused_with_its_position(
    tmp_path: Path, before: str, after: str, words: str
) -> None:
    with pytest.raises(Refused, match=words):
        plan(tmp_path, PLAN.replace(before, after))
