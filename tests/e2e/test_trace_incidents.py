"""An incident of a run is listed, inspected and handed to an agent as its next context."""

import json
from pathlib import Path

import pytest

from e2e.support import Cli, calls, make_repo, says, script, write_script

COMMAND = "echo building; echo 'E: total is None in line 7' >&2; exit 3"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A goal that failed: a file was written, a command failed, a check said why."""
    repo = make_repo(tmp_path / "repo", {"a.py": "x = 1\n", "holdfast.toml": "max_takes=1\n"})
    replies = [
        calls(("write_file", {"path": "b.txt", "content": "b\n"})),
        calls(("run_command", {"command": COMMAND})),
        *[says(f"Done, and the password=hunter22hunter is set: {n}.") for n in range(3)],
    ]
    cli = Cli(repo)
    check = "test -f c.txt || { echo c.txt is missing; exit 1; }"
    model = write_script(tmp_path / "model.json", script(*replies))
    done = cli("run", "Make c.txt", "--model", model, "--check", check, "--json")
    assert done.code == 1, done.err
    return cli


def test_an_incident_is_listed_inspected_and_handed_on(cli: Cli) -> None:
    (incident,) = cli("trace", "events", "--type", "failure", "--json").objects
    assert incident["payload"]["error"]["type"] == "logic"
    shown = cli("trace", "why", str(incident["id"]), "--json").result["text"]
    assert "checks_failed" in shown
    assert "stdout: c.txt is missing" in shown, "the last tool's output, from its step"
    assert "+b" in shown, "the last change"
    assert "Done, and the password=[redacted:name:password]" in shown
    assert "hunter22hunter" not in shown
    assert cli("trace", "context").out.strip() == shown.strip()
    small = cli("trace", "context", "--tokens", "150").out
    assert "left out for the budget" in small


def test_the_events_themselves_copy_none_of_it(cli: Cli) -> None:
    stored = json.dumps([event["payload"] for event in cli("trace", "events", "--json").objects])
    assert "c.txt is missing\\n" not in stored
    assert "total is None" not in stored
    assert "Done, and the" not in stored
