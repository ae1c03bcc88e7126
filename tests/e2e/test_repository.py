"""The user's repository: nothing of it changes but refs and objects, and nothing of it runs."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from holdfast.adapters.repository import Repository
from holdfast.adapters.sandbox import open_sandbox
from holdfast.adapters.workspace import TaskWorkspace
from holdfast.errors import NotFound, Refused

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    **{f"GIT_{r}_{f}": "a@b" for r in ("AUTHOR", "COMMITTER") for f in ("NAME", "EMAIL")},
}
HOOKS = (
    "post-checkout post-commit pre-commit reference-transaction post-merge post-index-change "
    "post-rewrite pre-auto-gc fsmonitor-watchman update post-update pre-receive post-receive"
)


def git(where: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=where, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    git(folder, "--literal-pathspecs", "add", "--", name)
    git(folder, "commit", "-qm", f"change {name}")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def user(tmp_path: Path) -> Path:
    folder = tmp_path / "user"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "a", "one\ntwo\n")
    return folder


def opened(repository: Repository, tmp_path: Path, task: str = "1") -> TaskWorkspace:
    home = tmp_path / "home/tasks" / task
    return TaskWorkspace.create(
        home / "git",
        home / "take-1",
        repository,
        base=repository.head(),
        sandbox=open_sandbox(redact=str),
        redact=str,
        task=task,
    )


def work(workspace: TaskWorkspace, parent: str | None, text: str = "three\n") -> str:
    with (workspace.root / "a").open("a") as file:
        file.write(text)
    parents = [parent] if parent else []
    return workspace.commit(workspace.stage(), parents=parents, message="work", when_ms=1000)


def fingerprint(folder: Path) -> dict[str, str]:
    """Everything in and around a repository but refs and objects."""
    found = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).as_posix()
        if inside.startswith((".git/objects", ".git/refs")) or not path.is_file():
            continue
        status = path.stat()
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[inside] = f"{content} {status.st_mode} {status.st_mtime_ns}"
    return found


# --- hostile settings -----------------------------------------------------------------------------


def make_hostile(user: Path, evil: Path) -> None:
    """Every program git could start from this repository leaves a mark."""
    script = user.parent / "evil.sh"
    script.write_text(f'#!/bin/sh\necho "$0 $*" >> {evil}\ncat\n')
    script.chmod(0o755)
    hooks = user.parent / "hooks"
    hooks.mkdir()
    for place in (hooks, user / ".git/hooks"):
        place.mkdir(exist_ok=True)
        for hook in HOOKS.split():
            (place / hook).write_text(script.read_text())
            (place / hook).chmod(0o755)
    commit(user, ".gitattributes", "* filter=evil diff=evil merge=evil\n")
    for name, value in {
        "core.hooksPath": str(hooks),
        "core.fsmonitor": str(script),
        "core.pager": str(script),
        "core.editor": str(script),
        "core.sshCommand": str(script),
        "core.alternateRefsCommand": str(script),
        "filter.evil.clean": str(script),
        "filter.evil.smudge": str(script),
        "filter.evil.process": str(script),
        "filter.evil.required": "true",
        "diff.evil.textconv": str(script),
        "diff.evil.command": str(script),
        "diff.external": str(script),
        "merge.evil.driver": str(script),
        "gpg.program": str(script),
        "commit.gpgSign": "true",
        "log.showSignature": "true",
        "uploadpack.packObjectsHook": str(script),
        "url.ext::sh.insteadOf": "/",
        "gc.auto": "1",
    }.items():
        git(user, "config", name, value)
    evil.unlink(missing_ok=True)


def test_nothing_of_the_user_runs_and_nothing_but_refs_and_objects_changes(
    user: Path, tmp_path: Path
) -> None:
    evil = tmp_path / "ran"
    make_hostile(user, evil)
    (user / "a").write_text("one\ntwo\ndirty\n")
    (user / "untracked").write_text("x")
    os.utime(user / ".gitattributes", (1, 1))
    before = fingerprint(user)
    repository = Repository.open(user)
    head = repository.head()
    assert head is not None
    assert {"a", "untracked"} <= set(repository.dirty())
    workspace = opened(repository, tmp_path)
    made = work(workspace, head)
    repository.keep("refs/holdfast/goal/1", head)
    repository.fetch_branch(workspace.git_dir, made, "holdfast/goal-1")
    assert repository.branch_commit("holdfast/goal-1") == made
    line = repository.blame(made, "a", 3)
    assert line is not None
    assert (line.commit, line.text) == (made, "three")
    assert repository.blob(made, "a") == b"one\ntwo\nthree\n"
    assert repository.commit_message(made) == "work\n"
    repository.tree_of(made)
    workspace.restore(workspace.stage())
    workspace.merge(head, made, head)
    assert not evil.exists(), evil.read_text()
    assert fingerprint(user) == before
    assert not (user / ".git/FETCH_HEAD").exists()


def test_plain_git_would_have_run_them(user: Path, tmp_path: Path) -> None:
    """The mutant: without our settings, the same questions start the user's programs."""
    evil = tmp_path / "ran"
    make_hostile(user, evil)
    os.utime(user / "a", (1, 1))
    subprocess.run(["git", "status"], cwd=user, env=ENVIRONMENT, capture_output=True, check=False)
    assert evil.exists()


def test_a_filter_whose_name_cannot_be_switched_off_is_refused(user: Path) -> None:
    git(user, "config", "filter.a=b.clean", "touch x")
    repository = Repository.open(user)
    with pytest.raises(Refused, match="filter"):
        repository.dirty()


# --- opening --------------------------------------------------------------------------------------


def test_a_repository_is_found_from_inside_it(user: Path) -> None:
    (user / "deep").mkdir()
    repository = Repository.open(user / "deep")
    assert repository.work_tree == user
    assert repository.git_dir == user / ".git"


def test_what_is_no_repository_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        Repository.open(tmp_path)
    assert caught.value.code == "no_repository"
    with pytest.raises(NotFound):
        Repository.open(tmp_path / "none")


def test_a_repository_git_itself_refuses_is_refused(user: Path) -> None:
    (user / ".git/config").write_text("[broken\n")
    with pytest.raises(Refused):
        Repository.open(user)


def test_a_bare_repository_and_a_linked_worktree_work(user: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(user), "bare.git")
    bare = Repository.open(tmp_path / "bare.git")
    assert bare.dirty() == []
    workspace = opened(bare, tmp_path)
    bare.fetch_branch(workspace.git_dir, work(workspace, bare.head()), "goal")
    git(user, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    linked = Repository.open(tmp_path / "side")

    again = opened(linked, tmp_path, "2")
    linked.fetch_branch(again.git_dir, work(again, linked.head()), "from-side")
    assert Repository.open(user).branch_commit("from-side")


def test_dirty_names_what_a_task_will_not_see(user: Path) -> None:
    repository = Repository.open(user)
    assert repository.dirty() == []
    (user / "a").write_text("changed\n")
    (user / "odd\nname").write_text("x")
    commit_before = repository.head()
    git(user, "mv", "-k", "a", "b")
    assert repository.dirty() == ["a", "b", "odd\nname"]
    assert repository.head() == commit_before


def test_a_shallow_clone_works(user: Path, tmp_path: Path) -> None:
    commit(user, "a", "one\ntwo\nmore\n")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{user}", "shallow")
    repository = Repository.open(tmp_path / "shallow")
    workspace = opened(repository, tmp_path)
    made = work(workspace, repository.head())
    repository.fetch_branch(workspace.git_dir, made, "goal")
    assert repository.branch_commit("goal") == made


def test_the_repositorys_own_excludes_hold_in_a_task(user: Path, tmp_path: Path) -> None:
    (user / ".git/info").mkdir(exist_ok=True)
    (user / ".git/info/exclude").write_text("secret-local\n")
    workspace = opened(Repository.open(user), tmp_path)
    before = workspace.stage()
    (workspace.root / "secret-local").write_text("x")
    assert workspace.stage() == before


def test_paths_with_odd_characters_are_borrowed_from(tmp_path: Path) -> None:
    folder = tmp_path / 'odd "quoted" \\ name'
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, "a", "x\n")
    repository = Repository.open(folder)
    assert (opened(repository, tmp_path).root / "a").read_text() == "x\n"


# --- refs and branches ----------------------------------------------------------------------------


def test_a_base_is_kept_from_garbage_collection(user: Path, tmp_path: Path) -> None:
    repository = Repository.open(user)
    base = commit(user, "a", "to be dropped\n")
    workspace = opened(repository, tmp_path)
    git(user, "reset", "-q", "--hard", "HEAD~1")
    git(user, "reflog", "expire", "--expire=now", "--all")
    git(user, "gc", "-q", "--prune=now")
    workspace.restore(workspace.tree_of(base))
    assert (workspace.root / "a").read_text() == "to be dropped\n"


def test_a_base_is_kept_however_git_stores_the_ref_and_whatever_became_of_it(user: Path) -> None:
    repository = Repository.open(user)
    head, ref = repository.head(), "refs/holdfast/base/1"
    assert head is not None
    other = git(user, "commit-tree", "-m", "other", f"{head}^{{tree}}")
    for disturb in (("pack-refs", "--all"), ("update-ref", "-d", ref), ("update-ref", ref, other)):
        repository.keep(ref, head)
        assert git(user, "rev-parse", ref) == head
        git(user, *disturb)
    repository.keep(ref, head)
    assert git(user, "rev-parse", ref) == head


def test_only_our_own_refs_are_written(user: Path) -> None:
    repository = Repository.open(user)
    head = repository.head()
    assert head is not None
    with pytest.raises(Refused):
        repository.keep("refs/heads/x", head)


def test_a_branch_is_fetched_once_and_moves_only_forward(user: Path, tmp_path: Path) -> None:
    repository = Repository.open(user)
    workspace = opened(repository, tmp_path)
    first = work(workspace, repository.head())
    second = work(workspace, first, "four\n")
    repository.fetch_branch(workspace.git_dir, first, "goal")
    repository.fetch_branch(workspace.git_dir, first, "goal")
    repository.fetch_branch(workspace.git_dir, second, "goal")
    assert repository.branch_commit("goal") == second
    with pytest.raises(Refused, match="does not know"):
        repository.fetch_branch(workspace.git_dir, first, "goal")
    assert git(user, "fsck", "--strict") == ""


def test_a_branch_that_is_checked_out_is_never_moved(user: Path, tmp_path: Path) -> None:
    repository = Repository.open(user)
    workspace = opened(repository, tmp_path)
    made = work(workspace, repository.head())
    git(user, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    for branch in ("main", "side"):
        with pytest.raises(Refused) as caught:
            repository.fetch_branch(workspace.git_dir, made, branch)
        assert caught.value.hint
    with pytest.raises(Refused, match="no branch name"):
        repository.fetch_branch(workspace.git_dir, made, "a..b")


def test_blame_and_blob_answer_none_for_what_is_not_there(user: Path) -> None:
    repository = Repository.open(user)
    head = repository.head()
    assert head is not None
    assert repository.blame(head, "a", 99) is None
    assert repository.blame(head, "none", 1) is None
    assert repository.blob(head, "none") is None
    assert repository.branch_commit("none") is None
    head = commit(user, ":(top)x", "odd\n")
    assert repository.blob(head, ":(top)x") == b"odd\n"
    odd = repository.blame(head, ":(top)x", 1)
    assert odd is not None
    assert odd.text == "odd"
    head = repository.branch_commit("main~1") or ""
    line = repository.blame(head, "a", 2)
    assert line is not None
    assert (line.commit, line.line, line.path, line.text) == (head, 2, "a", "two")


# --- folders that are no repository ---------------------------------------------------------------


def test_a_folder_is_copied_once_and_again_only_when_it_changed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "nested").mkdir(parents=True)
    (folder / "a").write_text("x\n")
    (folder / "b.o").write_text("x\n")
    (folder / ".gitignore").write_text("*.o\n")
    (folder / "sub/.holdfast").mkdir(parents=True)
    (folder / "sub/.holdfast/s").write_text("x")
    git(folder / "nested", "init", "-q")
    (folder / "nested/f").write_text("x")
    home = folder / ".holdfast"
    first = Repository.copy_of(folder, home)

    head = first.head()
    assert head is not None
    assert git(home / "source.git", "ls-tree", "-r", "--name-only", head).split() == [
        ".gitignore",
        "a",
    ]
    assert Repository.copy_of(folder, home).head() == head
    (folder / "a").write_text("y\n")
    second = Repository.copy_of(folder, home)
    assert git(home / "source.git", "rev-parse", f"{second.head()}^") == head
    assert (folder / "nested/.git").is_dir()
    workspace = opened(second, tmp_path)
    second.fetch_branch(workspace.git_dir, work(workspace, second.head()), "goal")
    assert second.dirty() == []


def test_an_empty_folder_is_an_empty_tree(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    repository = Repository.copy_of(folder, tmp_path / "home")
    head = repository.head()
    assert head is not None
    assert repository.tree_of(head) == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
