"""Bundles: what fits, what is cut, what is left out and why, always the same bytes."""

import pytest

from holdfast.agent.briefing import Related, Surroundings, brief, reflection
from holdfast.agent.conversation import encode
from holdfast.context.bundle import FLOOR_TOKENS, Candidate, fit
from holdfast.context.tokens import count_tokens
from holdfast.domain.model import Budget, CheckResult, Claim, Fence, Outcome, Policy, TaskSpec
from holdfast.domain.ports import ToolSpec
from holdfast.errors import Refused

TOOL = ToolSpec(
    name="read_file", description="Reads.", parameters={"type": "object"}, effect="pure"
)


def candidate(source: str = "a.py", kind: str = "file", text: str = "one\ntwo") -> Candidate:
    return Candidate(source=source, kind=kind, reason="because", text=text)  # type: ignore[arg-type]


def claimed(**values: object) -> Claim:
    spec = TaskSpec(**{"key": "fix", "prompt": "Fix the test.", **values})  # type: ignore[arg-type]
    return Claim(
        fence=Fence(task=1, attempt=1, take=1, goal=1),
        spec=spec,
        goal_text="Make it green",
        repository="/r",
        branch="b",
        model="scripted:x",
        base_commit="c0",
        base_tree="t0",
        bundle_sha256="",
        seed=7,
        budget=Budget(),
        lease_s=5.0,
    )


def test_what_fits_is_shown_whole_with_its_reason() -> None:
    text, items = fit("# Task", [candidate()], budget_tokens=100)
    assert text == "# Task\n\n## a.py (because)\n\none\ntwo"
    assert [(item.source, item.fate) for item in items] == [("a.py", "whole")]


def test_what_does_not_fit_is_cut_and_says_how_much() -> None:
    long = "\n".join(f"line {n}" for n in range(200))
    text, items = fit("# Task", [candidate(text=long)], budget_tokens=80)
    assert items[0].fate == "cut"
    assert "line 0" in text
    assert "more lines left out]" in text
    assert count_tokens(text) <= 80


def test_an_item_without_budget_is_out_and_the_head_never_is() -> None:
    size = count_tokens("# Task with a head")
    text, items = fit("# Task with a head", [candidate()], budget_tokens=size)
    assert text == "# Task with a head"
    assert [(item.fate, item.tokens) for item in items] == [("out", 0)]


def test_a_floor_keeps_a_big_tier_from_starving_the_others() -> None:
    big = "\n".join("word " * 9 for _ in range(1000))
    small = candidate("The plan", "plan", "- b: other")
    _text, items = fit("#", [candidate("out", "requires", big), small], budget_tokens=400)
    fates = {item.source: (item.fate, item.tokens) for item in items}
    assert fates["The plan"][0] == "whole"
    assert fates["out"][0] == "cut"
    assert fates["out"][1] > FLOOR_TOKENS


def test_tiers_come_in_order_and_input_order_does_not_matter() -> None:
    items = [
        candidate("z", "tree"),
        candidate("Last try", "reflection"),
        candidate("m", "requires"),
    ]
    forwards = fit("#", items, budget_tokens=500)
    assert forwards == fit("#", items[::-1], budget_tokens=500)
    assert [item.source for item in forwards[1]] == ["Last try", "m", "z"]


def test_a_brief_holds_everything_the_take_depends_on() -> None:
    around = Surroundings(
        files=["a.py", "deep/b.py"],
        read={"a.py": "print(1)"}.get,
        related=[
            Related(key="first", kind="requires", title="First", state="succeeded", answer="did"),
            Related(key="other", kind="plan", title="Other", state="ready", answer=""),
            Related(key="ref", kind="refers", title="Ref", state="succeeded", answer="said"),
        ],
        reflection="it failed",
    )
    claim = claimed(files=("a.py",), checks=("pytest -q",))
    made = brief(claim, around, model="scripted:x", tools=[TOOL], budget_tokens=1000)
    for words in (
        "# Task: fix",
        "Fix the test.",
        "It is part of this goal: Make it green",
        "- `pytest -q`",
        "print(1)",
        "it failed",
        "did",
        "said",
        "- other: Other",
        "deep/b.py",
    ):
        assert words in made.user, words
    assert made.tools == (TOOL,)
    assert set(made.templates) == {"corrective", "cut", "empty"}
    assert encode(made) == encode(
        brief(claim, around, model="scripted:x", tools=[TOOL], budget_tokens=1000)
    )


def test_a_prompt_that_holds_the_goal_does_not_repeat_it() -> None:
    made = brief(
        claimed(prompt="", kind="model"),
        Surroundings(),
        model="m",
        tools=[TOOL],
        budget_tokens=100,
    )
    assert "Make it green" in made.user
    assert made.tools == (), "only an agent is offered tools"
    same = brief(
        claimed(prompt="Make it green"), Surroundings(), model="m", tools=[], budget_tokens=100
    )
    assert same.user.count("Make it green") == 1


def test_calls_in_text_are_explained_in_the_system_prompt() -> None:
    policy = Policy(calls="json")
    made = brief(claimed(policy=policy), Surroundings(), model="m", tools=[TOOL], budget_tokens=100)
    assert '"name":"read_file"' in made.system
    native = brief(claimed(), Surroundings(), model="m", tools=[TOOL], budget_tokens=100)
    assert "read_file" not in native.system


def test_a_file_that_is_not_in_the_base_is_refused_by_name() -> None:
    with pytest.raises(
        Refused, match=r"names .gone\.py., which is not in the repository"
    ) as refused:
        brief(claimed(files=("gone.py",)), Surroundings(), model="m", tools=[], budget_tokens=9)
    assert refused.value.code == "missing_file"


def test_a_file_without_text_says_so_and_many_files_are_counted() -> None:
    files = [f"d/f{n}.bin" for n in range(450)] + ["top.bin"]
    made = brief(
        claimed(files=("top.bin",)),
        Surroundings(files=files),
        model="m",
        tools=[],
        budget_tokens=9000,
    )
    assert "(empty or not text)" in made.user
    assert "… and 51 more" in made.user
    assert made.user.index("top.bin\nd/f0.bin") > 0, "shallow names first"


def test_a_reflection_tells_what_was_said_and_what_was_not_proven() -> None:
    before = Outcome(
        kind="failed",
        answer="all good",
        detail="1 of 2",
        checks=(
            CheckResult(command="ruff", verdict="pass", output="fine"),
            CheckResult(command="pytest", verdict="fail", output="E assert"),
        ),
    )
    assert reflection(before) == "What was said: all good\n\n1 of 2\n\n$ pytest\nE assert"
    assert reflection(Outcome(kind="expired")) == ""
