"""Whole loops of hosted providers through the real command line, in one goal and one process.

Each dialect alone, turn by turn, is `conformance/test_providers.py`'s.
"""

from pathlib import Path

import pytest

from e2e.aimock import aimock
from e2e.support import Cli, broken_invariants, make_repo

PLACES = {
    "cohere": ("CO_API_KEY", "CO_BASE_URL", ""),
    "google": ("GOOGLE_API_KEY", "GOOGLE_BASE_URL", ""),
    "groq": ("GROQ_API_KEY", "GROQ_BASE_URL", ""),
    "openai-responses": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
}
CALL = {"name": "write_file", "arguments": '{"path":"x.txt","content":"1\\n"}'}
FIXTURES = [
    {
        "match": {"hasToolResult": False},
        "response": {"content": "Let me look.", "toolCalls": [CALL]},
    },
    {"match": {"hasToolResult": True}, "response": {"content": "Done."}},
]


@pytest.mark.slow
def test_a_goal_whose_tasks_name_four_dialects_passes_and_replays(tmp_path: Path) -> None:
    """The goal itself names no model, and the check of the whole needs none."""
    repo = make_repo(tmp_path / "repo", {"README.md": "# Thing\n"})
    task = '[[tasks]]\nkey = "{0}"\nprompt = "Make x.txt"\nmodel = "{0}:gpt-4o"\n'
    task += 'checks = ["test -f x.txt"]\n'
    plan = tmp_path / "plan.toml"
    plan.write_text("".join(task.format(name) for name in PLACES), encoding="utf-8")
    with aimock(FIXTURES, tmp_path / "peer") as peer:
        environ = {}
        for key, address, path in PLACES.values():
            environ |= {key: "test-key", address: peer.url + path}
        cli = Cli(repo, environ)
        words = ("run", "All", "--plan", str(plan), "--slots", "2")
        done = cli(*words, "--check", "test -f x.txt", "--json")
    assert (done.code, done.result["outcome"]) == (0, "passed"), done.err
    asked = cli.store.rows("SELECT DISTINCT model FROM attempts WHERE model <> '' ORDER BY 1")
    assert [row["model"].partition(":")[0] for row in asked] == sorted(PLACES)
    assert broken_invariants(cli.store) == []
    for row in done.result["tasks"]:
        assert cli("replay", row["attempt"], "--json").result["equal"] is True
