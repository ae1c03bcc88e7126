"""The lease of an attempt and its end: a renewal that comes after settling stops nothing."""

from pathlib import Path

import pytest

from e2e.support import Cli, broken_invariants, calls, git, make_repo, says, script, write_script


@pytest.mark.parametrize("lease_s", ["0.006", "5"])
def test_a_renewal_due_while_an_attempt_settles_does_not_end_the_worker(
    tmp_path: Path, lease_s: str
) -> None:
    """Renewed every 2 ms, one renewal always finds the attempt ended before its work is shown."""
    repo = make_repo(tmp_path / "repo", {"README.md": "# Thing\n"})
    write = calls(("write_file", {"path": "x.txt", "content": "x\n"}))
    model = write_script(tmp_path / "script.json", script(write, says("It is there.")))
    cli = Cli(repo, {"HOLDFAST_LEASE_S": lease_s})
    done = cli("run", "Make x.txt", "--model", model, "--check", "test -f x.txt", "--json")
    assert done.code == 0, done.err
    assert git(repo, "show", f"{done.result['branch']}:x.txt") == "x"
    assert broken_invariants(cli.store) == []
