"""A person's plan: every refusal names the place, and what is right is read as it was meant."""

import json
from pathlib import Path

import pytest

from holdfast.adapters.plan_file import FILE_BYTES_MAX, TASKS_MAX, read_plan
from holdfast.domain.model import Policy
from holdfast.errors import Refused

GOOD = """
version = 1
[policy]
max_turns = 5

[[tasks]]
key = "a"
prompt = "First"

[[tasks]]
key = "b"
prompt = "Then"
requires = ["a"]
[tasks.policy]
max_takes = 4
"""


def read(folder: Path, text: str, name: str = "plan.toml", **values: object) -> object:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_plan(path, policy=Policy(max_attempts=9), **values)  # type: ignore[arg-type]


def test_a_plan_is_read_with_its_policies_layered(tmp_path: Path) -> None:
    plan = read_plan_of(tmp_path, GOOD)
    a, b = plan.tasks
    assert (plan.source, a.key, b.requires) == ("person", "a", ("a",))
    assert (a.policy.max_turns, a.policy.max_takes, a.policy.max_attempts) == (5, 2, 9)
    assert (b.policy.max_turns, b.policy.max_takes, b.policy.max_attempts) == (5, 4, 9)


def read_plan_of(folder: Path, text: str, name: str = "plan.toml", **values: object):  # type: ignore[no-untyped-def]
    return read(folder, text, name, **values)


def test_checks_become_a_last_task_that_requires_all_others(tmp_path: Path) -> None:
    taken = GOOD + '[[tasks]]\nkey = "verify"\nprompt = "x"\n'
    plan = read_plan_of(tmp_path, taken, checks=["pytest -q"])
    last = plan.tasks[-1]
    assert (last.key, last.kind, last.policy.max_takes) == ("verify-goal", "verify", 1)
    assert (last.requires, last.checks) == (("a", "b", "verify"), ("pytest -q",))


def test_json_is_read_too_and_a_shell_task_needs_no_prompt(tmp_path: Path) -> None:
    text = json.dumps({"tasks": [{"key": "s", "kind": "shell", "command": "make"}]}, indent=1)
    plan = read_plan_of(tmp_path, text, "plan.json")
    assert (plan.tasks[0].kind, plan.tasks[0].command) == ("shell", "make")
    with pytest.raises(Refused, match=r"plan.json:4 tasks\[0\]: unknown key 'promt'"):
        read(tmp_path, '{"tasks": [\n {\n\n "key": "a", "promt": "x"}]}', "plan.json")


TASK = '[[tasks]]\nkey = "a"\nprompt = "x"\n'
REFUSED = [
    ("", r"plan.toml: there are no tasks"),
    ("tasks = 3", r"plan.toml: there are no tasks"),
    ("tasks = []", r"there are no tasks"),
    ("[[tasks]\n", r"plan.toml cannot be read: .*line 1"),
    ("version = 2\n" + TASK, r"plan.toml: version 2 is newer"),
    ("color = 1\n" + TASK, r"plan.toml: unknown key 'color'"),
    ("polcy = 1\n" + TASK, r"unknown key 'polcy' \(did you mean 'policy'"),
    ("tasks = [1]", r"tasks\[0\] is not a table"),
    ("\n\n[[tasks]]\nprompt = 'x'\n", r"plan.toml:3 tasks\[0\] needs a 'key'"),
    ("[[tasks]]\nkey = ' '\nprompt = 'x'\n", r"tasks\[0\] needs a 'key'"),
    ("[[tasks]]\nkey = 'a'\n", r"tasks\[0\] needs a 'prompt'"),
    (TASK + "[[tasks]]\nkey = 3\nprompt = 'x'\n", r"plan.toml:4 tasks\[1\] needs a 'key'"),
    (TASK + "kind = 'compensate'\n", r"made by `holdfast undo` alone"),
    (TASK + "kind = 'plan'\n", r"made by `holdfast run` alone"),
    ("[[tasks]]\nkey = 'a'\nkind = 'verify'\n", r"a verify task needs 'checks'"),
    (TASK + "creates = ['../x']\n", r"creates\[0\]: '../x' is no path inside the repository"),
    (TASK + "merges = 3\n", r"unknown key 'merges'"),
    (TASK + "kind = 'robot'\n", r"tasks\[0\]: Invalid enum value 'robot'"),
    (TASK + "requires = 'b'\n", r"tasks\[0\]: Expected `array`"),
    (TASK + "priority = 'asap'\n", r"tasks\[0\]: priority is 'asap' \(known: urgent, high, normal"),
    (TASK + "compensates = 3\n", r"unknown key 'compensates'"),
    ("[[tasks]]\nkey = 'a'\nkind = 'shell'\n", r"a shell task needs a 'command'"),
    ("policy = 3\n" + TASK, r"plan.toml: policy is not a table"),
    ("[policy]\nmax_turn = 3\n" + TASK, r"plan.toml policy: unknown key 'max_turn'"),
    ("[policy]\nmax_turns = 'x'\n" + TASK, r"plan.toml policy: Expected `int`"),
    (TASK + "policy = 'x'\n", r"plan.toml:1 tasks\[0\]: policy is not a table"),
    (TASK + TASK, r"plan.toml:4 tasks\[1\]: the key 'a' is taken by plan.toml:1 tasks\[0\]"),
    (TASK + "requires = ['z']\n", r"plan.toml:1 tasks\[0\]: task 'a' requires 'z'"),
    (TASK + "requires = ['a']\n", r"tasks\[0\]: task 'a' requires itself"),
    (
        TASK + "[[tasks]]\nkey='b'\nprompt='x'\nrequires=['c']\n"
        "[[tasks]]\nkey='c'\nprompt='x'\nrequires=['b']\n",
        r"the plan has a cycle: b → c → b",
    ),
]


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_a_wrong_plan_is_refused_with_its_position(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        read(tmp_path, text)


def test_a_file_that_cannot_be_a_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"cannot read the plan .*No such file"):
        read_plan(tmp_path / "none.toml", policy=Policy())
    with pytest.raises(Refused, match="cannot read the plan"):
        read_plan(tmp_path, policy=Policy())
    (tmp_path / "bytes.toml").write_bytes(b"key = '\xff'")
    with pytest.raises(Refused, match="not UTF-8: byte 7"):
        read_plan(tmp_path / "bytes.toml", policy=Policy())
    with pytest.raises(Refused, match="holds no object"):
        read(tmp_path, "[1]", "plan.json")
    for text in ("{", "[" * 50_000, "9" * 5_000):
        for name in ("plan.json", "plan.toml"):
            with pytest.raises(Refused, match=rf"{name} cannot be read"):
                read(tmp_path, f"a = {text}" if name == "plan.toml" else text, name)
    with pytest.raises(Refused, match="larger than"):
        read_plan(Path("/dev/zero"), policy=Policy())


def test_a_plan_has_a_largest_size(tmp_path: Path) -> None:
    tasks = [{"key": f"k{n}", "prompt": "x"} for n in range(TASKS_MAX + 1)]
    with pytest.raises(Refused, match=f"at most {TASKS_MAX}"):
        read(tmp_path, json.dumps({"tasks": tasks}), "plan.json")
    assert len(read_plan_of(tmp_path, json.dumps({"tasks": tasks[1:]}), "plan.json").tasks) == 1000
    with pytest.raises(Refused, match="larger than"):
        read(tmp_path, "#" * (FILE_BYTES_MAX + 1))
