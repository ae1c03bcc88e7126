"""What a proposed plan must be: a wrong answer is refused with what is wrong, a big task split."""

import json
from typing import Any

import pytest

from holdfast.agent.planner import WHOLE, Draft, ground, read_plan, read_units, split
from holdfast.domain.graph import order
from holdfast.domain.model import Planning, Policy, TaskSpec
from holdfast.errors import Refused

PLANNING = TaskSpec(
    key="planning",
    prompt="Do it",
    kind="plan",
    policy=Policy(max_turns=7),
    planning=Planning(tasks_min=2, tasks_max=4, unit_files_max=2, unit_chars_max=50),
)
FLAT = TaskSpec(
    key="planning",
    prompt="Do it",
    kind="plan",
    planning=Planning(tasks_min=2, tasks_max=4, unit_files_max=2, unit_chars_max=50, levels=1),
)


def row(key: str = "a", **values: Any) -> dict[str, Any]:
    return {"key": key, "prompt": f"do {key}", "checks": ["true"], **values}


def answer(*rows: dict[str, Any], **more: Any) -> str:
    return json.dumps({"tasks": list(rows), **more})


def test_an_answer_may_be_written_as_a_plan_file_is() -> None:
    shell = {"key": "b", "kind": "shell", "command": "make", "priority": "high"}
    draft = read_plan(answer(row("a", kind="agent"), shell, version=1), PLANNING)
    assert [(task.kind, task.command) for task in draft.tasks] == [("agent", ""), ("shell", "make")]


def test_an_answer_is_read_with_or_without_a_fence_and_words_around_it() -> None:
    plain = answer(row("a", files=["x.py"]), row("b", requires=["a"]))
    for text in (plain, f"```json\n{plain}\n```", f"Here it is:\n```json\n{plain}\n```\nGood?"):
        draft = read_plan(text, PLANNING)
        assert [task.key for task in draft.tasks] == ["a", "b"]
        assert draft.tasks[0].policy.max_turns == 7, "a task runs under the goal's policy"
        assert draft.big == frozenset()


WRONG = [
    ("", "plan_unreadable", "it is no JSON object: Expecting value: line 1 column 1"),
    ("No.", "plan_unreadable", "it is no JSON object: Expecting value: line 1 column 1"),
    ("[" * 50_000, "plan_unreadable", "it is no JSON object: maximum recursion"),
    ("9" * 5_000, "plan_unreadable", "it is no JSON object: Exceeds the limit"),
    ('{"tasks": [\n {"key" "a"}]}', "plan_unreadable", "line 2 column 9"),
    ('{"tasks": [], "tasks": []}', "plan_unreadable", "says a key twice"),
    ("{}", "refused", "there are no tasks"),
    ('{"tasks": []}', "refused", "there are no tasks"),
    ('{"tasks": [3]}', "refused", r"tasks\[0\] is not a table"),
    (answer(row()), "plan_size", "it has 1 tasks; 2 to 4 are wanted"),
    (answer(*(row(key) for key in "abcde")), "plan_size", "it has 5 tasks; 2 to 4 are wanted"),
    (answer(row(), row("b"), extra=1), "plan_unknown_key", "plan.json: unknown key 'extra'"),
    (answer(row(), row("b"), version=9), "refused", "version 9 is newer"),
    (answer(row(), row("b"), policy={}), "plan_not_yours", "'policy' is not yours to write"),
    (answer(row(), row("b", file=[])), "plan_unknown_key", r"unknown key 'file'"),
    (answer(row(), row("b", kind="verify")), "plan_not_yours", r"kind is one of agent, model, sh"),
    (answer(row(), row("b", policy={})), "plan_not_yours", r"tasks\[1\]: 'policy' is not yours"),
    (answer(row(), row("b", model="x:y")), "plan_not_yours", "'model' is not yours to write"),
    (answer(row(), row("B")), "refused", r"tasks\[1\]: the key 'B' is not lower-case"),
    (answer(row(), row("a")), "plan_duplicate", r"tasks\[1\]: the key 'a' is taken by plan.json"),
    (answer(row(), row("b", checks=[])), "plan_no_check", r"tasks\[1\]: task 'b' has no check"),
    (answer(row(), row("b", prompt=" ")), "refused", r"tasks\[1\] needs a 'prompt'"),
    (answer(row(), row("b", requires=["z"])), "plan_missing", "'b' requires 'z', which is not"),
    (answer(row(), row("b", refers=["z"])), "refused", "'b' refers to 'z', which is not"),
    (
        answer(row("a", requires=["b"]), row("b", requires=["a"])),
        "plan_cycle",
        "the plan has a cycle: a → b → a",
    ),
    (answer(row(), row("b", big="yes")), "refused", r"tasks\[1\]: 'big' is true or false"),
]


@pytest.mark.parametrize(("text", "code", "words"), WRONG)
def test_a_wrong_answer_is_refused_with_what_is_wrong(text: str, code: str, words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        read_plan(text, PLANNING)
    assert refused.value.code == code


def test_a_task_over_a_units_size_is_split_where_there_are_two_levels_and_refused_else() -> None:
    files = ["1.py", "2.py", "3.py"]
    for big in (row("b", files=files), row("b", prompt="x" * 51), row("b", big=True)):
        assert read_plan(answer(row(), big), PLANNING).big == {"b"}
        with pytest.raises(Refused, match="and it cannot be split again") as refused:
            read_plan(answer(row(), big), FLAT)
        assert refused.value.code == "plan_size"
    fits = row("b", files=files[:2], prompt="x" * 50)
    assert read_plan(answer(row(), fits), FLAT).big == frozenset()


def tasks(*rows: dict[str, Any]) -> tuple[TaskSpec, ...]:
    return read_plan(answer(*rows), PLANNING).tasks


def test_units_take_the_place_of_their_task() -> None:
    whole = tasks(row("a"), row("b", requires=["a"], checks=["all"]), row("c", requires=["b"]))
    made = split(whole, whole[1], tasks(row("x", checks=["x"]), row("y", requires=["x"])))
    by_key = {task.key: task for task in made}
    assert order({task.key: task.requires for task in made}) == ["a", "b.x", "b.y", "c"]
    assert by_key["b.x"].requires == ("a",)
    assert by_key["c"].requires == ("b.y",)
    assert by_key["b.x"].checks == ("x",)
    assert by_key["b.y"].checks == ("true", "all"), "the last unit proves the whole"


def test_several_last_units_meet_in_a_task_that_proves_the_whole() -> None:
    whole = tasks(row("a", checks=["all"]), row("c", requires=["a"], refers=["a"]))
    made = split(whole, whole[0], tasks(row("x"), row("y"), row("z", refers=["x"])))
    meeting, last = made[-2], made[-1]
    assert (meeting.key, meeting.kind, meeting.checks) == (f"a.{WHOLE}", "shell", ("all",))
    assert meeting.requires == ("a.x", "a.y", "a.z")
    assert (last.requires, last.refers) == ((meeting.key,), (meeting.key,))
    assert made[2].refers == ("a.x",)


def test_a_split_task_hands_its_terms_to_its_units() -> None:
    whole = tasks(
        row("a", creates=["n.py"], preconditions=["ready"]),
        row("b", requires=["a"], inputs={"notes": "task:a", "list": "l.txt"}),
    )
    units = tasks(row("x"), row("y", requires=["x"], inputs={"draft": "task:x"}))
    first, last, after = split(whole, whole[0], units)
    assert (first.preconditions, last.preconditions) == (("ready",), ())
    assert (first.promises, last.promises) == ((), ("file_exists:n.py",))
    assert dict(last.inputs) == {"draft": "task:a.x"}
    assert dict(after.inputs) == {"notes": "task:a.y", "list": "l.txt"}


def test_units_are_small_or_refused() -> None:
    whole = tasks(row("a"), row("b"))
    draft = Draft(tasks=whole, big=frozenset({"a"}))

    def units(*rows: dict[str, Any]) -> Draft:
        return read_units(answer(*rows), draft=draft, whole=whole[0], planning=PLANNING)

    assert [task.key for task in units(row("x"), row("y")).tasks][-1] == "b"
    for rows, words in (
        ((row("x"),), "it has 1 tasks; 2 to 4"),
        ((row("x"), row("y", big=True)), "'y' is called big, and it cannot be split again"),
        ((row("x"), row("y", prompt="x" * 51)), "has 51 characters, over 50, and it cannot"),
        ((row("x"), row("y", requires=["b"])), "requires 'b', which is not in the plan"),
        ((row("x"), row(WHOLE)), f"the key '{WHOLE}' is taken"),
    ):
        with pytest.raises(Refused, match=words):
            units(*rows)


def test_a_file_exists_or_is_made_by_a_task_before() -> None:
    found = {"old.py": "file", "new.py": "nothing", "dir": "is no regular file"}
    makes = row("a", creates=["new.py"], files=["new.py", "old.py"])
    ground(tasks(makes, row("b", files=["new.py"], requires=["a"])), found)
    for rows, words in (
        ((makes, row("b", files=["new.py"])), "'b' names the file 'new.py', which does not exist"),
        ((row("a"), row("b", files=["dir"])), "'b' names the file 'dir', which is no regular file"),
        ((row("a"), row("b", creates=["old.py"])), "'b' creates 'old.py', which exists already"),
        ((row("a"), row("b", creates=["dir"])), "'b' creates 'dir', which is no regular file"),
    ):
        with pytest.raises(Refused, match=words):
            ground(tasks(*rows), found)
