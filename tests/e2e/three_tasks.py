"""A goal of three tasks in a row that several proofs share: `one` and `two` write, `three` shifts.

The script is unique in its calls, so a call in the ledger names its step. `two` writes line 2 of
list.txt; `three` puts a line before it.
"""

from pathlib import Path

from e2e.support import calls, says

FILES = {"list.txt": "a\nz\n", "README.md": "# Thing\n", ".gitignore": "*.tmp\n"}
GOAL = "Order the list"
SCRIPT = {
    "rules": [
        {
            "when": "# Task: Task one",
            "replies": [
                calls(("read_file", {"path": "list.txt"})),
                calls(("write_file", {"path": "one.txt", "content": "one\n"})),
                says("One is there."),
            ],
        },
        {
            "when": "# Task: Task two",
            "replies": [
                calls(("run_command", {"command": "sed -i '1a middle' list.txt"})),
                calls(("note", {"text": "two"})),
                says("The middle is there."),
            ],
        },
        {
            "when": "# Task: Task three",
            "replies": [
                calls(("run_command", {"command": "sed -i '1i top' list.txt; echo >> one.txt"})),
                says("The top is there."),
            ],
        },
    ]
}
# The same without the tool that only the driver has, for the command line.
PLAIN_SCRIPT = {
    "rules": [
        {**rule, "replies": [r for r in rule["replies"] if "note" not in str(r.get("calls"))]}
        for rule in SCRIPT["rules"]
    ]
}
PLAN = """
[[tasks]]
key = "one"
title = "Task one"
prompt = "Write one.txt."
checks = ["test -f one.txt"]

[[tasks]]
key = "two"
title = "Task two"
prompt = "Put middle into list.txt."
requires = ["one"]
checks = ["grep -q middle list.txt"]

[[tasks]]
key = "three"
title = "Task three"
prompt = "Put top into list.txt."
requires = ["two"]
checks = ["test $(head -n 1 list.txt) = top"]
"""


def write_plan(folder: Path) -> Path:
    path = folder / "plan.toml"
    path.write_text(PLAN, encoding="utf-8")
    return path
