"""With retrieval, map, pins and index off or empty, a bundle is bit for bit what it was (C33).

The files beside this one were written by the code as it was before the context engine existed. What
has come since is in the bundle as well, switched off; nothing that was there may differ.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.briefing import Related, Surroundings, brief
from holdfast.agent.conversation import encode
from holdfast.domain.model import Budget, Claim, Fence, TaskSpec

FOLDER = Path(__file__).parent
FILES = {
    "src/app.py": "def main():\n    return 1\n" * 40,
    "README.md": "# App\n\nWords about it.\n",
    **{f"src/part_{number}.py": "x = 1\n" for number in range(30)},
}


def claim() -> Claim:
    return Claim(
        fence=Fence(task=3, attempt=1, take=1, goal=1),
        spec=TaskSpec(
            key="fix",
            title="Fix it",
            prompt="Fix main.",
            checks=("true",),
            files=("src/app.py",),
            priority=0,
        ),
        goal_text="Make the app work",
        repository="/nowhere",
        branch="holdfast/goal-1",
        model="scripted:none",
        base_commit="",
        base_tree="",
        bundle_sha256="",
        seed=7,
        budget=Budget(),
        lease_s=5.0,
    )


def around() -> Surroundings:
    def related(key: str, kind: str, answer: str) -> Related:
        return Related(key=key, kind=kind, title=f"Do {key}", state="succeeded", answer=answer)

    return Surroundings(
        files=sorted(FILES),
        read=FILES.get,
        related=[
            related("design", "requires", "The answer is in src/app.py.\nUse two lines.\n" * 30),
            related("notes", "refers", "Somebody noted this."),
            related("other", "plan", "Not shown."),
        ],
        reflection="$ true\nit failed",
    )


@pytest.mark.parametrize("budget", [8000, 700])
def test_a_plain_bundle_is_what_it_always_was(budget: int) -> None:
    made = brief(claim(), around(), model="scripted:none", tools=(), budget_tokens=budget)
    was = json.loads((FOLDER / f"plain_bundle_{budget}.json").read_bytes())
    now = json.loads(encode(made))
    assert only_what_was(was, now) == was
    assert only_what_was(was, {**now, "user": now["user"] + " "}) != was, "the comparison catches"


def only_what_was(was: Any, now: Any) -> Any:
    """A value without the fields that did not exist then."""
    if isinstance(was, dict):
        return {key: only_what_was(was[key], now[key]) for key in was}
    if isinstance(was, list):
        assert len(was) == len(now)
        return [only_what_was(one, other) for one, other in zip(was, now, strict=True)]
    return now
