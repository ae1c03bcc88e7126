"""Private git directories over real git: exact trees, hostile working files, real SIGKILL."""

import asyncio
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters import throwaway
from holdfast.adapters.git import Git, GitFailed
from holdfast.adapters.locks import held
from holdfast.adapters.repository import Repository
from holdfast.adapters.sandbox import open_sandbox
from holdfast.adapters.workspace import TaskWorkspace
from holdfast.domain.ports import CommandResult
from holdfast.errors import Refused

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    **{f"GIT_{r}_{f}": "a@b" for r in ("AUTHOR", "COMMITTER") for f in ("NAME", "EMAIL")},
}


def git(where: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=where, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A user's repository with one commit."""
    folder = tmp_path / "user"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "a").write_text("one\n")
    (folder / "src/b").write_text("two\n")
    (folder / ".gitignore").write_text("*.o\ncache/\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def opened(user: Path, tmp_path: Path, *, root: str = "take-1", **more: Any) -> TaskWorkspace:
    repository = Repository.open(user)
    task = tmp_path / "home/tasks/7"
    return TaskWorkspace.create(
        task / "git",
        task / root,
        repository,
        base=repository.head(),
        sandbox=open_sandbox(redact=str, hidden=[tmp_path / "home"]),
        redact=str,
        task="7",
        **more,
    )


@pytest.fixture
def workspace(user: Path, tmp_path: Path) -> TaskWorkspace:
    return opened(user, tmp_path)


def run(workspace: TaskWorkspace, command: str) -> CommandResult:
    return asyncio.run(workspace.sandbox.run(command, root=workspace.root, timeout_s=30))


def files(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below `root` but for the throwaway: type and mode, content or link target."""
    found = {}
    for directory, names, leaves in os.walk(os.fsencode(root)):
        if b".git" in names:
            names.remove(b".git")
        for leaf in leaves + [name for name in names if os.path.islink(directory + b"/" + name)]:
            path = directory + b"/" + leaf
            status = os.lstat(path)
            link = stat.S_ISLNK(status.st_mode)
            content = os.readlink(path) if link else Path(os.fsdecode(path)).read_bytes()
            found[os.fsdecode(os.path.relpath(path, os.fsencode(root)))] = (
                stat.S_IFMT(status.st_mode) if link else status.st_mode,
                content,
            )
    return found


# --- trees ----------------------------------------------------------------------------------------


def test_a_new_workspace_holds_the_base_and_stages_to_its_tree(
    workspace: TaskWorkspace, user: Path
) -> None:
    assert files(workspace.root) == files(user)
    assert workspace.stage() == git(user, "rev-parse", "HEAD^{tree}")
    assert stat.S_IMODE(workspace.git_dir.stat().st_mode) == 0o700
    refs = git(workspace.git_dir, "for-each-ref", "--format=%(refname)").split()
    assert refs == ["refs/holdfast/7/1", "refs/holdfast/base"]


def test_stage_then_restore_brings_every_file_back(workspace: TaskWorkspace) -> None:
    root = workspace.root
    base = workspace.stage()
    (root / "a").write_text("changed\n")
    (root / "src/b").unlink()
    (root / "new/deep").mkdir(parents=True)
    (root / "new/deep/file").write_bytes(b"\0\r\n\xff")
    (root / "run.sh").chmod(0o644)
    (root / "link").symlink_to("/etc/passwd")
    (root / "odd\nname").write_text("x")
    (root / "-rf").write_text("x")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff\xfe")).write_text("x")
    (root / "x.o").write_text("ignored")
    before = files(root)
    tree = workspace.stage()
    workspace.restore(base)
    assert sorted(os.listdir(root)) == [".git", ".gitignore", "a", "run.sh", "src", "x.o"]
    assert os.access(root / "run.sh", os.X_OK)
    workspace.restore(tree)
    assert files(root) == before
    assert workspace.stage() == tree
    assert {name: status for status, name in workspace.changed(base, tree)} == {
        "-rf": "A",
        "a": "M",
        "link": "A",
        "new/deep/file": "A",
        "odd\nname": "A",
        "run.sh": "M",
        "src/b": "D",
        "\udcff\udcfe": "A",
    }
    assert "-one\n+changed\n" in workspace.diff(base, tree).text


def test_ignored_files_stay(workspace: TaskWorkspace) -> None:
    base = workspace.stage()
    (workspace.root / "cache").mkdir()
    (workspace.root / "cache/c").write_text("c")
    (workspace.root / "x.o").write_text("o")
    assert workspace.stage() == base
    workspace.restore(base)
    assert (workspace.root / "cache/c").read_text() == "c"


def test_a_change_that_keeps_size_and_time_is_staged(workspace: TaskWorkspace) -> None:
    base = workspace.stage()
    run(workspace, "touch -r a /tmp/t; printf 'ONE\\n' > a; touch -r /tmp/t a")
    assert workspace.stage() != base


def test_directories_turned_into_links_or_files_and_back_are_exact(
    workspace: TaskWorkspace, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b").write_text("outside\n")
    base = workspace.stage()
    shutil.rmtree(workspace.root / "src")
    (workspace.root / "src").symlink_to(outside)
    linked = workspace.stage()
    assert dict(workspace.changed(base, linked)) == {"D": "src/b", "A": "src"}
    workspace.restore(base)
    assert (workspace.root / "src/b").read_text() == "two\n"
    assert (outside / "b").read_text() == "outside\n"
    workspace.restore(linked)
    assert os.readlink(workspace.root / "src") == str(outside)
    (workspace.root / "src").unlink()
    (workspace.root / "src").write_text("file")
    workspace.stage()
    workspace.restore(base)
    assert files(outside)["b"][1] == b"outside\n"


def test_pipes_and_sockets_are_not_staged_and_do_not_stop_staging(
    workspace: TaskWorkspace,
) -> None:
    base = workspace.stage()
    os.mkfifo(workspace.root / "pipe")
    assert workspace.stage() == base
    (workspace.root / "a").unlink()
    os.mkfifo(workspace.root / "a")
    assert workspace.changed(base, workspace.stage()) == [("D", "a")]
    workspace.restore(base)
    assert (workspace.root / "a").read_text() == "one\n"


def test_names_git_refuses_are_left_out(workspace: TaskWorkspace) -> None:
    base = workspace.stage()
    (workspace.root / ".GIT").mkdir()
    (workspace.root / ".GIT/config").write_text("x")
    (workspace.root / "git~1").write_text("x")
    (workspace.root / ".gitmodules").symlink_to("a")
    assert workspace.stage() == base


LOCKED = """
    import asyncio, concurrent.futures.thread, encodings.idna, os, pathlib, sys
    import holdfast.adapters.diffs  # late elsewhere: Python itself may be out of reach below
    from holdfast.adapters.repository import Repository
    from holdfast.adapters.sandbox import open_sandbox
    from holdfast.adapters.workspace import TaskWorkspace
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    home = pathlib.Path(sys.argv[1])
    folder = home / "folder"
    (folder / "d").mkdir(parents=True)
    (folder / "d/e").write_text("x")
    repository = Repository.copy_of(folder, home / "own")
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
    sandbox = open_sandbox(redact=str, environ=environ)
    workspace = TaskWorkspace.create(
        home / "t/git", home / "t/ws", repository, base=repository.head(),
        sandbox=sandbox, redact=str
    )

    def run(command):
        done = asyncio.run(sandbox.run(command, root=workspace.root, timeout_s=30))
        assert done.exit_code == 0, done

    base = workspace.stage()
    run("mkdir -p n/m; echo 1 > n/m/f; chmod 000 n/m; chmod 000 n")
    one = workspace.stage()
    assert workspace.changed(base, one) == [("A", "n/m/f")], workspace.changed(base, one)
    run("echo 2 > g; chmod 000 g; chmod 000 d")
    two = workspace.stage()
    assert workspace.changed(one, two) == [("A", "g")], workspace.changed(one, two)
    run("chmod 555 n/m n; chmod 000 d")
    workspace.restore(base)
    assert sorted(os.listdir(workspace.root)) == [".git", "d"]
    assert workspace.stage() == base
    run("chmod 000 .; true")
    workspace.restore(two)
    assert workspace.stage() == two
"""


def test_rights_a_command_took_away_lose_nothing() -> None:
    """As a user who is not root, since nothing is locked for root."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o777)
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(LOCKED), home], capture_output=True, check=False
        )
    assert done.returncode == 0, done.stderr.decode()


def test_a_large_file_is_staged_and_restored(workspace: TaskWorkspace) -> None:
    big = workspace.root / "big"
    with big.open("wb") as file:
        file.truncate(40_000_000)
        file.write(os.urandom(1000))
    before = big.read_bytes()
    tree = workspace.stage()
    big.unlink()
    workspace.restore(tree)
    assert big.read_bytes() == before


def test_no_conversion_touches_a_file(user: Path, tmp_path: Path) -> None:
    (user / ".gitattributes").write_text(
        "* text=auto eol=crlf ident filter=lfs working-tree-encoding=UTF-16\n"
        "[attr]mine filter=lfs\n*.txt mine text\n"
    )
    blob = git(user, "hash-object", "-w", "--no-filters", ".gitattributes")
    git(user, "update-index", "--add", "--cacheinfo", f"100644,{blob},.gitattributes")
    git(user, "commit", "-qm", "attributes")
    workspace = opened(user, tmp_path)
    content = b"$Id$ a\r\nb\nc\r\n\xff"
    (workspace.root / "f.txt").write_bytes(content)
    tree = workspace.stage()
    (workspace.root / "f.txt").unlink()
    workspace.restore(tree)
    assert (workspace.root / "f.txt").read_bytes() == content
    assert Repository.open(user).blob(git(user, "rev-parse", "HEAD"), "a") == b"one\n"


def test_a_repository_without_commits_starts_from_the_empty_tree(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    workspace = opened(empty, tmp_path)
    base = workspace.stage()
    assert base == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    (workspace.root / "first").write_text("x")
    tree = workspace.stage()
    commit = workspace.commit(tree, parents=[], message="first", when_ms=5000)
    repository = Repository.open(empty)
    assert repository.head() is None
    repository.fetch_branch(workspace.git_dir, commit, "goal")
    assert repository.branch_commit("goal") == commit
    workspace.restore(base)
    assert os.listdir(workspace.root) == [".git"]


def test_a_sha256_repository_works(tmp_path: Path) -> None:
    folder = tmp_path / "sha256"
    folder.mkdir()
    git(folder, "init", "-q", "--object-format=sha256")
    (folder / "a").write_text("x")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    workspace = opened(folder, tmp_path)
    assert len(workspace.stage()) == 64


def test_the_same_commit_has_the_same_id(workspace: TaskWorkspace) -> None:
    tree = workspace.stage()
    more = {"parents": [], "message": "m\n\nGoal: 1\n", "when_ms": 1_700_000_000_123}
    first = workspace.commit(tree, **more)
    assert first == workspace.commit(tree, **more)

    shown = git(workspace.git_dir, "cat-file", "commit", first)
    assert "Holdfast <holdfast@localhost> 1700000000 +0000" in shown
    assert shown.endswith("Goal: 1")


def test_merging_takes_both_sides_or_names_the_conflict(workspace: TaskWorkspace) -> None:
    base = workspace.stage()
    (workspace.root / "a").write_text("ours\n")
    ours = workspace.stage()
    workspace.restore(base)
    (workspace.root / "src/b").write_text("theirs\n")
    theirs = workspace.stage()
    merged = workspace.merge(base, ours, theirs)
    assert merged.tree is not None
    workspace.restore(merged.tree)
    assert (workspace.root / "a").read_text() == "ours\n"
    assert (workspace.root / "src/b").read_text() == "theirs\n"
    (workspace.root / "a").write_text("both\n")
    clash = workspace.merge(base, ours, workspace.stage())
    assert (clash.tree, clash.conflicts) == (None, ("a",))


def test_objects_and_ref_reach_the_disk_before_stage_returns(
    workspace: TaskWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.adapters import git as module

    def flushes() -> int:
        trace = tmp_path / "trace"
        trace.write_text("")
        monkeypatch.setitem(module._ENVIRONMENT, "GIT_TRACE2_EVENT", str(trace))
        workspace.stage()
        events = [json.loads(line) for line in trace.read_text().splitlines()]
        return sum(
            int(event["value"]) for event in events if event.get("key") == "fsync/hardware-flush"
        )

    for number in range(5):
        (workspace.root / f"new{number}").write_text(str(number))
    # Five blobs, one tree, one ref.
    assert flushes() >= 7
    (workspace.root / "new0").write_text("changed")
    monkeypatch.setitem(module._SETTINGS, "core.fsync", "none")
    assert flushes() == 0


def test_names_reach_the_disk_too(
    workspace: TaskWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def recorded(descriptor: int) -> None:
        synced.append(
            os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), workspace.git_dir)
        )
        real(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    (workspace.root / "new").write_text("new")
    tree = workspace.stage()
    blob = git(workspace.git_dir, "rev-parse", f"{tree}:new")
    wanted = {"objects", f"objects/{tree[:2]}", f"objects/{blob[:2]}", "refs/holdfast/7"}
    assert wanted <= set(synced)


# --- what commands may do -------------------------------------------------------------------------


def test_commands_find_a_repository_of_their_own(workspace: TaskWorkspace) -> None:
    result = run(
        workspace, "git status --short && git log --format=%s && echo x >> a && git diff --stat"
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("base\n")
    assert "1 insertion" in result.stdout
    assert run(workspace, "git commit -qam mine && git log --format=%s").stdout == "mine\nbase\n"
    assert str(workspace.root.parent) not in (workspace.root / ".git/config").read_text()


def test_a_base_over_the_limit_gets_a_repository_without_commits(
    user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throwaway, "FILES_MAX", 1)
    workspace = opened(user, tmp_path)
    assert "No commits yet" in run(workspace, "git status").stdout


def test_the_throwaway_is_never_trusted(workspace: TaskWorkspace, tmp_path: Path) -> None:
    evil = tmp_path / "ran"
    plant = hostile_config(evil)
    base = workspace.stage()
    with (workspace.root / ".git/config").open("a") as config:
        config.write(plant)
    (workspace.root / "a").write_text("x")
    workspace.restore(workspace.stage())
    run(workspace, "rm -rf .git; ln -s / .git")
    workspace.stage()
    workspace.restore(base)
    assert not evil.exists()


def hostile_config(evil: Path) -> str:
    run_it = f'"touch {evil}; true"'
    return (
        f"[core]\n\tfsmonitor = {run_it}\n\tsshCommand = {run_it}\n\teditor = {run_it}\n"
        f'[filter "x"]\n\tclean = {run_it}\n\tsmudge = {run_it}\n\tprocess = {run_it}\n'
        f'\trequired = true\n[diff "x"]\n\ttextconv = {run_it}\n\tcommand = {run_it}\n'
        f"[diff]\n\texternal = {run_it}\n[core]\n\talternateRefsCommand = {run_it}\n"
    )


def test_nested_repositories_are_stripped_and_never_run(
    workspace: TaskWorkspace, tmp_path: Path
) -> None:
    evil = tmp_path / "ran"
    for place in ("nest", "nest/inner", "src/deeper"):
        folder = workspace.root / place
        folder.mkdir(parents=True)
        git(folder, "init", "-q")
        (folder / "file").write_text(place)
        (folder / ".gitattributes").write_text("* filter=x diff=x\n")
        git(folder, "add", "file")
        git(folder, "commit", "-qm", "nested")
        with (folder / ".git/config").open("a") as config:
            config.write(hostile_config(evil))
    workspace.restore(workspace.stage())
    assert (workspace.root / "nest/inner/file").read_text() == "nest/inner"
    assert not list(workspace.root.glob("*/**/.git"))
    assert not evil.exists()


def test_nesting_without_end_is_refused(
    workspace: TaskWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.adapters import staging

    monkeypatch.setattr(staging, "_NESTING_MAX", 1)
    (workspace.root / "nest").mkdir()
    git(workspace.root / "nest", "init", "-q")
    with pytest.raises(Refused, match="nested"):
        workspace.stage()


def test_a_nested_git_that_is_a_link_or_file_is_removed_and_its_target_kept(
    workspace: TaskWorkspace, tmp_path: Path
) -> None:
    real = tmp_path / "real"
    real.mkdir()
    git(real, "init", "-q")
    (workspace.root / "linked").mkdir()
    (workspace.root / "linked/.git").symlink_to(real / ".git")
    (workspace.root / "linked/f").write_text("x")
    (workspace.root / "filed").mkdir()
    (workspace.root / "filed/.git").write_text(f"gitdir: {real}/.git\n")
    (workspace.root / "filed/f").write_text("x")
    workspace.stage()
    assert not (workspace.root / "filed/.git").exists()
    assert not os.path.lexists(workspace.root / "linked/.git")
    assert (real / ".git/HEAD").exists()


def with_submodule(user: Path, tmp_path: Path) -> str:
    """Add a submodule to the user's repository; returns the commit it records."""
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    (library / "lib").write_text("lib\n")
    git(library, "add", ".")
    git(library, "commit", "-qm", "lib")
    commit = git(library, "rev-parse", "HEAD")
    git(user, "update-index", "--add", "--cacheinfo", f"160000,{commit},sub")
    (user / ".gitmodules").write_text('[submodule "sub"]\n\tpath = sub\n\turl = ../library\n')
    git(user, "add", ".gitmodules")
    git(user, "commit", "-qm", "submodule")
    return commit


def test_a_planted_repository_at_a_submodules_path_runs_nothing(user: Path, tmp_path: Path) -> None:
    commit = with_submodule(user, tmp_path)
    workspace = opened(user, tmp_path)
    evil = tmp_path / "ran"
    base = git(user, "rev-parse", "HEAD^{tree}")
    assert workspace.stage() == base
    planted = workspace.root / "sub"
    shutil.copytree(tmp_path / "library", planted, dirs_exist_ok=True)
    (planted / "lib").write_text("changed\n")
    with (planted / ".git/config").open("a") as config:
        config.write(hostile_config(evil))
    (workspace.root / "a").write_text("changed\n")
    tree = workspace.stage()
    assert workspace.changed(base, tree) == [("M", "a")]
    assert f"160000 commit {commit}\tsub" in git(workspace.git_dir, "ls-tree", tree)
    workspace.restore(base)
    assert os.listdir(planted) == []
    assert not evil.exists()


def test_plain_git_would_have_run_the_planted_program(user: Path, tmp_path: Path) -> None:
    """The mutant: `git add -A` with the submodule in the index, as it would be without our care."""
    with_submodule(user, tmp_path)
    workspace = opened(user, tmp_path)
    evil = tmp_path / "ran"
    planted = workspace.root / "sub"
    shutil.copytree(tmp_path / "library", planted, dirs_exist_ok=True)
    with (planted / ".git/config").open("a") as config:
        config.write(f'[core]\n\tfsmonitor = "touch {evil}; true"\n')
    private = ("--git-dir", str(workspace.git_dir), "--work-tree", str(workspace.root))
    git(workspace.root, *private, "read-tree", git(user, "rev-parse", "HEAD"))
    git(workspace.root, *private, "add", "-A")
    assert evil.exists()


def test_a_submodule_replaced_by_files_keeps_its_commit(user: Path, tmp_path: Path) -> None:
    with_submodule(user, tmp_path)
    workspace = opened(user, tmp_path)
    base = workspace.stage()
    (workspace.root / "sub").rmdir()
    (workspace.root / "sub").write_text("a file now")
    assert workspace.stage() == base
    workspace.restore(base)
    assert (workspace.root / "sub").is_dir()


# --- kills ----------------------------------------------------------------------------------------


def test_a_fresh_directory_is_filled_from_the_same_journal(
    workspace: TaskWorkspace, user: Path, tmp_path: Path
) -> None:
    (workspace.root / "a").write_text("kept\n")
    tree = workspace.stage()
    shutil.rmtree(workspace.root)
    again = opened(user, tmp_path, root="take-1b")
    again.restore(tree)
    assert (again.root / "a").read_text() == "kept\n"
    assert run(again, "git log --format=%s").stdout == "base\n"


def test_what_a_killed_git_left_behind_is_mended(workspace: TaskWorkspace) -> None:
    (workspace.root / "a").write_text("new\n")
    tree = workspace.stage()
    for leftover in ("index.lock", "HEAD.lock", "refs/holdfast/7/1.lock"):
        (workspace.git_dir / leftover).write_text("")
    workspace.restore(tree)
    (workspace.git_dir / "index").write_bytes(b"DIRC torn")
    workspace.restore(tree)
    assert workspace.stage() == tree


def test_a_directory_half_made_is_made_anew(user: Path, tmp_path: Path) -> None:
    making = tmp_path / "home/tasks/7/take-1.making"
    making.mkdir(parents=True)
    (making / "torn").write_text("x")
    workspace = opened(user, tmp_path)
    assert "torn" not in os.listdir(workspace.root)
    assert not making.exists()


PRIVATE = (
    *("HEAD", "config", "info/attributes", "info/exclude", "objects/info/alternates"),
    "refs/holdfast/base",
)


@pytest.mark.parametrize("name", PRIVATE)
def test_a_git_directory_half_made_is_made_whole(user: Path, tmp_path: Path, name: str) -> None:
    workspace = opened(user, tmp_path)
    tree, whole = workspace.stage(), (workspace.git_dir / name).read_bytes()
    for torn in (None, b"", whole[:-1] + b"?"):
        (workspace.git_dir / name).unlink()
        (workspace.git_dir / f"{name}.lock").write_bytes(b"of one that died")
        if torn is not None:
            (workspace.git_dir / name).write_bytes(torn)
        opened(user, tmp_path).restore(tree)
        assert (workspace.git_dir / name).read_bytes() == whole
        assert not (workspace.git_dir / f"{name}.lock").exists()


def test_a_git_directory_that_stands_is_left_as_it_is(user: Path, tmp_path: Path) -> None:
    """Another's git may be reading it: an owner that was stopped, say, and not killed."""
    workspace = opened(user, tmp_path)

    def written() -> list[tuple[int, int]]:
        found = [(workspace.git_dir / name).stat() for name in PRIVATE]
        return [(one.st_ino, one.st_ctime_ns) for one in found]

    before = written()
    opened(user, tmp_path)
    assert written() == before


KILLED = """
    import sys
    from pathlib import Path
    from holdfast.adapters.workspace import TaskWorkspace
    git_dir, root, one, two = sys.argv[1:]
    workspace = TaskWorkspace(Path(git_dir), Path(root), None, "refs/holdfast/7/1", str)
    print("ready", flush=True)
    while True:
        workspace.restore(one)
        assert workspace.stage() == one
        workspace.restore(two)
        assert workspace.stage() == two
"""


@pytest.mark.slow
def test_killing_at_any_moment_leaves_what_the_next_restore_mends(
    workspace: TaskWorkspace,
) -> None:
    one = workspace.stage()
    for number in range(60):
        (workspace.root / f"f{number}").write_text("x" * number * 100)
    (workspace.root / "a").write_text("two\n")
    shutil.rmtree(workspace.root / "src")
    two = workspace.stage()
    arguments = [str(workspace.git_dir), str(workspace.root), one, two]
    for round_number in range(25):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(KILLED), *arguments], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            # A different moment each time; the wait ends early only if the child failed.
            process.wait(timeout=0.003 * round_number)
            raise AssertionError("the child ended by itself")
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        tree = (one, two)[round_number % 2]
        workspace.restore(tree)
        assert workspace.stage() == tree
        assert not git(workspace.root, f"--git-dir={workspace.git_dir}", "fsck", "--no-dangling")


def test_a_git_that_outlives_its_holdfast_keeps_the_next_owner_out(
    workspace: TaskWorkspace,
) -> None:
    """The lock is inherited: an orphaned child holds it until it ends."""
    with held(workspace.git_dir) as descriptors:
        orphan = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=descriptors)
    with pytest.raises(Exception, match="still in use"), held(workspace.git_dir, wait_s=0.05):
        pass
    assert orphan.stdin is not None
    orphan.stdin.close()
    orphan.wait()
    workspace.stage()


# --- refusals -------------------------------------------------------------------------------------


def test_what_is_no_object_id_never_reaches_git(workspace: TaskWorkspace) -> None:
    for name in ("HEAD", "--help", "", "a" * 39, "refs/heads/main", "A" * 40):
        with pytest.raises(Refused):
            workspace.restore(name)
        with pytest.raises(Refused):
            workspace.diff(name, name)
        with pytest.raises(Refused):
            workspace.tree_of(name)


def test_a_tree_that_is_not_here_is_an_error_and_not_an_empty_directory(
    workspace: TaskWorkspace,
) -> None:
    with pytest.raises(GitFailed):
        workspace.restore("1" * 40)
    assert (workspace.root / "a").exists()


def test_a_failing_git_says_what_git_said(workspace: TaskWorkspace) -> None:
    with pytest.raises(GitFailed, match="bad file"):
        Git(git_dir=workspace.git_dir).run("cat-file", "tree", "1" * 40)


def test_without_git_the_remedy_is_told(
    workspace: TaskWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.adapters import git as module

    monkeypatch.setitem(module._ENVIRONMENT, "PATH", "/nonexistent")
    with pytest.raises(Exception, match="apt-get install git"):
        workspace.stage()
