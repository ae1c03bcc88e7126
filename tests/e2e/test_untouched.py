"""What belongs to the person is not touched: files, index, HEAD, configuration, hooks."""

import json
import os
import stat
from hashlib import sha256
from pathlib import Path

import pytest

from e2e.support import Cli, git, make_repo, tree, write_script
from e2e.three_tasks import FILES, GOAL, PLAIN_SCRIPT, write_plan

OURS = ("refs/heads/holdfast/", "refs/holdfast/")
HOOKS = (
    "pre-commit", "post-commit", "post-checkout", "post-merge", "reference-transaction",
    "pre-auto-gc", "post-index-change", "fsmonitor-watchman", "post-rewrite", "update",
)  # fmt: skip


def snapshot(repo: Path) -> dict[str, str]:
    """A hash of every file (with its mode and time) but objects, our refs and our folder."""
    found = {}
    for folder, names, files in os.walk(repo):
        here = Path(folder)
        names[:] = [name for name in names if name != ".holdfast"]
        if here == repo / ".git":
            names.remove("objects")
        for name in files:
            path = here / name
            short = path.relative_to(repo).as_posix()
            if short.startswith(tuple(f".git/{ref}" for ref in OURS)):
                continue
            status = path.lstat()
            content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            mode = stat.filemode(status.st_mode)
            found[short] = f"{mode} {status.st_mtime_ns} {sha256(content).hexdigest()}"
    return found


def hostile(repo: Path, touched: Path) -> None:
    """Hooks, filters and monitors that leave a mark when anything runs them."""
    program = repo / ".git" / "hostile"
    program.write_text(f"#!/bin/sh\necho $0 >> {touched}\ncat\n", encoding="utf-8")
    program.chmod(0o755)
    for name in HOOKS:
        hook = repo / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.unlink(missing_ok=True)
        hook.symlink_to(program)
    for key in (
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.smudge",
        "diff.evil.textconv",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "diff.external",
    ):
        git(repo, "config", key, str(program))
    git(repo, "config", "core.hooksPath", str(repo / ".git" / "hooks"))


@pytest.mark.parametrize("trap", [False, True], ids=["plain", "with hostile hooks"])
def test_a_whole_goal_and_its_undo_leave_the_repository_as_it_was(
    tmp_path: Path, trap: bool
) -> None:
    repo = make_repo(tmp_path / "repo", FILES)
    (repo / "README.md").write_text("changed, not added\n", encoding="utf-8")
    (repo / "staged.txt").write_text("staged\n", encoding="utf-8")
    git(repo, "add", "staged.txt")
    (repo / "loose.txt").write_text("nobody knows me\n", encoding="utf-8")
    touched = tmp_path / "touched"
    if trap:
        (repo / ".gitattributes").write_text("* filter=evil diff=evil\n", encoding="utf-8")
        hostile(repo, touched)
    status = "" if trap else git(repo, "status", "--porcelain")  # refreshes the index itself
    before = snapshot(repo)
    touched.unlink(missing_ok=True)
    cli = Cli(repo)
    model = write_script(tmp_path / "model.json", PLAIN_SCRIPT)
    done = cli("run", GOAL, "--plan", str(write_plan(tmp_path)), "--model", model, "--json")
    assert done.code == 0, done.err
    assert done.result["branch"] == "holdfast/goal-1"
    assert "loose.txt" in done.err, "says what was left out"
    assert snapshot(repo) == before
    assert cli("why", "list.txt:3", "--json").code == 0
    assert cli("undo", "1", "--json").result["tree_equal"]
    assert snapshot(repo) == before
    assert not touched.exists(), f"a program of the repository ran: {touched.read_text()}"
    if not trap:
        assert git(repo, "status", "--porcelain") == status, "our folder is invisible to git"
        refs = git(repo, "for-each-ref", "--format=%(refname)").split()
        assert {ref for ref in refs if not ref.startswith(OURS)} == {"refs/heads/main"}
        git(repo, "fsck", "--strict", "--no-dangling")


def test_the_check_would_see_a_change(tmp_path: Path) -> None:
    """The mutants of `snapshot`: a byte, a mode, a new hook, a moved HEAD."""
    repo = make_repo(tmp_path / "repo", FILES)
    seen = [snapshot(repo)]
    (repo / "list.txt").write_text("a\nZ\n", encoding="utf-8")
    seen.append(snapshot(repo))
    (repo / "list.txt").chmod(0o755)
    seen.append(snapshot(repo))
    (repo / ".git" / "hooks").mkdir(exist_ok=True)
    (repo / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\n", encoding="utf-8")
    seen.append(snapshot(repo))
    git(repo, "checkout", "-q", "-b", "other")
    seen.append(snapshot(repo))
    assert len({json.dumps(each, sort_keys=True) for each in seen}) == len(seen)


def test_a_dirty_tree_is_left_out_and_named(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", FILES)
    (repo / "list.txt").write_text("other\n", encoding="utf-8")
    model = write_script(tmp_path / "model.json", PLAIN_SCRIPT)
    cli = Cli(repo)
    done = cli("run", GOAL, "--plan", str(write_plan(tmp_path)), "--model", model, "--json")
    assert done.code == 0
    assert "works from HEAD; left out: list.txt" in done.err
    assert (repo / "list.txt").read_text() == "other\n"


def test_a_folder_that_is_no_repository_is_worked_on_as_a_private_copy(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    cli = Cli(folder, {"GIT_CEILING_DIRECTORIES": str(tmp_path)})
    model = write_script(tmp_path / "model.json", PLAIN_SCRIPT)
    done = cli("run", GOAL, "--plan", str(write_plan(tmp_path)), "--model", model, "--json")
    assert done.code == 0, done.err
    assert "private copy" in done.err
    assert not (folder / ".git").exists()
    assert (folder / "list.txt").read_text() == FILES["list.txt"]
    copy = folder / ".holdfast" / "source.git"
    assert tree(copy, done.result["branch"]) != tree(copy, "main")
    assert cli("why", "list.txt:3", "--json").result["task"] == "two"
    assert cli("undo", "1", "--json").result["tree_equal"]


def test_a_branch_that_cannot_be_made_leaves_the_work_where_it_is_said_to_be(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "repo", FILES)
    git(repo, "branch", "holdfast")
    branches = git(repo, "for-each-ref", "refs/heads")
    cli = Cli(repo)
    model = write_script(tmp_path / "model.json", PLAIN_SCRIPT)
    done = cli("run", GOAL, "--plan", str(write_plan(tmp_path)), "--model", model, "--json")
    assert done.code == 0, done.err
    assert "the work is at refs/holdfast/goals/1" in done.err
    assert done.result["branch"] == "refs/holdfast/goals/1"
    assert git(repo, "show", "refs/holdfast/goals/1:list.txt").split() == [
        "top",
        "a",
        "middle",
        "z",
    ]
    assert git(repo, "for-each-ref", "refs/heads") == branches
    git(repo, "branch", "-D", "holdfast")
    again = cli("resume", "1", "--json")
    assert again.code == 0, "once it is gone, the branch is shown"
    assert again.result["branch"] == "holdfast/goal-1"
    assert tree(repo, "holdfast/goal-1") == tree(repo, "refs/holdfast/goals/1")


def test_a_branch_of_the_goals_name_that_is_there_already_gets_a_sibling(tmp_path: Path) -> None:
    """As a store leaves behind that was deleted, or that lives elsewhere."""
    repo = make_repo(tmp_path / "repo", FILES)
    for taken in ("holdfast/goal-1", "holdfast/goal-1-2"):
        git(repo, "checkout", "-q", "-b", taken)
        git(repo, "commit", "-q", "--allow-empty", "-m", "mine")
        git(repo, "checkout", "-q", "main")
    before = git(repo, "for-each-ref", "refs/heads")
    cli = Cli(repo)
    model = write_script(tmp_path / "model.json", PLAIN_SCRIPT)
    done = cli("run", GOAL, "--plan", str(write_plan(tmp_path)), "--model", model, "--json")
    assert done.code == 0, done.err
    assert done.result["branch"] == "holdfast/goal-1-3"
    assert tree(repo, "holdfast/goal-1-3") == tree(repo, "refs/holdfast/goals/1")
    assert set(before.splitlines()) < set(git(repo, "for-each-ref", "refs/heads").splitlines())
